#include "sim/scenario/layout_rules.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace reckon {
namespace {

class Rules {
 public:
  Rules(const LayoutLimits& limits, const Layout& layout) : limits_(limits), l_(layout) {}

  void check_product(int accelerators) {
    if (l_.accelerators() == accelerators) return;
    const std::int64_t others = std::int64_t{l_.tensor} * l_.pipeline * l_.context;
    broken(
        "data",
        fmt::format("data {} x tensor {} x pipeline {} x context {} are {} accelerators, the "
                    "strategy has {}",
                    l_.data, l_.tensor, l_.pipeline, l_.context, l_.accelerators(), accelerators),
        accelerators % others == 0
            ? fmt::format("data: {} fills them (expert parallelism is inside data)",
                          accelerators / others)
            : fmt::format("{} accelerators cannot be divided by tensor x pipeline x context = {}",
                          accelerators, others));
  }

  void check_tensor() {
    if (l_.tensor == 1) return;
    if (!limits_.attention)
      broken("tensor",
             fmt::format("tensor parallelism shares out attention heads, model {} has none",
                         limits_.model),
             "tensor: 1");
    for (const auto heads : limits_.widths.heads)
      divides("tensor", l_.tensor, heads, "attention heads");
    for (const auto heads : limits_.widths.kv_heads)
      if (std::ranges::find(limits_.widths.heads, heads) == limits_.widths.heads.end())
        divides("tensor", l_.tensor, heads, "key-value heads");
    for (const auto width : limits_.widths.features)
      divides("tensor", l_.tensor, width, "features of the feed-forward layers");
    const std::int64_t tokens = limits_.sequence_length / l_.context;
    if (l_.sequence_parallel && limits_.attention && tokens % l_.tensor != 0)
      broken("sequence_parallel",
             fmt::format("tensor {} does not divide the {} tokens that sequence parallelism shares "
                         "out",
                         l_.tensor, tokens),
             "sequence_parallel: false, or another sequence_length");
  }

  void check_pipeline() {
    const std::int64_t chunks = std::int64_t{l_.pipeline} * l_.interleave;
    if (l_.pipeline > limits_.blocks)
      broken("pipeline",
             fmt::format("{} pipeline stages for the {} blocks of model {}", l_.pipeline,
                         limits_.blocks, limits_.model),
             fmt::format("at most {}", limits_.blocks));
    if (l_.schedule != PipelineSchedule::interleaved) return;
    if (l_.pipeline == 1)
      broken("schedule", "an interleaved schedule needs a pipeline, which has one stage",
             "pipeline: 2 or more");
    if (chunks > limits_.blocks || limits_.blocks % chunks != 0)
      broken("interleave",
             fmt::format("pipeline {} x interleave {} = {} parts do not divide the {} blocks of "
                         "model {}",
                         l_.pipeline, l_.interleave, chunks, limits_.blocks, limits_.model));
    // [Narayanan et al. 2021, Sec. 2.2.2]
    if (l_.pipeline > 1 && l_.micro_batches % l_.pipeline != 0)
      broken("pipeline",
             fmt::format("an interleaved schedule needs a multiple of its {} stages in "
                         "micro-batches, and has {}",
                         l_.pipeline, l_.micro_batches),
             "another global_batch or micro_batch, or schedule: 1f1b");
  }

  void check_context() {
    if (l_.context == 1) return;
    if (!limits_.attention) {
      broken("context",
             fmt::format("context parallelism shares out a sequence's tokens, model {} has no "
                         "attention",
                         limits_.model),
             "context: 1");
      return;
    }
    // Each rank has a part of the front and one of the back, so that all see equally many tokens
    // before theirs.
    if (limits_.sequence_length % (2 * std::int64_t{l_.context}) != 0)
      broken("context", fmt::format("context {} needs a sequence_length that {} divides, not {}",
                                    l_.context, 2 * l_.context, limits_.sequence_length));
  }

