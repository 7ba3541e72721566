#pragma once
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "pools.h"
#include "sim/queue/karpenter/karpenter_run.h"

// Jobs on nodes that Karpenter makes, on a clock of round numbers: a node is ready 100 s after its
// request, a batch ends 1 s after its last pod, the disruption loop looks each 10 s, and what it
// finds is done 15 s later.
namespace reckon::test {

struct PodsAsked {
  double submit = 0, seconds = 0;
  int pods = 1, cpus = 2, gpus = 0, priority = 0;
};

inline std::vector<JobRequest> jobs_asking(const std::vector<PodsAsked>& asked) {
  std::vector<JobRequest> jobs;
  for (const PodsAsked& a : asked) {
    JobRequest job =
        recorded_job(SimTime{} + to_clock(Seconds{a.submit}), to_clock(Seconds{a.seconds}), a.gpus);
    job.workers = a.pods;
    job.worker.cpu_milli = a.cpus * 1000;
    job.worker.memory_mib = a.cpus * 1024;
    job.owner.priority = a.priority;
    jobs.push_back(job);
  }
  return jobs;
}

inline KarpenterMarket market_of(std::vector<LaunchOffering> offerings) {
  KarpenterMarket market;
  market.spec.node_pools = {plain_pool()};
  market.delays.assign(offerings.size(), Fact<Seconds>{Seconds{100}});
  market.offerings = std::move(offerings);
  return market;
}

inline std::vector<LaunchOffering> four_sizes() {
  return {cpu_type("large", 2, 0.10), cpu_type("xlarge", 4, 0.19), cpu_type("2xlarge", 8, 0.37),
          cpu_type("4xlarge", 16, 0.80)};
}

inline KarpenterRun karpenter_run(const std::vector<JobRequest>& jobs,
                                  const KarpenterMarket& market,
                                  const KubernetesSpec& kubernetes = {}, std::uint64_t seed = 1) {
  RunOptions options;
  options.seed = seed;
  return run_karpenter(jobs, market, kubernetes, 0, jobs.size(), options);
}

/// In seconds, to the millisecond.
inline double at(std::optional<SimTime> time) {
  return std::round(to_seconds(time.value() - SimTime{}).count() * 1e3) / 1e3;
}
inline double gone(const KarpenterRun& r, std::size_t n) { return at(r.nodes.at(n).gone); }
inline std::string type_of(const KarpenterRun& r, const KarpenterMarket& m, std::size_t n) {
  return m.offerings[r.nodes.at(n).offering].type;
}
inline const ConsolidationCount& of(const KarpenterRun& r, ConsolidationKind kind) {
  return r.consolidations[std::size_t(kind)];
}

/// Pods may be evicted, of all nodes at a time.
inline KarpenterMarket evictable(std::vector<LaunchOffering> offerings) {
  KarpenterMarket market = market_of(std::move(offerings));
  market.spec.do_not_disrupt = false;
  market.spec.node_pools[0].budgets = {{.share = 1.0}};
  return market;
}

}  // namespace reckon::test
