#include "sim/forecast/explain/restarts.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/limits.h"
#include "sim/base/unit_text.h"
#include "sim/cluster/placement.h"
#include "sim/scenario/restart.h"
#include "sim/step/step.h"

namespace reckon {
namespace {

constexpr int kReplications = 64;
constexpr double kWorthAsking = 0.2;  // interruptions of a mean run
constexpr Seconds kLocalEvery{300};   // work between two checkpoints on the nodes

struct Way {
  RestartChange change;
  Plan plan;
};

/// Nodes that the job needs, and workers on the fullest of them.
struct Gang {
  int nodes = 0, workers_per_node = 1;
};
Gang gang_of(const Plan& plan) {
  Gang gang;
  for (const PoolShare& share : place_gang(plan, request_of(plan.only_job(), {})).pools) {
    if (share.workers == 0) continue;
    gang.nodes += share.nodes;
    gang.workers_per_node = std::max(gang.workers_per_node, share.workers_per_node);
  }
  return gang;
}

class Ways {
 public:
  Ways(const Plan& plan, const Fact<Seconds>& regroup)
      : plan_(plan), regroup_(regroup), gang_(gang_of(plan)) {}

  std::vector<Way> all() {
    const PlannedWorkload& job = plan_.only_job();
    const RestartKind now = job.restart ? job.restart->kind : RestartKind::full;
    if (now != RestartKind::in_place)
      add("healthy processes stay, a new node takes the place", "{kind: in_place}",
          {.kind = RestartKind::in_place});
    if (now != RestartKind::warm_spare) add_spare();
    if (now != RestartKind::elastic) add_elastic(job);
    if (!job.checkpoint.local) add_local(job);
    return std::move(ways_);
  }

 private:
  void add(std::string what, const std::string& value, PlannedRestart restart) {
    Plan changed = plan_;
    restart.regroup = regroup_;
    changed.only_job().restart = restart;
    ways_.push_back(
        {{.what = std::move(what), .set = "workload.restart=" + value, .plan_option = "--restart"},
         std::move(changed)});
  }

  /// In a pool of fixed size, which is one node larger.
  void add_spare() {
    const auto pools = computing_pools(plan_);
    if (pools.size() != 1 || pools.front()->autoscaling) return;
    add("one warm spare", "{kind: warm_spare, spares: 1}",
        {.kind = RestartKind::warm_spare, .spares = 1});
    const auto at = std::size_t(pools.front() - plan_.pools.data());
    PlannedPool& pool = ways_.back().plan.pools[at];
    pool.nodes_initial = pool.nodes_min = pool.nodes_max = gang_.nodes + 1;
    ways_.back().change.set +=
        fmt::format("' --set 'cluster.pools.{}.nodes={}", pool.name, gang_.nodes + 1);
  }

  void add_elastic(const PlannedWorkload& job) {
    const int each = workers_of_a_copy(job), nodes = (gang_.nodes + 1) / 2;
    if (gang_.nodes < 2 || job.strategy.workers / each < 2) return;
    const int least = (nodes * gang_.workers_per_node + each - 1) / each * each;
    add(fmt::format("elastic, at least {} of {} nodes", nodes, gang_.nodes),
        fmt::format("{{kind: elastic, min: {}}}", nodes),
        {.kind = RestartKind::elastic, .min_workers = std::min(least, job.strategy.workers)});
  }

  void add_local(const PlannedWorkload& job) {
    if (gang_.nodes < 2 || job.checkpoint.mode == CheckpointSpec::Mode::none) return;
    Plan changed = plan_;
    PlannedWorkload& other = changed.only_job();
    other.checkpoint.local =
        PlannedLocalCheckpoint{.to = LocalTier::peer_memory, .every = kLocalEvery, .replicas = 2};
    const Bytes there = computing_pools(changed).front()->machine.memory.value;
    if (local_tier_memory(changed, other) * 2 > there) return;
    ways_.push_back({{.what = fmt::format("a checkpoint in peers' memory every {}",
                                          format_duration(kLocalEvery)),
                      .set = "workload.checkpoint.local={to: peer_memory, every: 5min}"},
                     std::move(changed)});
  }

  const Plan& plan_;
  const Fact<Seconds>& regroup_;
  const Gang gang_;
  std::vector<Way> ways_;
};

RestartChange answered(RestartChange change, const Plan& plan, const NetworkModel& network) {
  ForecastOptions options;
  options.replications = kReplications;
  options.assumption_effects = false;
  const Forecast f = make_forecast(plan, network, options);
  change.seconds = f.time_seconds.mean;
  if (f.cost_usd) change.usd = f.cost_usd->mean;
  change.goodput = f.goodput.mean;
  change.interruptions = f.interruptions_total.mean;
  return change;
}

bool has_one_way(const Plan& plan) {
  const PlannedStrategy& s = plan.only_job().strategy;
  const bool slices =
      std::ranges::any_of(plan.pools, [](const PlannedPool& p) { return p.slice.has_value(); });
  return plan.service.nodes_of_job || slices || s.servers.has_value();
}

}  // namespace

std::vector<RestartChange> restarts_that_apply(const Plan& plan, const NetworkModel& network,
                                               const Fact<Seconds>& regroup) {
  if (has_one_way(plan)) return {};
  std::vector<RestartChange> out;
  try {
    out.push_back(answered({.what = "as it is"}, plan, network));
    if (!(out.front().interruptions >= kWorthAsking)) return {};
    for (Way& way : Ways(plan, regroup).all())
      out.push_back(answered(std::move(way.change), way.plan, network));
  } catch (const TooMuchWork&) {
    return {};  // the step is explained all the same
  }
  std::stable_sort(out.begin() + 1, out.end(), [](const RestartChange& a, const RestartChange& b) {
    return a.seconds < b.seconds;
  });
  return out;
}

}  // namespace reckon