  void check_expert() {
    if (l_.expert == 1) return;
    if (limits_.experts.empty())
      broken("expert", fmt::format("model {} has no experts to share out", limits_.model),
             "expert: 1");
    for (const auto experts : limits_.experts) divides("expert", l_.expert, experts, "experts");
    if (l_.data % l_.expert != 0)
      broken("expert",
             fmt::format("expert {} does not divide data {}: the data-parallel ranks share the "
                         "experts out",
                         l_.expert, l_.data));
  }

  void check_batch(std::int64_t global_batch) {
    const std::int64_t at_once = std::int64_t{l_.data} * l_.micro_batch;
    if (global_batch % at_once == 0) return;
    const std::int64_t below = global_batch / at_once * at_once;
    broken("global_batch",
           fmt::format("global_batch {} is not divisible by data {} x micro_batch {}", global_batch,
                       l_.data, l_.micro_batch),
           below > 0 ? fmt::format("{} and {} are", below, below + at_once)
                     : fmt::format("the smallest is {}", at_once));
  }

  void check_state() {
    // With an offloaded optimizer the stage says what leaves for the host.
    if (l_.zero_stage == 0 || l_.replicas_of_state() > 1 || l_.offload_optimizer) return;
    broken("zero_stage", fmt::format("zero_stage {} shards state over one rank", l_.zero_stage),
           "leave zero_stage out, or more data-parallel ranks; or offload_optimizer: true");
  }

  std::vector<BrokenRule> take() { return std::move(rules_); }

 private:
  void broken(std::string key, std::string what, std::string hint = "") {
    rules_.push_back({std::move(key), std::move(what), std::move(hint)});
  }
  void divides(std::string key, int degree, std::int64_t whole, std::string_view of) {
    if (whole % degree != 0)
      broken(key, fmt::format("{} {} does not divide the {} {} of model {}", key, degree, whole, of,
                              limits_.model));
  }

  const LayoutLimits& limits_;
  const Layout& l_;
  std::vector<BrokenRule> rules_;
};

/// Blocks with attention, of a network that has any; else groups of layers with weights.
int blocks_of(const ModelGraph& model, bool attention) {
  int blocks = 0;
  bool counted = false;
  for (std::size_t i = 0; i < model.layers().size(); ++i) {
    const Layer& layer = model.layers()[i];
    if (i == 0 || layer.group.empty() || layer.group != model.layers()[i - 1].group)
      counted = false;
    const bool counts = attention ? std::holds_alternative<Attention>(layer.op)
                                  : model.counts()[i].weights_read > 0;
    if (counted || !counts) continue;
    ++blocks;
    counted = true;
  }
  return blocks;
}

}  // namespace

LayoutLimits::LayoutLimits(const ModelGraph& graph)
    : model(graph.name()), widths(sharded_widths(graph)) {
  sequence_length = graph.sequence_length();
  attention = !widths.heads.empty();
  blocks = blocks_of(graph, attention);
  std::set<std::int64_t> numbers;
  for (const Layer& layer : graph.layers())
    if (const auto* e = std::get_if<ExpertLinear>(&layer.op)) numbers.insert(e->experts);
  experts.assign(numbers.begin(), numbers.end());
}

std::vector<BrokenRule> broken_rules(const LayoutLimits& limits, const Layout& layout,
                                     int accelerators, std::int64_t global_batch) {
  Rules rules(limits, layout);
  rules.check_product(accelerators);
  rules.check_tensor();
  rules.check_pipeline();
  rules.check_context();
  rules.check_expert();
  rules.check_batch(global_batch);
  rules.check_state();
  return rules.take();
}

std::vector<std::string> doubtful_choices(const Layout& layout, int accelerators_per_node) {
  std::vector<std::string> found;
  if (layout.tensor > accelerators_per_node || accelerators_per_node % layout.tensor != 0)
    found.push_back(
        fmt::format("tensor {} does not stay inside nodes of {} accelerators: every layer waits "
                    "for the network",
                    layout.tensor, accelerators_per_node));
  return found;
}

}  // namespace reckon
