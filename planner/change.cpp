#include "planner/change.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/text/yaml_writer.h"
#include "sim/scenario/yaml/yaml_word.h"

namespace reckon::planner {
namespace {

PoolSpec& pool_named(Scenario& scenario, const std::string& name) {
  const auto found = std::ranges::find(scenario.cluster.pools, name, &PoolSpec::name);
  RECKON_CHECK(found != scenario.cluster.pools.end());
  return *found;
}
WorkloadSpec& workload_of(Scenario& scenario) {
  RECKON_CHECK(scenario.workload.has_value());
  return *scenario.workload;
}
CheckpointSpec& checkpoint_of(Scenario& scenario) {
  auto& checkpoint = workload_of(scenario).checkpoint;
  if (!checkpoint) checkpoint.emplace();
  return *checkpoint;
}

void change(Scenario& s, const SetCluster& c) { s.cluster = c.cluster; }
void change(Scenario& s, const SetRegion& c) { s.cluster.region = c.region; }
void change(Scenario& s, const SetZone& c) { s.cluster.zone = c.zone; }
void change(Scenario& s, const SetPools& c) { s.cluster.pools = c.pools; }
void change(Scenario& s, const SetPool& c) { pool_named(s, c.pool.name) = c.pool; }
void change(Scenario& s, const SetNodes& c) { pool_named(s, c.pool).nodes = c.nodes; }
void change(Scenario& s, const SetAutoscaling& c) { pool_named(s, c.pool).autoscaling = c.on; }
void change(Scenario& s, const SetCapacityType& c) { pool_named(s, c.pool).pricing = c.type; }
void change(Scenario& s, const SetMachine& c) {
  pool_named(s, c.pool).machine = MachineByName{c.machine};
}
void change(Scenario& s, const SetPrecision& c) { workload_of(s).precision = c.precision; }
void change(Scenario& s, const SetCheckpointInterval& c) {
  checkpoint_of(s).mode = c.mode;
  checkpoint_of(s).interval = c.interval;
}
void change(Scenario& s, const SetCheckpointStorage& c) { checkpoint_of(s).storage = c.storage; }
void change(Scenario& s, const SetRestart& c) { workload_of(s).restart = c.restart; }
void change(Scenario& s, const SetStrategy& c) { workload_of(s).strategy = c.strategy; }
void change(Scenario& s, const SetWorkers& c) { workload_of(s).strategy.workers = c.workers; }
void change(Scenario& s, const SetParameterServers& c) {
  workload_of(s).strategy.parameter_servers = c.servers;
}
void change(Scenario& s, const SetZeroStage& c) { workload_of(s).strategy.zero_stage = c.stage; }
void change(Scenario& s, const SetMicroBatch& c) {
  workload_of(s).strategy.micro_batch = c.samples;
}
void change(Scenario& s, const SetRecompute& c) { workload_of(s).strategy.recompute = c.mode; }
void change(Scenario& s, const SetBatchPerAccelerator& c) {
  workload_of(s).batch_per_accelerator = c.samples;
}
void change(Scenario& s, const RemoveReservations&) {
  if (s.prices) s.prices->reserved.clear();
}

/// A value of YAML on one line.
class OneLine {
 public:
  OneLine& begin_map() { return out_.begin_map(YamlWriter::Style::flow), *this; }
  OneLine& end_map() { return out_.end_map(), *this; }
  OneLine& begin_list() { return out_.begin_list(YamlWriter::Style::flow), *this; }
  OneLine& end_list() { return out_.end_list(), *this; }
  OneLine& key(std::string_view name) { return out_.key(name), *this; }
  OneLine& text(std::string_view value) { return out_.text(value), *this; }
  OneLine& number(int value) { return out_.word(std::to_string(value)), *this; }
  OneLine& truth(bool value) { return out_.word(value ? "true" : "false"), *this; }
  std::string done() const {
    std::string line = out_.done();
    line.pop_back();
    return line;
  }

