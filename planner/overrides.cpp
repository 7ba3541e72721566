#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>

#include "planner/space.h"
#include "sim/scenario/resolve/draft.h"

// A candidate as a scenario: what is put over the base.
namespace reckon::planner {
namespace {

std::string_view word(Recompute r) {
  return r == Recompute::none ? "none" : r == Recompute::selective ? "selective" : "full";
}
std::string_view word(PipelineSchedule s) {
  switch (s) {
    case PipelineSchedule::gpipe:
      return "gpipe";
    case PipelineSchedule::one_forward_one_backward:
      return "1f1b";
    case PipelineSchedule::interleaved:
      return "interleaved";
  }
  return "";
}

std::string node_text(const Hardware& h) {
  if (!h.slice.empty())
    return fmt::format("tpu: {{type: {}, slice: {}}}, ", h.accelerator, h.slice);
  if (h.accelerator.empty()) return fmt::format("machine: {}, ", h.machine);
  return fmt::format("machine: {}, accelerator: {{type: {}, count: {}}}, ", h.machine,
                     h.accelerator, h.per_node);
}

/// "3", or "{initial: 0, min: 0, max: 3}" of a pool that is autoscaled.
std::string nodes_text(const Offer& offer, int gang) {
  const PoolBounds& bounds = offer.bounds;
  const int least = bounds.least_nodes(gang), most = bounds.most_nodes(gang);
  return least == most ? std::to_string(most)
                       : fmt::format("{{initial: {0}, min: {0}, max: {1}}}", least, most);
}
bool is_autoscaled(const Offer& offer, int gang) {
  return offer.bounds.least_nodes(gang) < offer.bounds.most_nodes(gang);
}

/// Do servers need a pool that the scenario does not have?
bool adds_servers(const Question& q, const Hardware& h, const Shape& s) {
  const bool replaced = !h.own && h.provider != q.file.scenario.cluster.provider;
  return s.parameter_servers > 0 && !h.server_machine.empty() &&
         (replaced || server_pool(q.file.scenario) == nullptr);
}
/// With the comma in front of it; "": there are none, or the scenario has their pool.
std::string added_servers(const Question& q, const Hardware& h, const Shape& s) {
  if (!adds_servers(q, h, s)) return "";
  const bool taken = worker_pool(q.file.scenario).name == "servers";
  return fmt::format(", {{name: {}, role: parameter_server, machine: {}, nodes: {}}}",
                     taken ? "parameter-servers" : "servers", h.server_machine,
                     s.parameter_servers);
}

std::string pool_text(const Question& q, const Hardware& h, const Offer& offer, const Shape& s) {
  const PoolSpec& own = worker_pool(q.file.scenario);
  std::string text = fmt::format("{{name: {}, ", own.name);
  if (own.role || adds_servers(q, h, s)) text += "role: worker, ";
  text += node_text(h) + fmt::format("nodes: {}, ", nodes_text(offer, s.nodes));
  if (is_autoscaled(offer, s.nodes)) text += "autoscaling: true, ";
  return text + fmt::format("pricing: {}}}", to_text(offer.pricing));
}

bool is_mixed(const Offer& offer) { return offer.mix.share > 0 || offer.mix.patience; }

/// The pools of a mix: the base, where the chief of the workers then is; the spot nodes; and those
/// that stand in for them.
std::string pools_of_mix(const Question& q, const Hardware& h, const Offer& offer, const Shape& s) {
  const std::string& own = worker_pool(q.file.scenario).name;
  const int base = base_nodes(offer, s.nodes), rest = s.nodes - base;
  const std::string node = "role: worker, " + node_text(h);
  std::string out, spot = own;
  if (base > 0) {
    out = fmt::format("{{name: {}, {}nodes: {}, pricing: {}}}, ", own, node, base,
                      to_text(offer.mix.base));
    spot += "-spot";
  }
  if (!offer.mix.patience)
    return out + fmt::format("{{name: {}, {}nodes: {}, pricing: spot}}", spot, node, rest);
  const std::string scaled =
      fmt::format("nodes: {{initial: 0, min: 0, max: {}}}, autoscaling: true", rest);
  return out + fmt::format(
                   "{{name: {0}, {1}{2}, pricing: spot}}, {{name: {0}-stand-in, {1}{2}, "
                   "pricing: on_demand, stands_in_for: {0}, after: {3}}}",
                   spot, node, scaled, offer.mix.patience_text);
}

void add_zone(const Offer& offer, std::vector<std::string>& out) {
  if (!offer.zone.empty()) out.push_back("cluster.zone=" + offer.zone);
}

/// Of the scenario's own pool: as it stands where nothing of it varies.
void add_own_nodes(const Question& q, const Offer& offer, const Shape& s,
                   std::vector<std::string>& out) {
  const PoolSpec& own = worker_pool(q.file.scenario);
  const std::string pool = "cluster.pools." + own.name;
  const bool varied = own.nodes.initial != s.nodes || q.may.nodes.size() > 1;
  if (!varied && q.may.bounds.empty()) return;
  out.push_back(fmt::format("{}.nodes={}", pool, nodes_text(offer, s.nodes)));
  const bool autoscaled = is_autoscaled(offer, s.nodes);
  if (autoscaled != own.autoscaling)
    out.push_back(fmt::format("{}.autoscaling={}", pool, autoscaled));
}

void add_cluster(const Question& q, const Hardware& h, const Offer& offer, const Shape& s,
                 std::vector<std::string>& out) {
  const ClusterSpec& cluster = q.file.scenario.cluster;
  const std::string pool = "cluster.pools." + worker_pool(q.file.scenario).name;
  if (h.own && (is_mixed(offer) || adds_servers(q, h, s))) {
    add_zone(offer, out);
    out.push_back(
        fmt::format("cluster.pools=[{}{}]",
                    is_mixed(offer) ? pools_of_mix(q, h, offer, s) : pool_text(q, h, offer, s),
                    added_servers(q, h, s)));
  } else if (h.own) {
    add_zone(offer, out);
    add_own_nodes(q, offer, s, out);
    out.push_back(fmt::format("{}.pricing={}", pool, to_text(offer.pricing)));
  } else if (h.provider == cluster.provider && cluster.pools.size() > 1) {
    out.push_back("cluster.region=" + offer.region);
    // A zone of the scenario's own region is none of another.
    if (!offer.zone.empty() || (!cluster.zone.empty() && offer.region != cluster.region))
      out.push_back(fmt::format("cluster.zone={}", offer.zone.empty() ? "''" : offer.zone));
    out.push_back(fmt::format("{}={}", pool, pool_text(q, h, offer, s)));
  } else {
    const bool same = h.provider == cluster.provider;
    std::string place;
    if (same && cluster.service) place = fmt::format("service: {}, ", to_text(*cluster.service));
    place += "region: " + offer.region;
    if (!offer.zone.empty())
      place += ", zone: " + offer.zone;
    else if (same && offer.region == cluster.region && !cluster.zone.empty() && !q.may.zone)
      place += ", zone: " + cluster.zone;
    out.push_back(
        fmt::format("cluster={{provider: {}, {}, pools: [{}{}]}}", to_text(h.provider), place,
                    is_mixed(offer) ? pools_of_mix(q, h, offer, s) : pool_text(q, h, offer, s),
                    added_servers(q, h, s)));
    return;
  }
  const PoolSpec* servers = server_pool(q.file.scenario);
  if (s.parameter_servers == 0 || servers == nullptr) return;
  const std::string at = "cluster.pools." + servers->name;
  out.push_back(fmt::format("{}.nodes={}", at, s.parameter_servers));
  if (!h.server_machine.empty()) out.push_back(fmt::format("{}.machine={}", at, h.server_machine));
}

std::string degrees_text(const Layout& l) {
  std::string text = fmt::format("data: {}, tensor: {}, pipeline: {}, context: {}, expert: {}",
                                 l.data, l.tensor, l.pipeline, l.context, l.expert);
  text += fmt::format(", zero_stage: {}, schedule: {}", l.zero_stage, word(l.schedule));
  if (l.schedule == PipelineSchedule::interleaved)
    text += fmt::format(", interleave: {}", l.interleave);
  if (l.tensor > 1) text += fmt::format(", sequence_parallel: {}", l.sequence_parallel);
  if (!l.overlap) text += ", overlap: false";
  if (l.offload_optimizer) text += ", offload_optimizer: true";
  return text;
}

/// The whole strategy of a kind that the scenario does not have, or whose degrees are chosen.
std::string strategy_yaml(const Shape& s, bool batch_is_given) {
  const Layout& l = s.layout;
  std::string text = fmt::format("{{kind: {}", to_text(s.kind));
  if (s.kind == StrategyKind::multi_worker_mirrored || s.kind == StrategyKind::sharded)
    text += fmt::format(", workers: {}", s.nodes);
  if (s.kind == StrategyKind::parameter_server)
    text +=
        fmt::format(", workers: {}, parameter_servers: {}", l.accelerators(), s.parameter_servers);
  if (s.kind == StrategyKind::sharded) text += fmt::format(", zero_stage: {}", l.zero_stage);
  if (s.kind == StrategyKind::model_parallel) text += ", " + degrees_text(l);
  if (batch_is_given || s.kind == StrategyKind::model_parallel)
    text += fmt::format(", micro_batch: {}", l.micro_batch);
  return text + fmt::format(", recompute: {}}}", word(l.recompute));
}

/// Processes of a kind that has one for each accelerator or several on each node.
std::int64_t workers_of(const WorkloadSpec& w, const Shape& s) {
  const bool servers = s.kind == StrategyKind::parameter_server;
  const std::int64_t whole = servers ? 1 : s.layout.accelerators() / s.nodes;
  const std::int64_t each =
      w.strategy.kind == s.kind ? w.strategy.accelerators_per_worker.value_or(int(whole)) : whole;
  return s.layout.accelerators() / std::max<std::int64_t>(1, each);
}

void add_strategy(const Question& q, const Offer& offer, const Shape& s,
                  std::vector<std::string>& out) {
  const WorkloadSpec& w = *q.file.scenario.workload;
  const bool same_kind = w.strategy.kind == s.kind && s.kind != StrategyKind::model_parallel;
  const bool shared_out = q.may.global_batch.has_value();
  if (!same_kind) {
    out.push_back("workload.strategy=" + strategy_yaml(s, shared_out));
  } else {
    const Layout& l = s.layout;
    const std::string at = "workload.strategy.";
    // Pools that start empty do not say how many there are.
    const bool several =
        s.kind == StrategyKind::multi_worker_mirrored || s.kind == StrategyKind::sharded;
    if (w.strategy.workers || s.kind == StrategyKind::parameter_server ||
        (several && (offer.mix.patience || !offer.bounds.text.empty())))
      out.push_back(fmt::format("{}workers={}", at, workers_of(w, s)));
    if (s.kind == StrategyKind::parameter_server &&
        (s.parameter_servers > 0 || w.strategy.parameter_servers))
      out.push_back(fmt::format("{}parameter_servers={}", at, s.parameter_servers));
    if (s.kind == StrategyKind::sharded)
      out.push_back(fmt::format("{}zero_stage={}", at, l.zero_stage));
    if (shared_out) out.push_back(fmt::format("{}micro_batch={}", at, l.micro_batch));
    out.push_back(fmt::format("{}recompute={}", at, word(l.recompute)));
  }
  if (q.may.most_global_batch > 0)
    out.push_back(fmt::format("workload.batch_per_accelerator={}", s.layout.micro_batch));
}

}  // namespace

std::vector<std::string> overrides_for(const Question& question, const Hardware& hardware,
                                       const Offer& offer, const Shape& shape) {
  std::vector<std::string> out;
  add_cluster(question, hardware, offer, shape, out);
  if (!hardware.precision.empty()) out.push_back("workload.precision=" + hardware.precision);
  if (!hardware.checkpoint_interval.empty())
    out.push_back("workload.checkpoint.interval=" + hardware.checkpoint_interval);
  if (!hardware.checkpoint_storage.empty())
    out.push_back("workload.checkpoint.storage=" + hardware.checkpoint_storage);
  add_strategy(question, offer, shape, out);
  return out;
}

int base_nodes(const Offer& offer, int nodes) {
  constexpr double kRounding = 1e-9;
  return std::min(nodes, int(std::ceil(offer.mix.share * nodes - kRounding)));
}

int nodes_at_most(const Offer& offer, const Shape& shape) {
  const int rest = shape.nodes - base_nodes(offer, shape.nodes);
  if (offer.mix.patience) return shape.nodes + rest;
  return std::max(shape.nodes, offer.bounds.most_nodes(shape.nodes));
}

int nodes_at_most(const Offer& offer, const Shape& shape, CapacityType type) {
  if (!is_mixed(offer)) return offer.pricing == type ? nodes_at_most(offer, shape) : 0;
  const int base = base_nodes(offer, shape.nodes), rest = shape.nodes - base;
  int nodes = type == CapacityType::spot ? rest : 0;
  if (base > 0 && offer.mix.base == type) nodes += base;
  if (offer.mix.patience && type == CapacityType::on_demand) nodes += rest;
  return nodes;
}

int server_nodes(const Question& question, const Shape& shape) {
  return colocates_servers(question) ? 0 : shape.parameter_servers;
}

int nodes_paid(const Offer& offer, const Shape& shape) {
  return std::max(shape.nodes, offer.bounds.least_nodes(shape.nodes));
}

bool within_quotas(const Offer& offer, const Shape& shape, int per_node) {
  const auto within = [per_node](int nodes, int quota) {
    return std::int64_t{nodes} * per_node <= quota;
  };
  bool all = within(nodes_at_most(offer, shape), offer.quota);
  for (const CapacityType type :
       {CapacityType::on_demand, CapacityType::spot, CapacityType::reserved})
    all = all && within(nodes_at_most(offer, shape, type), offer.quota_of_type[std::size_t(type)]);
  return all;
}

int quota_for(const Question& question, const Provider& provider, const std::string& region,
              const std::string& accelerator, std::optional<CapacityType> type) {
  std::string key = fmt::format("{}/{}/{}", to_text(provider), region, accelerator);
  if (type) key += fmt::format("/{}", to_text(*type));
  const auto found = question.quota.find(key);
  return found == question.quota.end() ? INT_MAX : found->second;
}

std::string bought_text(const Offer& offer, int nodes) {
  if (!is_mixed(offer)) {
    std::string text(to_text(offer.pricing));
    const int least = offer.bounds.least_nodes(nodes), most = offer.bounds.most_nodes(nodes);
    if (least < most) return text + fmt::format(", in a pool of {}..{}", least, most);
    if (most > nodes) return text + fmt::format(", {} of them spare", most - nodes);
    return text;
  }
  const int base = base_nodes(offer, nodes);
  std::string text;
  if (base > 0) text = fmt::format("{} {} + ", base, to_text(offer.mix.base));
  text += fmt::format("{} spot", nodes - base);
  if (offer.mix.patience)
    text += fmt::format(", on_demand stand in after {}", offer.mix.patience_text);
  return text;
}

std::string hardware_text(const Hardware& h, int nodes) {
  if (!h.slice.empty()) return fmt::format("{} ({} {})", h.slice, h.per_node, h.accelerator);
  const std::string machine = h.machine.empty() ? "machine of your own" : h.machine;
  if (h.accelerator.empty()) return fmt::format("{} x {}", nodes, machine);
  return fmt::format("{} x {} with {} {}", nodes, machine, h.per_node, h.accelerator);
}

std::string checkpoint_text(const Hardware& h) {
  std::string text;
  if (h.checkpoint_interval == "none")
    text = "no checkpoints";
  else if (!h.checkpoint_interval.empty())
    text = h.checkpoint_interval == "optimal" ? "checkpoints at the optimal interval"
                                              : "checkpoints every " + h.checkpoint_interval;
  if (!h.checkpoint_storage.empty())
    text += fmt::format("{} on {}", text.empty() ? "checkpoints" : "", h.checkpoint_storage);
  return text;
}

std::string strategy_text(const Shape& s) {
  const Layout& l = s.layout;
  std::string text(to_text(s.kind));
  if (s.kind == StrategyKind::model_parallel) {
    text += fmt::format(", data {} x tensor {} x pipeline {}", l.data, l.tensor, l.pipeline);
    if (l.context > 1) text += fmt::format(" x context {}", l.context);
    if (l.expert > 1) text += fmt::format(", expert {}", l.expert);
    if (l.schedule == PipelineSchedule::interleaved)
      text += fmt::format(", {} parts a stage", l.interleave);
  }
  if (l.zero_stage > 0) text += fmt::format(", ZeRO-{}", l.zero_stage);
  if (s.parameter_servers > 0)
    text += fmt::format(", {} server{}", s.parameter_servers, s.parameter_servers == 1 ? "" : "s");
  text += fmt::format(", batch {}", l.micro_batch);
  if (l.micro_batches > 1) text += fmt::format(" x {}", l.micro_batches);
  if (l.recompute != Recompute::none) text += fmt::format(", {} recomputation", word(l.recompute));
  return text;
}

}  // namespace reckon::planner
