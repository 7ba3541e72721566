#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/cluster/job_request.h"
#include "sim/scenario/spec/scheduler.h"

// Nodes of a cloud that are bought for jobs that wait too long, and given back when they idle.
namespace reckon {

struct OverflowUse {
  std::int64_t jobs = 0, reclaims = 0;
  double node_seconds = 0;  // paid for: from when a node takes jobs until it goes
  double gpu_seconds = 0;   // that jobs held
  std::vector<std::pair<std::size_t, double>> of_job;  // job, and the node seconds that it held
};

/// A job gets nodes of its own, as many as its GPUs need, and shares none. Idle nodes come first,
/// the last bought of them; others are asked for, and the job begins when all take jobs. A node is
/// given back when it idled for scale_down_unneeded_time. With mean_time_to_reclaim the provider
/// takes a node after a time drawn from an exponential law; then all of the job stands still until
/// another node is there, and goes on with what its checkpoint kept. Only after kMostReclaims of a
/// job its nodes stay, so that it ends.
class OverflowNodes {
 public:
  /// Draws are of these three.
  OverflowNodes(const OverflowSpec& spec, std::uint64_t seed, std::uint32_t replication);

  SimDuration wait() const { return to_clock(spec_.wait); }
  /// Whether all nodes together have so many GPUs.
  bool can_hold(int gpus) const { return nodes_of(gpus) <= spec_.nodes; }
  struct Stay {
    SimTime start{}, end{};
    int reclaims = 0;
  };
  /// From now on; nullopt: too few nodes can be had now. Calls are in order of `now`.
  std::optional<Stay> run(std::size_t job, int gpus, SimDuration work, SimTime now);
  /// All of it; who idles at the end is paid until it is given back.
  OverflowUse use();

  static constexpr int kMostReclaims = 1000;

 private:
  struct Node {
    SimTime ready{};      // from when on it takes jobs, and is paid for
    SimTime free{};       // of its last job
    SimTime reclaimed{};  // by the provider
  };
  int nodes_of(int gpus) const { return (gpus + spec_.gpus - 1) / spec_.gpus; }
  Node bought(SimTime ready);
  void pay(const Node& node, SimTime until);
  void give_back(SimTime now);

  OverflowSpec spec_;
  std::uint64_t seed_;
  std::uint32_t replication_;
  std::vector<Node> nodes_;  // in the order in which they were bought
  std::uint32_t bought_ = 0;
  OverflowUse use_;
};

}  // namespace reckon
