#include "executor/train/layouts/pipeline/runtime.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <utility>

#include "executor/comm/paged_buffer.h"
#include "executor/train/lap.h"
#include "executor/train/layouts/block_walk.h"
#include "executor/train/layouts/exchange_blocks.h"
#include "executor/train/layouts/pipeline/stages.h"
#include "sim/base/check.h"
#include "sim/step/pipeline_passes.h"

namespace reckon {
namespace {

/// A micro-batch's data, from its first pass to its last one.
class HeldBatch {
 public:
  explicit HeldBatch(const BatchView& batch) : masked_(batch.masked.begin(), batch.masked.end()) {
    for (const auto& from : batch.inputs) view_.inputs.push_back(keep(from));
    for (const auto& from : batch.targets) view_.targets.push_back(keep(from));
    view_.masked = masked_;
  }
  const BatchView& view() const { return view_; }

 private:
  std::span<const float> keep(std::span<const float> from) {
    AlignedBuffer<float>& buffer = buffers_.emplace_back(from.size());
    std::ranges::copy(from, buffer.data());
    return buffer.span();
  }

  std::vector<AlignedBuffer<float>> buffers_;
  std::vector<std::int32_t> masked_;
  BatchView view_;
};

/// A copy of another stage's weight here, or a weight of ours that another stage has a copy of.
struct TiedWeight {
  ParameterRange range;
  int other = 0;
};

struct PassInFlight {
  std::unique_ptr<GraphRuntime<float>> runtime;
  std::int64_t micro_batch = -1;  // -1: free
};

/// Of the parameters or the gradients: on pages that may be given back, where parts of them go.
class StageBuffer {
 public:
  StageBuffer(std::size_t count, bool paged) {
    if (paged)
      paged_ = PagedBuffer(count);
    else
      whole_.emplace(count);
  }
  std::span<float> span() { return whole_ ? whole_->span() : paged_.span(); }

 private:
  std::optional<AlignedBuffer<float>> whole_;
  PagedBuffer paged_;
};

struct StagePart {
  LayerSpan layers;
  bool first = false, last = false;  // of the network
  bool needs_data = false;
  std::vector<PassInFlight> passes;
  std::vector<std::vector<float>> statistics;  // running, as they are now
  std::vector<BlockUse> forward, backward;     // zero_stage 3: of a pass
};

bool reads_data(const LayerOp& op) {
  const auto* select = std::get_if<SelectTokens>(&op);
  return std::holds_alternative<InputLayer>(op) ||
         std::holds_alternative<SoftmaxCrossEntropy>(op) ||
         std::holds_alternative<SigmoidCrossEntropy>(op) ||
         std::holds_alternative<MeanSquaredError>(op) || (select != nullptr && select->masked);
}

std::span<const std::byte> bytes_to_send(std::span<const float> values) {
  return std::as_bytes(values);
}

Seconds exchanged_in(GraphRuntime<float>& runtime, PassTimes& times) {
  const CommunicationTaken taken = runtime.take_exchanged();
  times.exchanging += taken.time;
  times.sent += taken.sent;
  return taken.time;
}

class PipelineRuntime final : public StepRuntime {
 public:
  PipelineRuntime(const ModelGraph& model, const RuntimeOptions& options, const Layout& layout,
                  PipelinePeers peers, Workers& workers, ZeroExchange* gathers);

  const ParameterLayout& layout() const override { return parameters_; }
  ParameterView exchanged() override { return {values_.span(), gradients_.span()}; }
  void begin_step() override;
  double forward(const BatchView&, StepPosition, bool) override { refuse(); }
  void backward(double, const std::function<void(ParameterRange)>&) override { refuse(); }
  PassTimes run_passes(const StepPasses& passes) override;
  std::span<float> values() override { return values_.span(); }
  std::vector<RunningStatistics<float>> running_statistics() override;
  void to_host() override {}
  void to_device() override {}
  Bytes activation_memory() const override;

