#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/scenario/plan.h"

// What a scenario's `serving:` block is once every name is resolved: the value that sim/serving/
// moves through virtual time. It is apart from the Plan of the training, because the two share
// nothing but the file: their pools, their bills and their clocks are their own.
namespace reckon {

/// How replicas come and go: the rules of the HorizontalPodAutoscaler, with its defaults where the
/// scenario names none (Kubernetes documentation, "Horizontal Pod Autoscaling", "Algorithm
/// details").
struct ReplicaRules {
  int initial = 1, min = 1, max = 1;
  int standby = 0;                  // ready beside them, without requests
  double target_utilization = 0.8;  // 0..1
  Seconds sync_period{15}, downscale_stabilization{300};
  double tolerance = 0.1;  // share of the target, either side
};

/// `serving.stack` of a server that was measured as it is (fit_serving): no model of its forward
/// pass is asked.
inline constexpr std::string_view kMeasuredStack = "measured";

struct ServingPlan {
  PlanOrigin origin;
  PlannedCluster cluster;  // of one pool
  ModelGraph model;
  Precision precision = Precision::fp32;
  std::vector<double> requests_per_second;  // one, or 24 by the hour of the day
  Arrivals arrivals = Arrivals::poisson;
  int batch_max = 1;
  Seconds batch_wait{};
  ReplicaRules replicas;
  bool initial_given = false;  // else replicas.initial follows from the first rate
  Routing routing = Routing::random;
  int queue_limit = 1000;
  std::optional<Seconds> start_up;  // given; else from cluster.job_start
  Seconds overhead_request{}, overhead_batch{}, overhead_latency{};
  /// Measured times of batches, by size, ascending; empty: none were. In their place no forward
  /// pass is asked.
  std::vector<std::pair<double, Seconds>> batch_times;
  /// The scenario's stack is kMeasuredStack: batch_times and the overhead are all that a batch
  /// takes.
  bool measured = false;
  Seconds period{};
  Seconds starts_at{};  // time of day of its first second
  std::optional<Expectation> goal;
  std::vector<std::string> clients;  // networks that may ask; empty: the cluster's own pods alone
  bool alone = true;                 // the scenario trains nothing: the cluster's fee is of serving

  /// At the first rate, before the period: without `initial` the replicas have to find their
  /// number.
  Seconds warm_up() const { return initial_given ? Seconds{} : Seconds{600}; }
  const PlannedPool& pool() const { return cluster.pools.front(); }
  /// A replica has one accelerator; a node without any is one replica.
  int replicas_per_node() const { return std::max(1, pool().accelerators_per_node); }
  int most_replicas() const { return pool().nodes_max * replicas_per_node(); }
  double rate_at(Seconds since_start) const;  // requests a second
  double rate_mean() const;                   // requests a second, over a day
};

/// The pool that serves, of a scenario with `serving:`: the one with role inference that it names,
/// or the only one. nullptr: no pool, or several of which it names none.
const PoolSpec* serving_pool(const Scenario& scenario);

/// Whether the scenario also trains: `workload` or `jobs`.
bool trains(const Scenario& scenario);

/// The `serving:` block, which is there, with the catalog's help. All errors at once.
Expected<ServingPlan> make_serving_plan(const ScenarioFile& file, const Catalog& catalog);

/// The file of the training alone: without the serving block and its pools. Its expectations stay,
/// in their order; those of the service are for a ServingForecast. As it is where nothing is
/// served.
ScenarioFile without_serving(const ScenarioFile& file);

}  // namespace reckon
