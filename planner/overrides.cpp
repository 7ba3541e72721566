#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "planner/space.h"
#include "sim/scenario/plan_draft.h"

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

std::string pool_text(const Question& q, const Hardware& h, const Offer& offer, const Shape& s) {
  const PoolSpec& own = worker_pool(q.file.scenario);
  std::string text = fmt::format("{{name: {}, ", own.name);
  if (own.role) text += fmt::format("role: {}, ", planning::to_text(*own.role));
  return text + node_text(h) +
         fmt::format("nodes: {}, pricing: {}}}", s.nodes, to_text(offer.pricing));
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

void add_cluster(const Question& q, const Hardware& h, const Offer& offer, const Shape& s,
                 std::vector<std::string>& out) {
  const ClusterSpec& cluster = q.file.scenario.cluster;
  const std::string pool = "cluster.pools." + worker_pool(q.file.scenario).name;
  if (h.own && is_mixed(offer)) {
    out.push_back(fmt::format("cluster.pools=[{}]", pools_of_mix(q, h, offer, s)));
  } else if (h.own) {
    if (worker_pool(q.file.scenario).nodes.initial != s.nodes || q.may.nodes.size() > 1)
      out.push_back(fmt::format("{}.nodes={}", pool, s.nodes));
    out.push_back(fmt::format("{}.pricing={}", pool, to_text(offer.pricing)));
  } else if (h.provider == cluster.provider && cluster.pools.size() > 1) {
    out.push_back("cluster.region=" + offer.region);
    out.push_back(fmt::format("{}={}", pool, pool_text(q, h, offer, s)));
  } else {
    const bool same = h.provider == cluster.provider;
    std::string place;
    if (same && cluster.service) place = fmt::format("service: {}, ", to_text(*cluster.service));
    place += "region: " + offer.region;
    if (same && offer.region == cluster.region && !cluster.zone.empty())
      place += ", zone: " + cluster.zone;
    out.push_back(
        fmt::format("cluster={{provider: {}, {}, pools: [{}]}}", to_text(h.provider), place,
                    is_mixed(offer) ? pools_of_mix(q, h, offer, s) : pool_text(q, h, offer, s)));
  }
  if (s.parameter_servers == 0) return;
  for (const PoolSpec& p : cluster.pools)
    if (p.role == Role::parameter_server)
      out.push_back(fmt::format("cluster.pools.{}.nodes={}", p.name, s.parameter_servers));
}

std::string degrees_text(const Layout& l) {
  std::string text = fmt::format("data: {}, tensor: {}, pipeline: {}, context: {}, expert: {}",
                                 l.data, l.tensor, l.pipeline, l.context, l.expert);
  text += fmt::format(", zero_stage: {}, schedule: {}", l.zero_stage, word(l.schedule));
  if (l.schedule == PipelineSchedule::interleaved)
    text += fmt::format(", interleave: {}", l.interleave);
  if (l.tensor > 1) text += fmt::format(", sequence_parallel: {}", l.sequence_parallel);
  if (l.offload_optimizer) text += ", offload_optimizer: true";
  return text;
}

/// The whole strategy of a kind that the scenario does not have, or whose degrees are chosen.
std::string strategy_yaml(const Shape& s, bool batch_is_given) {
  const Layout& l = s.layout;
  std::string text = fmt::format("{{kind: {}", planning::to_text(s.kind));
  if (s.kind == StrategyKind::multi_worker_mirrored || s.kind == StrategyKind::sharded)
    text += fmt::format(", workers: {}", s.nodes);
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
        (several && offer.mix.patience))
      out.push_back(fmt::format("{}workers={}", at, workers_of(w, s)));
    if (s.kind == StrategyKind::parameter_server && s.parameter_servers > 0)
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
  return offer.mix.patience ? shape.nodes + rest : shape.nodes;
}

std::string bought_text(const Offer& offer, int nodes) {
  if (!is_mixed(offer)) return std::string(to_text(offer.pricing));
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
  std::string text(planning::to_text(s.kind));
  if (s.kind == StrategyKind::model_parallel) {
    text += fmt::format(", data {} x tensor {} x pipeline {}", l.data, l.tensor, l.pipeline);
    if (l.context > 1) text += fmt::format(" x context {}", l.context);
    if (l.expert > 1) text += fmt::format(", expert {}", l.expert);
    if (l.schedule == PipelineSchedule::interleaved)
      text += fmt::format(", {} parts a stage", l.interleave);
  }
  if (l.zero_stage > 0) text += fmt::format(", ZeRO-{}", l.zero_stage);
  if (s.parameter_servers > 0) text += fmt::format(", {} servers", s.parameter_servers);
  text += fmt::format(", batch {}", l.micro_batch);
  if (l.micro_batches > 1) text += fmt::format(" x {}", l.micro_batches);
  if (l.recompute != Recompute::none) text += fmt::format(", {} recomputation", word(l.recompute));
  return text;
}

}  // namespace reckon::planner
