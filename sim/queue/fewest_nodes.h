#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/queue/trace.h"

// How many nodes of a pool, or GPUs that Karpenter may make, keep a limit such as p95(wait) <= 1h.
namespace reckon {

inline constexpr int kMostNodesTried = 65'536;

struct NodesTried {
  int nodes = 0;
  TraceResult result;
  std::optional<double> value;  // of the limit's metric, in Expectation::value's unit
  bool holds = false;
  std::optional<double> cost_of_week{};  // of all nodes, in FewestNodes::currency; nullopt: unknown
};

/// The same jobs with something else changed than the number of nodes of the pool.
struct ChangeTried {
  std::string change;                      // "cluster.scheduler.policy=sjf"
  std::optional<SchedulingPolicy> policy;  // of a change of nothing but the order
  std::optional<double> value;             // likewise
  bool holds = false;
  std::optional<double> cost_of_week;  // of all nodes, in FewestNodes::currency; nullopt: unknown
};

/// Below, "nodes" are GPUs where Karpenter makes the nodes: its NodePool's limit varies.
enum class Varied { nodes_of_pool, gpus_of_node_pool };
struct FewestNodes {
  std::string pool;  // or NodePool
  Varied varied = Varied::nodes_of_pool;
  Expectation limit;
  int now = 0;              // as the scenario has it
  bool limited_now = true;  // of a NodePool; false: `now` is the most GPUs that it has at a time
  std::vector<NodesTried> tried;     // by nodes
  std::vector<ChangeTried> changes;  // in the order in which they were asked for
  std::optional<double> cost_now;    // of all nodes in a week, in `currency`; nullopt: unknown
  /// What a node of a pool costs in a week, whether it is used or not; nullopt: unknown.
  std::optional<double> cost_of_week;
  std::string currency = "USD";
  /// The limit holds with so many, and does not with one fewer. nullopt: with no number up to
  /// kMostNodesTried, or more nodes no longer change the value.
  std::optional<int> fewest;
};

/// Whether more nodes can only help: an upper limit of wait, jct, slowdown or makespan.
bool is_limit_of_nodes(const Expectation& limit);

/// Doubles or halves the number from `now` on until the limit is bracketed, then bisects. More
/// nodes are taken to be no worse, which random differences of a few percent may contradict. A
/// number with which some job never runs, or waits for ever, that would run with more is too few.
/// `answer(nodes)` simulates; its errors end the search.
Expected<FewestNodes> fewest_nodes(std::string pool, int now, const Expectation& limit,
                                   const std::function<Expected<TraceResult>(int)>& answer);

}  // namespace reckon