 private:
  [[noreturn]] static void refuse() {
    throw std::logic_error("a stage of a pipeline runs whole steps, no single pass");
  }
  int next() const { return (stage_ + 1) % layout_.pipeline; }
  int before() const { return (stage_ + layout_.pipeline - 1) % layout_.pipeline; }
  PassInFlight& in_flight(StagePart& part, std::int64_t micro_batch);
  const BatchView& batch_of(std::int64_t micro_batch, const StepPasses& passes, PassTimes& times);
  void copy_statistics(StagePart& part, GraphRuntime<float>& runtime, bool out);
  void run_forward(const PipelinePass& pass, const StepPasses& passes, PassTimes& times);
  void run_backward(const PipelinePass& pass, const StepPasses& passes, PassTimes& times);
  void sum_tied(const StepPasses& passes, PassTimes& times);
  bool is_lent(ParameterRange range) const;
  bool waits_for_copies(ParameterRange range) const;
  void find_blocks();
  void lend(const TiedWeight& weight);
  void send(Communicator& by, std::span<const float> values, int to, PassTimes& times) const;

  const ModelGraph& model_;
  const Layout layout_;
  PipelinePeers peers_;
  const int stage_;
  const ParameterLayout parameters_;
  StageBuffer values_, gradients_;
  ZeroExchange* gathers_;          // nullptr: parameters are here, whole
  std::vector<ZeroBlock> blocks_;  // zero_stage 2 and 3
  std::optional<BlockWalk> walk_;
  std::vector<StagePart> parts_;
  std::vector<TiedWeight> borrowed_, lent_;
  std::vector<ParameterRange> held_back_;  // whose gradients lack those of copies
  BatchView no_data_;
  std::map<std::int64_t, HeldBatch> batches_;
  std::int64_t loaded_ = 0;  // micro-batches of this step
};

PipelineRuntime::PipelineRuntime(const ModelGraph& model, const RuntimeOptions& options,
                                 const Layout& layout, PipelinePeers peers, Workers& workers,
                                 ZeroExchange* gathers)
    : model_(model),
      layout_(layout),
      peers_(peers),
      stage_(peers.onward.rank()),
      parameters_(PipelineStages(model, layout)
                      .parameters(model, parameter_layout(model, options.place), stage_)),
      values_(parameters_.count, layout.zero_stage >= 3),
      gradients_(parameters_.count, layout.zero_stage >= 2),
      gathers_(gathers) {
  RECKON_CHECK((layout.zero_stage >= 3) == (gathers != nullptr));
  RECKON_CHECK(peers.onward.size() == layout.pipeline && layout.pipeline > 1);
  RuntimeOptions part_options = options;
  part_options.layout = parameters_;
  const PipelineStages stages(model, layout);
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
      part.passes.push_back({std::make_unique<GraphRuntime<float>>(model, part_options, workers)});
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
  for (const ParameterSlot& slot : parameters_.slots) {
    if (slot.copied)
      borrowed_.push_back({{slot.first, slot.count}, stages.stage_of(index(slot.layer))});
    else if (!slot.name.ends_with(".bias"))
      for (int other = 0; other < layout.pipeline; ++other) {
        const bool has_copy = std::ranges::any_of(model.layers(), [&](const Layer& layer) {
          return layer.tied_to == slot.layer && stages.stage_of(index(layer.id)) == other;
        });
        if (other != stage_ && has_copy) lent_.push_back({{slot.first, slot.count}, other});
      }
  }
  if (layout_.zero_stage >= 2) find_blocks();
}

/// The exchange's, and when passes use them.
void PipelineRuntime::find_blocks() {
  blocks_ = exchange_blocks(model_, parameters_);
  if (gathers_ == nullptr) return;
  walk_.emplace(*gathers_);
  for (StagePart& part : parts_) {
    const GraphRuntime<float>& any = *part.passes.front().runtime;
    const Schedule& schedule = any.schedule();
    const auto uses = [&](std::size_t from, std::size_t to) {
      return block_uses(any.rank_model(), parameters_, blocks_, schedule, to, from);
    };
    part.forward = uses(0, schedule.forward_count);
    part.backward = uses(schedule.forward_count, schedule.actions.size());
    for (PassInFlight& flight : part.passes)
      flight.runtime->set_hooks({.before = [this](std::size_t action) { walk_->before(action); },
                                 .after = [this](std::size_t action) { walk_->after(action); }});
  }
}

/// Gradients are zero, and copies are what their owners have.
void PipelineRuntime::begin_step() {
  if (layout_.zero_stage < 2) std::ranges::fill(gradients_.span(), 0.0F);
  for (const TiedWeight& w : borrowed_)  // all else was exchanged, and is zero
    std::ranges::fill(gradients_.span().subspan(w.range.first, w.range.count), 0.0F);
  for (const TiedWeight& w : lent_) lend(w);
  for (const TiedWeight& w : borrowed_)
    peers_.onward.receive(
        std::as_writable_bytes(values_.span().subspan(w.range.first, w.range.count)), w.other);
  loaded_ = 0;
}

void PipelineRuntime::lend(const TiedWeight& weight) {
  const auto values = values_.span().subspan(weight.range.first, weight.range.count);
  if (gathers_ == nullptr) return peers_.onward.start_send(bytes_to_send(values), weight.other);
  const auto behind = std::ranges::upper_bound(blocks_, weight.range.first, {},
                                               [](const ZeroBlock& b) { return b.whole.first; });
  const auto block = std::size_t(behind - blocks_.begin()) - 1;
  gathers_->prefetch(block);
  gathers_->wait_for(block);
  peers_.onward.start_send(bytes_to_send(values), weight.other);
  gathers_->release(block);
}

PassTimes PipelineRuntime::run_passes(const StepPasses& passes) {
  RECKON_CHECK(passes.count == layout_.micro_batches);
  PassTimes times;
  begin_step();
  for (const PipelinePass& pass : passes_of_stage(layout_, stage_)) {
    if (pass.forward)
      run_forward(pass, passes, times);
    else
      run_backward(pass, passes, times);
  }
  sum_tied(passes, times);
  peers_.onward.finish_sends();
  peers_.back.finish_sends();
  return times;
}

PassInFlight& PipelineRuntime::in_flight(StagePart& part, std::int64_t micro_batch) {
  const auto found = std::ranges::find(part.passes, micro_batch, &PassInFlight::micro_batch);
  RECKON_CHECK(found != part.passes.end());
  return *found;
}

/// Data come in their order, whichever part asks first.
const BatchView& PipelineRuntime::batch_of(std::int64_t micro_batch, const StepPasses& passes,
                                           PassTimes& times) {
  Lap lap;
  for (; loaded_ <= micro_batch; ++loaded_) batches_.try_emplace(loaded_, passes.load());
  times.data_wait += lap.next();
  return batches_.at(micro_batch).view();
}

/// Batch norms of all passes have one memory.
void PipelineRuntime::copy_statistics(StagePart& part, GraphRuntime<float>& runtime, bool out) {
  if (part.statistics.empty()) return;
  const auto of_pass = runtime.running_statistics();
  for (std::size_t k = 0; k < of_pass.size(); ++k) {
    if (out)
      std::ranges::copy(of_pass[k].values, part.statistics[k].begin());
    else
      std::ranges::copy(part.statistics[k], of_pass[k].values.begin());
  }
}

void PipelineRuntime::run_forward(const PipelinePass& pass, const StepPasses& passes,
                                  PassTimes& times) {
  StagePart& part = parts_[std::size_t(pass.part)];
  PassInFlight& flight = in_flight(part, -1);
  flight.micro_batch = pass.micro_batch;
  GraphRuntime<float>& runtime = *flight.runtime;
  if (!part.first) {
    const auto in = runtime.crossing_in();
    for (const std::span<float> values : in.values)
      peers_.onward.receive(std::as_writable_bytes(values), before());
  }
  const BatchView& batch = part.needs_data ? batch_of(pass.micro_batch, passes, times) : no_data_;
  copy_statistics(part, runtime, false);
  if (walk_) walk_->begin_pass(part.forward);
  Lap lap;
  const double loss =
      runtime.forward(batch, values_.span(), passes.position(pass.micro_batch), true);
  const Seconds waited = passes.take_waited();
  times.waited += waited;
  times.forward += lap.next() - waited - exchanged_in(runtime, times);
  copy_statistics(part, runtime, true);
  if (part.last) {
    passes.check(loss);
    times.loss += loss * layout_.pipeline / double(passes.count);
    return;
  }
  const auto out = runtime.crossing_out();
  for (const std::span<float> values : out.values) send(peers_.onward, values, next(), times);
}

/// More messages than a schedule ever has under way are not kept.
void PipelineRuntime::send(Communicator& by, std::span<const float> values, int to,
                           PassTimes& times) const {
  constexpr std::size_t kTensors = 4;  // that cross a cut
  Lap lap;
  by.start_send(bytes_to_send(values), to);
  by.finish_sends(4 * kTensors * std::size_t(layout_.pipeline) * std::size_t(layout_.interleave));
  times.exchanging += lap.next();
  times.sent += Bytes{double(values.size_bytes())};
}

bool PipelineRuntime::is_lent(ParameterRange range) const {
  return std::ranges::any_of(lent_, [&](const TiedWeight& w) {
    return w.range.first >= range.first && w.range.first < range.first + range.count;
  });
}

/// Is it exchanged behind the last pass alone, as it lacks gradients of copies before?
bool PipelineRuntime::waits_for_copies(ParameterRange range) const {
  const auto block = std::ranges::find_if(blocks_, [&](const ZeroBlock& b) {
    return range.first >= b.whole.first && range.first < b.whole.first + b.whole.count;
  });
  return block == blocks_.end() || is_lent(block->whole);
}

void PipelineRuntime::run_backward(const PipelinePass& pass, const StepPasses& passes,
                                   PassTimes& times) {
  StagePart& part = parts_[std::size_t(pass.part)];
  PassInFlight& flight = in_flight(part, pass.micro_batch);
  GraphRuntime<float>& runtime = *flight.runtime;
  if (!part.last) {
    const auto out = runtime.crossing_out();
    for (const std::span<float> gradients : out.gradients)
      if (!gradients.empty()) peers_.back.receive(std::as_writable_bytes(gradients), next());
  }
  Lap lap;
  passes.begin_backward();
  if (walk_) walk_->begin_pass(part.backward);
  std::function<void(ParameterRange)> ready;
  if (pass.micro_batch + 1 == passes.count)
    ready = [&](ParameterRange range) {
      if (is_lent(range))
        held_back_.push_back(range);
      else
        passes.ready(range);
    };
  else if (passes.exchanged_every_pass)
    ready = [&](ParameterRange range) {
      if (!waits_for_copies(range)) passes.ready(range);
    };
  runtime.backward(values_.span(), gradients_.span(), passes.scale, ready);
  const Seconds waited = passes.take_waited();
  times.backward += lap.next() - waited - exchanged_in(runtime, times);
  times.waited += waited;
  if (!part.first) {
    const auto in = runtime.crossing_in();
    for (const std::span<float> gradients : in.gradients)
      if (!gradients.empty()) send(peers_.back, gradients, before(), times);
  }
  flight.micro_batch = -1;
  const bool needed = std::ranges::any_of(parts_, [&](const StagePart& other) {
    return other.needs_data && &other != &part &&
           std::ranges::find(other.passes, pass.micro_batch, &PassInFlight::micro_batch) !=
               other.passes.end();
  });
  if (part.needs_data && !needed) batches_.erase(pass.micro_batch);
}

/// Gradients of copies go to the weights' owners, which then have theirs.
void PipelineRuntime::sum_tied(const StepPasses& passes, PassTimes& times) {
  for (const TiedWeight& w : borrowed_)
    send(peers_.back, gradients_.span().subspan(w.range.first, w.range.count), w.other, times);
  std::vector<float> theirs;
  for (const TiedWeight& w : lent_) {
    theirs.resize(w.range.count);
    peers_.back.receive(std::as_writable_bytes(std::span(theirs)), w.other);
    const auto ours = gradients_.span().subspan(w.range.first, w.range.count);
    for (std::size_t i = 0; i < theirs.size(); ++i) ours[i] += theirs[i];
  }
  for (const ParameterRange& range : std::exchange(held_back_, {})) passes.ready(range);
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

}  // namespace

std::unique_ptr<StepRuntime> make_pipeline_runtime(const ModelGraph& model,
                                                   const RuntimeOptions& options,
                                                   const Layout& layout, PipelinePeers peers,
                                                   Workers& workers, ZeroExchange* gathers) {
  return std::make_unique<PipelineRuntime>(model, options, layout, peers, workers, gathers);
}

}  // namespace reckon
