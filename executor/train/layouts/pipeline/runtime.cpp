#include "executor/train/layouts/pipeline/runtime.h"

#include <algorithm>
#include <utility>

#include "executor/train/layouts/pipeline/state.h"
#include "sim/base/check.h"

namespace reckon {
namespace {

bool reads_data(const LayerOp& op) {
  const auto* select = std::get_if<SelectTokens>(&op);
  return std::holds_alternative<InputLayer>(op) ||
         std::holds_alternative<SoftmaxCrossEntropy>(op) ||
         std::holds_alternative<SigmoidCrossEntropy>(op) ||
         std::holds_alternative<MeanSquaredError>(op) || (select != nullptr && select->masked);
}

}  // namespace

PipelineRuntime::PipelineRuntime(const ModelGraph& model, const RuntimeOptions& options,
                                 const Layout& layout, PipelinePeers peers,
                                 std::unique_ptr<StageCompute> compute, ZeroExchange* gathers)
    : model_(model),
      layout_(layout),
      peers_(peers),
      stage_(peers.onward.rank()),
      compute_(std::move(compute)),
      gathers_(gathers) {
  RECKON_CHECK((layout.zero_stage >= 3) == (gathers != nullptr));
  RECKON_CHECK(peers.onward.size() == layout.pipeline && layout.pipeline > 1);
  RuntimeOptions part_options = options;
  const PipelineStages stages(model, layout, options.stage_blocks);
  const auto& spans = stages.parts[std::size_t(stage_)];
  const std::vector<std::int64_t> at_once = most_in_flight(layout, stage_);
  for (std::size_t k = 0; k < spans.size(); ++k) {
    StagePart part{.layers = spans[k],
                   .first = spans[k].first == 0,
                   .last = spans[k].end == model.layers().size()};
    for (std::size_t i = part.layers.first; i < part.layers.end; ++i)
      part.needs_data |= reads_data(model.layers()[i].op);
    part_options.part = part.layers;
    for (std::int64_t n = at_once[k]; n > 0; --n)
      part.passes.push_back({compute_->make_part(part_options)});
    for (const auto& s : part.passes[0].runtime->running_statistics())
      part.statistics.emplace_back(s.values.begin(), s.values.end());
    parts_.push_back(std::move(part));
  }
  for (const Layer& layer : model.layers()) {
    no_data_.inputs.resize(no_data_.inputs.size() + std::holds_alternative<InputLayer>(layer.op));
    no_data_.targets.resize(no_data_.targets.size() +
                            (reads_data(layer.op) &&
                             !std::holds_alternative<InputLayer>(layer.op) &&
                             !std::holds_alternative<SelectTokens>(layer.op)));
  }
  const auto& slots = compute_->layout().slots;
  for (std::size_t k = 0; k < slots.size(); ++k) {
    if (slots[k].copied)
      borrowed_.push_back({k, stages.stage_of(index(slots[k].layer))});
    else if (!slots[k].name.ends_with(".bias"))
      for (int other = 0; other < layout.pipeline; ++other) {
        const bool has_copy = std::ranges::any_of(model.layers(), [&](const Layer& layer) {
          return layer.tied_to == slots[k].layer && stages.stage_of(index(layer.id)) == other;
        });
        if (other != stage_ && has_copy) lent_.push_back({k, other});
      }
  }
  if (layout_.zero_stage >= 2) find_blocks();
}

/// The exchange's, and when passes use them.
void PipelineRuntime::find_blocks() {
  blocks_ = exchange_blocks(model_, compute_->exchanged_layout());
  if (gathers_ == nullptr) return;
  walk_.emplace(*gathers_);
  for (StagePart& part : parts_) {
    const PartRuntime& any = *part.passes.front().runtime;
    const Schedule& schedule = any.schedule();
    const auto uses = [&](std::size_t from, std::size_t to) {
      return block_uses(any.rank_model(), compute_->exchanged_layout(), blocks_, schedule, to,
                        from);
    };
    part.forward = uses(0, schedule.forward_count);
    part.backward = uses(schedule.forward_count, schedule.actions.size());
    for (PassInFlight& flight : part.passes)
      flight.runtime->set_hooks({.before = [this](std::size_t action) { walk_->before(action); },
                                 .after = [this](std::size_t action) { walk_->after(action); }});
  }
}

std::vector<RunningStatistics<float>> PipelineRuntime::running_statistics() {
  std::vector<RunningStatistics<float>> all;
  for (StagePart& part : parts_) {
    const auto named = part.passes[0].runtime->running_statistics();
    for (std::size_t k = 0; k < named.size(); ++k)
      all.push_back({named[k].name, part.statistics[k]});
  }
  return all;
}

Bytes PipelineRuntime::activation_memory() const {
  Bytes sum{};
  for (const StagePart& part : parts_)
    for (const PassInFlight& flight : part.passes) sum += flight.runtime->activation_memory();
  return sum;
}

std::unique_ptr<StepRuntime> make_pipeline_runtime(const ModelGraph& model,
                                                   const RuntimeOptions& options,
                                                   const Layout& layout, PipelinePeers peers,
                                                   std::unique_ptr<StageCompute> compute,
                                                   ZeroExchange* gathers) {
  return std::make_unique<PipelineRuntime>(model, options, layout, peers, std::move(compute),
                                           gathers);
}

}  // namespace reckon
