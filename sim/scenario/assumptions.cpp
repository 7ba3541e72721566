#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/scenario/assumption_table.h"
#include "sim/scenario/plan.h"

// Which assumed numbers a plan rests on. Each entry reads as one row: what it is, its stable key,
// its unit, whether the step depends on it, and where it stands in the plan.
namespace reckon {
namespace {

using planning::AssumptionTable;
using planning::kLife;
using planning::kStep;

bool has_work(const ModelGraph& model, WorkKind kind) {
  const auto counts = model.counts();
  return std::any_of(counts.begin(), counts.end(),
                     [kind](const LayerCount& c) { return c.work == kind && c.forward.v > 0; });
}

template <class Table>
void add_compute(Table& table, const PlannedPool& pool, std::size_t i, const ModelGraph& model,
                 std::size_t precision) {
  const std::string of = fmt::format(" of {} in pool {}", pool.accelerator->name, pool.name);
  const std::string key = fmt::format("pools.{}.", pool.name);
  if (has_work(model, WorkKind::convolution))
    table.add(
        "efficiency of convolutions" + of, key + "efficiency.convolution", "fraction",
        kStep, [i](auto& p) -> auto& { return p.pools[i].efficiency.convolution; });
  if (has_work(model, WorkKind::matmul))
    table.add(
        "efficiency of matrix products" + of, key + "efficiency.matmul", "fraction",
        kStep, [i](auto& p) -> auto& { return p.pools[i].efficiency.matmul; });
  if (has_work(model, WorkKind::attention))
    table.add(
        "efficiency of attention" + of, key + "efficiency.attention", "fraction",
        kStep, [i](auto& p) -> auto& { return p.pools[i].efficiency.attention; });
  table.add(
      "achieved memory bandwidth" + of, key + "efficiency.memory", "fraction",
      kStep, [i](auto& p) -> auto& { return p.pools[i].efficiency.memory; });
  table.add(
      "kernel size of half efficiency" + of, key + "efficiency.half_size", "FLOP",
      kStep, [i](auto& p) -> auto& { return p.pools[i].efficiency.half_size; });
  table.add(
      "launch time of a kernel" + of, key + "efficiency.launch", "s",
      kStep, [i](auto& p) -> auto& { return p.pools[i].efficiency.launch; });
  if (pool.efficiency.host.value.count() > 0)
    table.add(
        "time of the host to issue a layer" + of, key + "efficiency.host", "s",
        kStep, [i](auto& p) -> auto& { return p.pools[i].efficiency.host; });
  table.add(
      "step time" + of + " against the model's", key + "efficiency.step_spread", "factor",
      kLife, [i](auto& p) -> auto& { return p.pools[i].efficiency.step_spread; });
  if (pool.accelerator->peak[precision])
    table.add(
        "peak" + of, key + "accelerator.peak", "FLOP/s", kStep,
        [ i, precision ](auto& p) -> auto& { return *p.pools[i].accelerator->peak[precision]; });
  table.add(
      "memory bandwidth" + of, key + "accelerator.memory_bandwidth", "B/s",
      kStep, [i](auto& p) -> auto& { return p.pools[i].accelerator->memory_bandwidth; });
}

void add_link(AssumptionTable& table, const Plan& plan, std::size_t i, bool peers, bool network) {
  const PlannedPool& pool = plan.pools[i];
  const std::string key = fmt::format("pools.{}.", pool.name);
  if (peers) {
    const std::string of =
        fmt::format(" of {} between the accelerators of pool {}", pool.peer_link.name, pool.name);
    table.add(
        "achieved bandwidth" + of, key + "peer_link.efficiency", "fraction",
        kStep, [i](auto& p) -> auto& { return p.pools[i].peer_link.efficiency; });
    table.add(
        "latency" + of, key + "peer_link.latency", "s",
        kStep, [i](auto& p) -> auto& { return p.pools[i].peer_link.latency; });
    if (pool.accelerator->peer_bandwidth)
      table.add(
          "printed bandwidth" + of, key + "accelerator.peer_bandwidth", "B/s",
          kStep, [i](auto& p) -> auto& { return *p.pools[i].accelerator->peer_bandwidth; });
  }
  if (!network) return;
  const std::string of = fmt::format(" of the network of pool {}", pool.name);
  table.add(
      "achieved bandwidth" + of, key + "network_link.efficiency", "fraction",
      kStep, [i](auto& p) -> auto& { return p.pools[i].network_link.efficiency; });
  table.add(
      "latency" + of, key + "network_link.latency", "s",
      kStep, [i](auto& p) -> auto& { return p.pools[i].network_link.latency; });
  table.add(
      "printed bandwidth" + of, key + "machine.network", "B/s",
      kStep, [i](auto& p) -> auto& { return p.pools[i].machine.network; });
}

/// What a pass over the model rests on in a pool that computes it.
template <class Table>
void add_pass(Table& table, const PlannedPool& pool, std::size_t i, const ModelGraph& model,
              Precision precision) {
  const std::string key = fmt::format("pools.{}.", pool.name);
  if (pool.accelerator) {
    add_compute(table, pool, i, model, std::size_t(precision));
    table.add(
        "bus bandwidth to " + pool.accelerator->name + " in pool " + pool.name,
        key + "accelerator.host_bandwidth", "B/s",
        kStep, [i](auto& p) -> auto& { return p.pools[i].accelerator->host_bandwidth; });
  }
  if (pool.measured_rates)
    table.add(
        "step time on this machine's processors against the model's",
        key + "efficiency.step_spread", "factor",
        kLife, [i](auto& p) -> auto& { return p.pools[i].efficiency.step_spread; });
  else if (!pool.accelerator)
    table.add(
        "launch time of a kernel on the CPUs of pool " + pool.name, key + "efficiency.launch", "s",
        kStep, [i](auto& p) -> auto& { return p.pools[i].efficiency.launch; });
}

template <class Table>
void add_cpus(Table& table, const PlannedPool& pool, std::size_t i) {
  const std::string key = fmt::format("pools.{}.", pool.name);
  table.add(
      "speed of a vCPU in pool " + pool.name, key + "cpu_flops_per_vcpu", "FLOP/s",
      kStep, [i](auto& p) -> auto& { return p.pools[i].cpu_flops_per_vcpu; });
  table.add(
      "memory bandwidth of a vCPU in pool " + pool.name, key + "cpu_memory_bandwidth_per_vcpu",
      "B/s", kStep, [i](auto& p) -> auto& { return p.pools[i].cpu_memory_bandwidth_per_vcpu; });
}

void add_pool(AssumptionTable& table, const Plan& plan, std::size_t i) {
  const PlannedPool& pool = plan.pools[i];
  const PlannedWorkload& job = plan.only_job();
  const PlannedStrategy& strategy = job.strategy;
  const std::string key = fmt::format("pools.{}.", pool.name);
  table.add(
      "provisioning of a node of pool " + pool.name, key + "provisioning", "s",
      kLife, [i](auto& p) -> auto& { return p.pools[i].provisioning; });
  if (is_flex_start(pool.provisioning_model))
    table.add(
        "flex-start's queue for nodes of pool " + pool.name, key + "capacity_wait", "s",
        kLife, [i](auto& p) -> auto& { return p.pools[i].capacity_wait; });
  if (pool.pool_creation.value.count() > 0)
    table.add(
        "creation of the node pool " + pool.name, key + "pool_creation", "s",
        kLife, [i](auto& p) -> auto& { return p.pools[i].pool_creation; });
  const bool computing = computes(plan, pool);
  const bool coordinates = pool.role == Role::chief && !computing;  // nothing waits for its node
  if (computing) add_pass(table, pool, i, job.model, job.precision);
  if (computing && !pool.accelerator)
    table.add(
        "a worker's own time of a step in pool " + pool.name, key + "host_step", "s",
        kStep, [i](auto& p) -> auto& { return p.pools[i].host_step; });
  // Updates of variables run on the servers' CPUs, without a server process on the first worker's.
  const bool serves = pool.role == Role::parameter_server ||
                      (strategy.servers && strategy.server_count() == 0 && computing);
  if (serves || (!pool.accelerator && !coordinates)) add_cpus(table, pool, i);
  const bool peers = computing && pool.accelerator && pool.accelerators_per_node > 1 &&
                     strategy.accelerators() > 1;
  const bool nodes = !pool.slice && !coordinates &&
                     (strategy.server_count() > 0 ||
                      strategy.accelerators() > std::max(1, pool.accelerators_per_node) ||
                      (!pool.accelerator && strategy.workers > 1));
  add_link(table, plan, i, peers, nodes);
}

void add_input_and_storage(AssumptionTable& table, const Plan& plan) {
  const PlannedWorkload& job = plan.only_job();
  const auto storage = "storage " + job.checkpoint.storage.name;
  table.add(
      "size of a sample of " + job.dataset.name, "dataset.bytes_per_sample", "B", kStep,
      [](auto& p) -> auto& { return p.only_job().dataset.bytes_per_sample; });
  table.add(
      "decoding of a sample of " + job.dataset.name, "dataset.decode_cpu_seconds", "vCPU s", kStep,
      [](auto& p) -> auto& { return p.only_job().dataset.decode_cpu_seconds; });
  table.add(
      "reading from " + storage, "storage.read_per_node", "B/s", kStep,
      [](auto& p) -> auto& { return p.only_job().checkpoint.storage.read_per_node; });
  // Of samples that are asked for one by one (InputTimes::read) the step waits for it, too.
  const auto add_latency = [&](bool affects_step) {
    table.add(
        "latency of " + storage, "storage.latency", "s", affects_step,
        [](auto& p) -> auto& { return p.only_job().checkpoint.storage.latency; });
  };
  const bool asked = is_store_location(job.data.path);
  if (asked) add_latency(kStep);
  if (job.checkpoint.mode == CheckpointSpec::Mode::none) return;
  table.add(
      "writing to " + storage, "storage.write_per_node", "B/s", kLife,
      [](auto& p) -> auto& { return p.only_job().checkpoint.storage.write_per_node; });
  if (!asked) add_latency(kLife);
  table.add(
      "fixed part of saving a checkpoint", "checkpoint.save_overhead", "s", kLife,
      [](auto& p) -> auto& { return p.only_job().checkpoint.save_overhead; });
}

/// Published runs lie around the law by which training to an accuracy is as long as it is.
void add_length(AssumptionTable& table, const Plan& plan) {
  const PlannedWorkload& job = plan.only_job();
  if (!job.convergence) return;
  table.add(
      fmt::format("samples to {:.1f} % against the law's", 100 * job.convergence->accuracy),
      fmt::format("{}.{}.{}.{:g}.{}", kSamplesFactor, job.model.name(), job.dataset.name,
                  job.convergence->accuracy, job.convergence->starts_from),
      "factor", kLife, [](auto& p) -> auto& { return p.only_job().samples_factor; });
}

/// Which rows of embedding tables a batch touches.
void add_ids(AssumptionTable& table, const Plan& plan) {
  const auto& servers = plan.only_job().strategy.servers;
  if (!servers || !servers->sparse_embeddings) return;
  table.add(
      "skew of the ids of embedding tables (exponent of a Zipf law)", "workload.zipf_exponent",
      "exponent", kStep, [](auto& p) -> auto& { return p.only_job().zipf_exponent; });
}

/// Several processes that wait for each other; what the framework reserves decides whether a step
/// fits, not how long it takes.
void add_framework(AssumptionTable& table, const Plan& plan) {
  const PlannedStrategy& strategy = plan.only_job().strategy;
  const bool waits = strategy.servers.has_value() || planning::waits_for_all(strategy);
  if (strategy.layout.expert > 1)
    table.add(
        "rows of the busiest expert-parallel rank above the mean", "framework.expert_imbalance",
        "fraction", kStep, [](auto& p) -> auto& { return p.framework.expert_imbalance; });
  if (plan.framework.overlap_slowdown.value > 0 &&
      (traits_of(strategy.kind).accelerated || traits_of(strategy.kind).gang))
    table.add(
        "arithmetic slowed by transfers beside it", "framework.overlap_slowdown", "fraction", kStep,
        [](auto& p) -> auto& { return p.framework.overlap_slowdown; });
  if (!waits || strategy.workers < 2) return;
  table.add(
      "spread of a worker's step from step to step", "framework.step_jitter", "fraction", kStep,
      [](auto& p) -> auto& { return p.framework.step_jitter; });
}

/// "efficiency.matmul" of "pools.p100.efficiency.matmul"; "" of what belongs to no pool.
std::string_view part_of_pool(std::string_view key) {
  if (!key.starts_with("pools.")) return {};
  const std::size_t dot = key.find('.', 6);
  return dot == std::string_view::npos ? std::string_view{} : key.substr(dot + 1);
}

/// The same number of the same source for the same thing in several pools is one unknown: what is
/// wrong about the T4 of one pool is wrong about the T4 of the other.
bool is_same_fact(const PlanAssumption& a, const PlanAssumption& b) {
  const auto part = part_of_pool(a.key);
  return !part.empty() && part == part_of_pool(b.key) && a.source == b.source &&
         a.value == b.value && a.low == b.low && a.high == b.high;
}

std::string pool_of_key(std::string_view key) {
  return std::string(key.substr(6, key.find('.', 6) - 6));
}

/// "... in pool master" that also holds for others: "... in pools master, workers".
std::string for_pools(const std::string& what, const std::vector<std::string>& pools) {
  const std::string one = "pool " + pools.front();
  const std::size_t at = what.rfind(one);
  if (pools.size() == 1 || at == std::string::npos) return what;
  return what.substr(0, at) + fmt::format("pools {}", fmt::join(pools, ", ")) +
         what.substr(at + one.size());
}

void also_set(PlanAssumption& row, PlanAssumption& other) {
  row.affects_step = row.affects_step || other.affects_step;
  row.set = [one = std::move(row.set), two = std::move(other.set)](Plan& plan, double value) {
    one(plan, value);
    two(plan, value);
  };
}

std::vector<PlanAssumption> one_row_a_fact(std::vector<PlanAssumption> rows) {
  std::vector<PlanAssumption> merged;
  std::vector<std::vector<std::string>> pools;  // of each merged row
  for (PlanAssumption& row : rows) {
    const auto same = std::find_if(merged.begin(), merged.end(),
                                   [&](const PlanAssumption& m) { return is_same_fact(m, row); });
    const bool in_pool = !part_of_pool(row.key).empty();
    if (same == merged.end()) {
      pools.push_back(in_pool ? std::vector{pool_of_key(row.key)} : std::vector<std::string>{});
      merged.push_back(std::move(row));
    } else {
      pools[std::size_t(same - merged.begin())].push_back(pool_of_key(row.key));
      also_set(*same, row);
    }
  }
  for (std::size_t k = 0; k < merged.size(); ++k)
    if (!pools[k].empty()) merged[k].what = for_pools(merged[k].what, pools[k]);
  return merged;
}

}  // namespace

std::vector<PlanAssumption> assumptions_of(const Plan& plan) {
  AssumptionTable table(plan);
  if (plan.jobs.empty()) return {};
  for (std::size_t i = 0; i < plan.pools.size(); ++i) add_pool(table, plan, i);
  add_input_and_storage(table, plan);
  planning::add_notice(table, plan);
  add_length(table, plan);
  add_ids(table, plan);
  planning::add_start(table);
  planning::add_egress(table, plan);
  add_framework(table, plan);
  planning::add_disruptions(table, plan);
  planning::add_restart(table, plan);
  std::vector<PlanAssumption> rows = one_row_a_fact(table.take());
  planning::add_reclaim(rows, plan);
  planning::add_prices(rows, plan);
  return rows;
}

std::vector<AssumptionOf<PlannedCluster>> assumptions_of_pass(const PlannedCluster& cluster,
                                                              std::size_t pool,
                                                              const ModelGraph& model,
                                                              Precision precision) {
  planning::TableOf<PlannedCluster> table(cluster);
  const PlannedPool& of = cluster.pools[pool];
  add_pass(table, of, pool, model, precision);
  if (!of.accelerator) add_cpus(table, of, pool);
  return table.take();
}

}  // namespace reckon
