#include <algorithm>

#include "planner/space/space.h"
#include "sim/scenario/resolve/training/workers.h"

// A candidate as changes of the question's scenario.
namespace reckon::planner {
namespace {

NodesSpec fixed(int nodes) { return {nodes, nodes, nodes}; }

/// Of the workers' pool: fixed, or from the fewest to the most.
NodesSpec nodes_of(const Offer& offer, int gang) {
  const int spares = spares_of(offer);
  const int least = offer.bounds.least_nodes(gang) + spares,
            most = offer.bounds.most_nodes(gang) + spares;
  return least == most ? fixed(most) : NodesSpec{least, least, most};
}
bool is_autoscaled(const NodesSpec& nodes) { return nodes.min < nodes.max; }

/// A pool with the hardware's nodes.
PoolSpec pool_on(const Hardware& h, std::string name, std::optional<Role> role) {
  PoolSpec pool;
  pool.name = std::move(name);
  pool.role = role;
  if (!h.slice.empty()) {
    pool.tpu = TpuSpec{h.accelerator, h.slice};
    return pool;
  }
  pool.machine = MachineByName{h.machine};
  if (!h.accelerator.empty()) pool.accelerator = AcceleratorSpec{h.accelerator, h.per_node};
  return pool;
}

class Changes {
 public:
  Changes(const Question& question, const Hardware& hardware, const Offer& offer,
          const Split& split)
      : q_(question), h_(hardware), offer_(offer), s_(split) {}
  std::vector<Change> made;

  void make() {
    change_cluster();
    if (h_.precision) add(SetPrecision{*h_.precision});
    if (h_.save_interval)
      add(SetCheckpointInterval{h_.save_interval->mode, h_.save_interval->every});
    if (!h_.checkpoint_storage.empty()) add(SetCheckpointStorage{h_.checkpoint_storage});
    change_strategy();
    if (offer_.restart) add(SetRestart{*offer_.restart});
    if (q_.may.most_global_batch > 0) add(SetBatchPerAccelerator{s_.layout.micro_batch});
  }

 private:
  void add(Change change) { made.push_back(std::move(change)); }
  const ClusterSpec& cluster() const { return q_.file.scenario.cluster; }
  const PoolSpec& own() const { return worker_pool(q_.file.scenario); }

  /// Do servers need a pool that the scenario does not have?
  bool adds_servers() const {
    const bool replaced = !h_.own && h_.provider != cluster().provider;
    return s_.parameter_servers > 0 && !h_.server_machine.empty() &&
           (replaced || server_pool(q_.file.scenario) == nullptr);
  }
  PoolSpec added_servers() const {
    PoolSpec servers;
    servers.name = own().name == "servers" ? "parameter-servers" : "servers";
    servers.role = Role::parameter_server;
    servers.machine = MachineByName{h_.server_machine};
    servers.nodes = fixed(s_.parameter_servers);
    return servers;
  }

  PoolSpec workers() const {
    const bool named = own().role || adds_servers();
    PoolSpec pool = pool_on(h_, own().name, named ? std::optional(Role::worker) : std::nullopt);
    pool.nodes = nodes_of(offer_, s_.nodes);
    pool.autoscaling = is_autoscaled(pool.nodes);
    pool.pricing = offer_.pricing;
    return pool;
  }

  /// The pools of a mix: the base, where the chief of the workers then is; the spot nodes; and
  /// their fallback.
  std::vector<PoolSpec> pools_of_mix() const {
    const int base = base_nodes(offer_, s_.nodes), rest = s_.nodes - base;
    std::vector<PoolSpec> pools;
    std::string name = own().name;
    if (base > 0) {
      pools.push_back(pool_on(h_, name, Role::worker));
      pools.back().nodes = fixed(base);
      pools.back().pricing = offer_.mix.base;
      name += "-spot";
    }
    PoolSpec spot = pool_on(h_, name, Role::worker);
    spot.nodes = offer_.mix.patience ? NodesSpec{0, 0, rest} : fixed(rest);
    spot.autoscaling = offer_.mix.patience.has_value();
    spot.pricing = CapacityType::spot;
    pools.push_back(spot);
    if (!offer_.mix.patience) return pools;
    PoolSpec fallback = std::move(spot);
    fallback.name = name + "-fallback";
    fallback.pricing = CapacityType::on_demand;
    fallback.fallback_for = name;
    fallback.after = offer_.mix.patience;
    pools.push_back(std::move(fallback));
    return pools;
  }

  /// All pools where they are new.
  std::vector<PoolSpec> pools() const {
    std::vector<PoolSpec> out = offer_.is_mixed() ? pools_of_mix() : std::vector{workers()};
    if (adds_servers()) out.push_back(added_servers());
    return out;
  }

  /// The scenario's own pool: as it stands where nothing of it varies.
  void change_own_nodes() {
    if (q_.may.as_scaled) return change_scaled_nodes();
    const bool varied = own().nodes.initial != s_.nodes + spares_of(offer_) ||
                        q_.may.nodes.size() > 1 || q_.may.restarts.size() > 1;
    if (!varied && q_.may.bounds.empty()) return;
    const NodesSpec nodes = nodes_of(offer_, s_.nodes);
    add(SetNodes{own().name, nodes});
    if (is_autoscaled(nodes) != own().autoscaling)
      add(SetAutoscaling{own().name, is_autoscaled(nodes)});
  }
  /// What makes nodes for the job may make as many as its gang has, in the pool and in those that
  /// are its fallback. Nodes that are there from the start stay.
  void change_scaled_nodes() {
    for (const PoolSpec& pool : cluster().pools) {
      const bool mine = pool.name == own().name || pool.fallback_for == own().name;
      if (!mine || !pool.autoscaling) continue;
      const NodesSpec nodes{std::min(pool.nodes.initial, s_.nodes),
                            std::min(pool.nodes.min, s_.nodes), s_.nodes};
      if (nodes.initial != pool.nodes.initial || nodes.min != pool.nodes.min ||
          nodes.max != pool.nodes.max)
        add(SetNodes{pool.name, nodes});
    }
  }
  void change_own_zone() {
    if (!offer_.zone.empty()) add(SetZone{offer_.zone});
  }

