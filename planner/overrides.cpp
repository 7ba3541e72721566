#include <fmt/format.h>

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

std::string pool_text(const Question& q, const Hardware& h, const Offer& offer, const Shape& s) {
  const PoolSpec& own = worker_pool(q.file.scenario);
  std::string text = fmt::format("{{name: {}, ", own.name);
  if (own.role) text += fmt::format("role: {}, ", planning::to_text(*own.role));
  if (h.slice.empty())
    text += fmt::format("machine: {}, accelerator: {{type: {}, count: {}}}, ", h.machine,
                        h.accelerator, h.per_node);
  else
    text += fmt::format("tpu: {{type: {}, slice: {}}}, ", h.accelerator, h.slice);
  return text + fmt::format("nodes: {}, pricing: {}}}", s.nodes, to_text(offer.pricing));
}

void add_cluster(const Question& q, const Hardware& h, const Offer& offer, const Shape& s,
                 std::vector<std::string>& out) {
  const ClusterSpec& cluster = q.file.scenario.cluster;
  const std::string pool = "cluster.pools." + worker_pool(q.file.scenario).name;
  if (h.own) {
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
    out.push_back(fmt::format("cluster={{provider: {}, {}, pools: [{}]}}", to_text(h.provider),
                              place, pool_text(q, h, offer, s)));
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

void add_strategy(const Question& q, const Shape& s, std::vector<std::string>& out) {
  const WorkloadSpec& w = *q.file.scenario.workload;
  const bool same_kind = w.strategy.kind == s.kind && s.kind != StrategyKind::model_parallel;
  const bool shared_out = q.may.global_batch.has_value();
  if (!same_kind) {
    out.push_back("workload.strategy=" + strategy_yaml(s, shared_out));
  } else {
    const Layout& l = s.layout;
    const std::string at = "workload.strategy.";
    if (w.strategy.workers || s.kind == StrategyKind::parameter_server) {
      const std::int64_t per_worker = s.kind == StrategyKind::parameter_server
                                          ? w.strategy.accelerators_per_worker.value_or(1)
                                          : std::max<std::int64_t>(1, l.accelerators() / s.nodes);
      out.push_back(fmt::format("{}workers={}", at,
                                l.accelerators() / std::max<std::int64_t>(1, per_worker)));
    }
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
  add_strategy(question, shape, out);
  return out;
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