 private:
  YamlWriter out_{YamlQuotes::for_us};
};

/// "10min": in the largest of h, min and s that it is a whole number of.
std::string duration_word(Seconds duration) {
  for (const auto& [unit, length] : {std::pair{"h", 3600.0}, {"min", 60.0}}) {
    const double count = duration.count() / length;
    if (count >= 1 && count == double(std::int64_t(count)))
      return fmt::format("{}{}", std::int64_t(count), unit);
  }
  return fmt::format("{}s", duration.count());
}

/// "3", or "{initial: 0, min: 0, max: 3}" of a pool that grows and shrinks.
void write(OneLine& out, const NodesSpec& nodes) {
  if (nodes.min == nodes.max) {
    out.number(nodes.max);
    return;
  }
  out.begin_map().key("initial").number(nodes.initial);
  out.key("min").number(nodes.min).key("max").number(nodes.max).end_map();
}

void write(OneLine& out, const PoolSpec& pool) {
  out.begin_map().key("name").text(pool.name);
  if (pool.role) out.key("role").text(to_text(*pool.role));
  if (const auto* named = std::get_if<MachineByName>(&pool.machine))
    out.key("machine").text(named->name);
  if (pool.accelerator) {
    out.key("accelerator").begin_map().key("type").text(pool.accelerator->type);
    out.key("count").number(pool.accelerator->count).end_map();
  }
  if (pool.tpu) {
    out.key("tpu").begin_map().key("type").text(pool.tpu->type);
    out.key("slice").text(pool.tpu->slice).end_map();
  }
  write(out.key("nodes"), pool.nodes);
  if (pool.autoscaling) out.key("autoscaling").truth(true);
  // Parameter servers are bought on demand unless something else is said.
  if (pool.role != Role::parameter_server || pool.pricing != CapacityType::on_demand)
    out.key("pricing").text(to_text(pool.pricing));
  if (!pool.fallback_for.empty()) out.key("fallback_for").text(pool.fallback_for);
  if (pool.after) out.key("after").text(duration_word(*pool.after));
  out.end_map();
}

void write(OneLine& out, const std::vector<PoolSpec>& pools) {
  out.begin_list();
  for (const PoolSpec& pool : pools) write(out, pool);
  out.end_list();
}

/// Of the keys that a candidate's clusters have.
void write(OneLine& out, const ClusterSpec& cluster) {
  out.begin_map().key("provider").text(to_text(cluster.provider));
  if (cluster.service) out.key("service").text(to_text(*cluster.service));
  out.key("region").text(cluster.region);
  if (!cluster.zone.empty()) out.key("zone").text(cluster.zone);
  write(out.key("pools"), cluster.pools);
  out.end_map();
}

/// Of the keys that a candidate's strategies have.
void write(OneLine& out, const StrategySpec& s) {
  const auto number = [&out](std::string_view key, const std::optional<int>& value) {
    if (value) out.key(key).number(*value);
  };
  const auto truth = [&out](std::string_view key, const std::optional<bool>& value) {
    if (value) out.key(key).truth(*value);
  };
  out.begin_map().key("kind").text(to_text(s.kind));
  number("workers", s.workers);
  number("accelerators_per_worker", s.accelerators_per_worker);
  number("parameter_servers", s.parameter_servers);
  number("data", s.data);
  number("tensor", s.tensor);
  number("pipeline", s.pipeline);
  number("context", s.context);
  number("expert", s.expert);
  number("zero_stage", s.zero_stage);
  if (s.schedule) out.key("schedule").text(to_text(*s.schedule));
  number("interleave", s.interleave);
  truth("sequence_parallel", s.sequence_parallel);
  truth("overlap", s.overlap);
  truth("offload_optimizer", s.offload_optimizer);
  number("micro_batch", s.micro_batch);
  if (s.recompute) out.key("recompute").text(to_text(*s.recompute));
  if (s.all_reduce != AllReduceKind::automatic) out.key("all_reduce").text(to_text(s.all_reduce));
  out.end_map();
}

template <class Value>
std::string set(std::string_view path, const Value& value) {
  OneLine out;
  write(out, value);
  return fmt::format("{}={}", path, out.done());
}
std::string set(std::string_view path, int value) { return fmt::format("{}={}", path, value); }
std::string set_word(std::string_view path, std::string_view word) {
  return fmt::format("{}={}", path, word.empty() ? "''" : yaml_word(word));
}
std::string in_pool(const std::string& pool, std::string_view key) {
  return fmt::format("cluster.pools.{}{}{}", pool, key.empty() ? "" : ".", key);
}

std::string text_of(const SetCluster& c) { return set("cluster", c.cluster); }
std::string text_of(const SetRegion& c) { return set_word("cluster.region", c.region); }
std::string text_of(const SetZone& c) { return set_word("cluster.zone", c.zone); }
std::string text_of(const SetPools& c) { return set("cluster.pools", c.pools); }
std::string text_of(const SetPool& c) { return set(in_pool(c.pool.name, ""), c.pool); }
std::string text_of(const SetNodes& c) { return set(in_pool(c.pool, "nodes"), c.nodes); }
std::string text_of(const SetAutoscaling& c) {
  return set_word(in_pool(c.pool, "autoscaling"), c.on ? "true" : "false");
}
std::string text_of(const SetCapacityType& c) {
  return set_word(in_pool(c.pool, "pricing"), to_text(c.type));
}
std::string text_of(const SetMachine& c) { return set_word(in_pool(c.pool, "machine"), c.machine); }
std::string text_of(const SetPrecision& c) {
  return set_word("workload.precision", to_text(c.precision));
}
std::string text_of(const SetCheckpointInterval& c) {
  using Mode = CheckpointSpec::Mode;
  const std::string word = c.mode == Mode::none      ? "none"
                           : c.mode == Mode::optimal ? "optimal"
                                                     : duration_word(c.interval);
  return set_word("workload.checkpoint.interval", word);
}
std::string text_of(const SetCheckpointStorage& c) {
  return set_word("workload.checkpoint.storage", c.storage);
}
std::string text_of(const SetRestart& c) {
  std::string text = fmt::format("kind: {}", to_text(c.restart.kind));
  if (c.restart.spares) text += fmt::format(", spares: {}", *c.restart.spares);
  if (c.restart.min) text += fmt::format(", min: {}", *c.restart.min);
  if (c.restart.batch != ElasticBatch::fixed)
    text += fmt::format(", batch: {}", to_text(c.restart.batch));
  return fmt::format("workload.restart={{{}}}", text);
}
std::string text_of(const SetStrategy& c) { return set("workload.strategy", c.strategy); }
std::string text_of(const SetWorkers& c) { return set("workload.strategy.workers", c.workers); }
std::string text_of(const SetParameterServers& c) {
  return set("workload.strategy.parameter_servers", c.servers);
}
std::string text_of(const SetZeroStage& c) { return set("workload.strategy.zero_stage", c.stage); }
std::string text_of(const SetMicroBatch& c) {
  return set("workload.strategy.micro_batch", c.samples);
}
std::string text_of(const SetRecompute& c) {
  return set_word("workload.strategy.recompute", to_text(c.mode));
}
std::string text_of(const SetBatchPerAccelerator& c) {
  return set("workload.batch_per_accelerator", c.samples);
}
std::string text_of(const RemoveReservations&) { return "prices.reserved=[]"; }

}  // namespace

void apply_changes(std::span<const Change> changes, Scenario& scenario) {
  for (const Change& one : changes)
    std::visit([&](const auto& typed) { change(scenario, typed); }, one);
}

std::string to_text(const Change& change) {
  return std::visit([](const auto& typed) { return text_of(typed); }, change);
}

std::vector<std::string> texts(std::span<const Change> changes) {
  std::vector<std::string> out;
  for (const Change& one : changes) out.push_back(to_text(one));
  return out;
}

bool same_changes(std::span<const Change> a, std::span<const Change> b) {
  return texts(a) == texts(b);
}

}  // namespace reckon::planner