  void change_cluster() {
    const bool same = h_.provider == cluster().provider;
    if (h_.own && (offer_.is_mixed() || adds_servers())) {
      change_own_zone();
      add(SetPools{pools()});
    } else if (h_.own) {
      change_own_zone();
      change_own_nodes();
      if (!q_.may.as_scaled) add(SetCapacityType{own().name, offer_.pricing});
    } else if (same && cluster().pools.size() > 1) {
      add(SetRegion{offer_.region});
      // A zone of the scenario's own region is none of another.
      if (!offer_.zone.empty() || (!cluster().zone.empty() && offer_.region != cluster().region))
        add(SetZone{offer_.zone});
      add(SetPool{workers()});
    } else {
      ClusterSpec other;
      other.provider = h_.provider;
      if (same) other.service = cluster().service;
      other.region = offer_.region;
      other.zone = offer_.zone;
      if (other.zone.empty() && same && offer_.region == cluster().region && !q_.may.zone)
        other.zone = cluster().zone;
      other.pools = pools();
      add(SetCluster{std::move(other)});
      return;
    }
    const PoolSpec* servers = server_pool(q_.file.scenario);
    if (s_.parameter_servers == 0 || servers == nullptr) return;
    add(SetNodes{servers->name, fixed(s_.parameter_servers)});
    if (!h_.server_machine.empty()) add(SetMachine{servers->name, h_.server_machine});
  }

  /// Worker processes on all nodes.
  int workers_of(const StrategySpec& strategy) const {
    return planning::workers_on(s_.nodes, h_.per_node,
                                planning::accelerators_per_worker(strategy, h_.per_node));
  }

  static void set_degrees(const Layout& l, StrategySpec& s) {
    s.data = l.data;
    s.tensor = l.tensor;
    s.pipeline = l.pipeline;
    s.context = l.context;
    s.expert = l.expert;
    s.zero_stage = l.zero_stage;
    s.schedule = l.schedule;
    if (l.schedule == PipelineSchedule::interleaved) s.interleave = l.interleave;
    if (l.tensor > 1) s.sequence_parallel = l.sequence_parallel;
    if (!l.overlap) s.overlap = false;
    if (l.offload_optimizer) s.offload_optimizer = true;
  }

  /// The whole strategy, of a kind that the scenario does not have, or whose degrees are chosen.
  /// What no split chooses stays as the scenario has it, where it is of the same kind.
  StrategySpec new_strategy() const {
    const StrategySpec& given = q_.file.scenario.workload->strategy;
    const Layout& l = s_.layout;
    const StrategyTraits& traits = traits_of(s_.kind);
    StrategySpec s;
    s.kind = s_.kind;
    if (given.kind == s.kind) {
      s.all_reduce = given.all_reduce;
      s.accelerators_per_worker = given.accelerators_per_worker;
    }
    if (spreads_over_workers() || traits.servers) s.workers = workers_of(s);
    if (traits.servers) s.parameter_servers = s_.parameter_servers;
    if (traits.least_zero_stage > 0) s.zero_stage = l.zero_stage;
    if (traits.any_degrees) set_degrees(l, s);
    if (traits.any_degrees || q_.may.global_batch) s.micro_batch = l.micro_batch;
    s.recompute = l.recompute;
    return s;
  }
  bool spreads_over_workers() const {
    return traits_of(s_.kind).gang && !traits_of(s_.kind).any_degrees;
  }

  void change_strategy() {
    const StrategySpec& given = q_.file.scenario.workload->strategy;
    const StrategyTraits& traits = traits_of(s_.kind);
    if (given.kind != s_.kind || traits.any_degrees) return add(SetStrategy{new_strategy()});
    const bool servers = traits.servers;
    // Pools that start empty do not say how many there are.
    const bool starts_empty =
        offer_.mix.patience || !offer_.bounds.text.empty() || q_.may.as_scaled;
    if (given.workers || servers || (spreads_over_workers() && starts_empty))
      add(SetWorkers{workers_of(given)});
    if (servers && (s_.parameter_servers > 0 || given.parameter_servers))
      add(SetParameterServers{s_.parameter_servers});
    if (traits.least_zero_stage > 0) add(SetZeroStage{s_.layout.zero_stage});
    if (q_.may.global_batch) add(SetMicroBatch{s_.layout.micro_batch});
    add(SetRecompute{s_.layout.recompute});
  }

  const Question& q_;
  const Hardware& h_;
  const Offer& offer_;
  const Split& s_;
};

}  // namespace

std::vector<Change> changes_for(const Question& question, const Hardware& hardware,
                                const Offer& offer, const Split& split) {
  Changes changes(question, hardware, offer, split);
  changes.make();
  return std::move(changes.made);
}

}  // namespace reckon::planner
