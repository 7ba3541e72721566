#pragma once
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity.h"
#include "sim/base/unit_text.h"
#include "sim/catalog/catalog.h"
#include "sim/model/zoo/zoo.h"
#include "sim/scenario/spec/autoscalers.h"
#include "sim/scenario/spec/cluster.h"
#include "sim/scenario/spec/disruptions.h"
#include "sim/scenario/spec/karpenter.h"
#include "sim/scenario/spec/prices.h"
#include "sim/scenario/spec/trace.h"
#include "sim/scenario/spec/words.h"
#include "sim/scenario/spec/workload.h"

// The what-if file as plain structs: exactly what the user wrote, nothing resolved. Field names are
// the keys of the file. `optional` and empty mean "not given". plan.h turns it into a Plan with the
// catalog's help.
namespace reckon {

struct JobSpec {
  std::string name;
  Seconds submit{};
  std::optional<Seconds> every;  // submitted again after each such time, `times` times in all
  int times = 1;
  /// Under cluster.scheduler in place of `duration` or `job`, else always given.
  WorkloadSpec workload;
  bool has_workload = true;
  // Of a job that cluster.scheduler starts, each as in ArrivalClassSpec:
  int gpus = 0;                     // all at once
  std::optional<Seconds> duration;  // at pace 1
  std::optional<Seconds> limit;     // that it asks for at most
  std::string job;                  // file of a training
  std::string user, team, queue, qos;
  int priority = 0;
  std::string required_topology, preferred_topology, resource;
  PaceSpec pace{};
  std::optional<PodShapeSpec> pod;
};
struct ForecastSpec {
  int replications = 1000;
  std::uint64_t seed = 1;
};

/// Is it answered by the serving part of a scenario?
bool is_of_serving(Metric metric);
/// Is it answered by the trace or the arrivals of a scenario?
bool is_of_trace(Metric metric);

/// One line of `expect:`. `value` is in SI units (seconds, USD, bytes, fraction, samples a second);
/// feasible: true is 1, false is 0. Time, cost, goodput and interruptions are distributions over
/// the replications: written without mean( ), p5( ), p50( ) or p95( ) they are the mean (p50 is
/// never implied), and `statistic` says so. Latency is one over the requests, and the only one that
/// has a p99. The others are one number each and have statistic none.
struct Expectation {
  std::string text;
  Metric metric = Metric::time;
  StepShare share = StepShare::compute;  // metric step_share
  Statistic statistic = Statistic::none;
  Comparison comparison = Comparison::le;
  double value = 0;
  /// Of an amount that is not in USD; the reader of the scenario turns it into `value` in USD, at
  /// `prices.usd_rate`, and keeps this.
  std::string currency;
  /// A time given as a date; the plan turns it into `value`, seconds from the scenario's start.
  std::optional<std::chrono::sys_seconds> date;
};
/// "p95(time) <= 48h". The error is a sentence with the allowed words.
Parsed<Expectation> parse_expectation(std::string_view text);
bool holds(double value, Comparison comparison, double bound);

// ---- serving
// -----------------------------------------------------------------------------------------------
struct ServingReplicasSpec {
  std::optional<int> initial;  // default: what the first rate needs
  int min = 1, max = 1;
  int standby = 0;                           // ready beside them, without requests
  std::optional<double> target_utilization;  // of the HorizontalPodAutoscaler, 0..1
};
struct ServingAutoscalerSpec {  // --horizontal-pod-autoscaler-* of the kube-controller-manager
  std::optional<Seconds> sync_period, downscale_stabilization;
  std::optional<double> tolerance;
};
struct ServingBatchSpec {
  int max = 1;
  Seconds wait{};  // of a request for others to fill its batch
  /// Measured: how long a replica is at work on a batch of so many requests; empty: by the model.
  std::map<double, Seconds> times;
};
struct ServingOverheadSpec {
  Seconds request{}, batch{};  // what each takes of a replica beside the forward pass
  Seconds latency{};           // of a request outside the queue, which keeps no replica busy
};

/// `serving:` as written: requests to a trained model on the pool with role inference.
struct ServingSpec {
  std::optional<ModelSpec> model;  // default: the workload's
  std::optional<std::int64_t> sequence_length;
  std::optional<Precision> precision;
  std::string stack;
  std::string pool;                         // default: the only one with role inference
  std::vector<double> requests_per_second;  // one, or 24: by the hour of the day, UTC
  Arrivals arrivals = Arrivals::poisson;
  ServingBatchSpec batch;
  ServingReplicasSpec replicas;
  ServingAutoscalerSpec autoscaler;
  Routing routing = Routing::random;
  int queue_limit = 1000;           // requests that wait at a replica; others are refused
  std::optional<Seconds> start_up;  // of a replica on a node that is there
  ServingOverheadSpec overhead;
  std::optional<Seconds> period;     // that is simulated
  std::string goal;                  // "p99(latency) <= 50ms", of `reckon plan`
  std::vector<std::string> clients;  // networks "10.0.0.0/8" that reach it from outside the cluster
};

/// `plan:` as written; read and checked, used by `reckon plan`.
struct PlanSpec {
  std::map<std::string, std::vector<std::string>>
      vary;                      // values as written; "1..64" stays one value
  std::string deadline, budget;  // "72h@95%", "20000 USD@90%"
  std::optional<Objective> objective;
  /// "gcp/us-central1/H100-SXM5-80" -> accelerators; with "/spot", "/on_demand" or "/reserved"
  /// behind it of those that are bought so, as providers count them.
  std::map<std::string, int> quota;
  std::string memory;                  // of an accelerator at most: "70GiB", "90%"; "": all
  std::optional<int> max_nodes;        // at once, of all pools
  std::vector<std::string> residency;  // jurisdictions a region may be under; empty: any
  std::optional<double> carbon_free;   // least share of its power, 0..1
  std::optional<double> energy_joules, co2_grams;  // of the run at most, means
  // Of several jobs:
  std::optional<Seconds> period;                 // all are done within it
  std::map<std::string, std::string> deadlines;  // by job, as `deadline`
};

/// `planned:` of a plan file: what it was made with. Kept, not used by the simulation.
struct PlannedSpec {
  int schema_version = 0;
  std::string reckon_version, catalog_digest, prices_as_of;
  std::vector<std::string> calibrations;
  std::uint64_t seed = 0;
  std::map<std::string, std::string> forecast;  // dotted path -> text, as written
};

struct Scenario {
  std::string name;
  std::optional<std::chrono::sys_seconds> start;
  std::optional<WorkloadSpec> workload;
  ClusterSpec cluster;
  std::optional<PricesSpec> prices;
  DisruptionsSpec disruptions;
  std::vector<JobSpec> jobs;
  std::optional<TraceSpec> trace;
  std::optional<ArrivalsSpec> arrivals;
  std::optional<ServingSpec> serving;
  ForecastSpec forecast;
  std::vector<Expectation> expect;
  std::optional<PlanSpec> plan;
  std::optional<PlannedSpec> planned;

  /// Jobs that share a cluster, of which no plan is made.
  bool of_queue() const { return trace || arrivals || has_queued_jobs(); }
  /// `jobs:` that cluster.scheduler starts.
  bool has_queued_jobs() const { return cluster.scheduler && !jobs.empty(); }
};

/// Where each value stood: path ("cluster.pools.p100.nodes.max") -> place; items of a list by their
/// `name`, by index
/// ("expect.0") where they have none. A block's place is its key's, a value's its own.
class Places {
 public:
  void set(std::string path, SourcePlace place) {
    places_.insert_or_assign(std::move(path), std::move(place));
  }
  /// The path's own place, else that of its nearest parent, else the whole file.
  SourcePlace find(std::string_view path) const;
  /// With everything below `from` also below `to` ("jobs.a.workload" as
  /// "workload").
  Places with_alias(const std::string& from, const std::string& to) const;
  std::string file;

 private:
  std::map<std::string, SourcePlace, std::less<>> places_;
};

struct ScenarioFile {
  Scenario scenario;
  Places places;
  std::filesystem::path directory;  // what relative paths in it are relative to
};

}  // namespace reckon
