#include <algorithm>
#include <utility>

#include "executor/train/lap.h"
#include "executor/train/layouts/pipeline/state.h"
#include "sim/base/check.h"

namespace reckon {
/// Gradients are zero, and copies are what their owners have.
void PipelineRuntime::begin_step() {
  PassTimes not_wanted;
  begin_step(not_wanted);
}
void PipelineRuntime::begin_step(PassTimes& times) {
  compute_->begin_step();
  for (const TiedWeight& w : lent_) lend(w);
  std::vector<float> theirs;
  for (const TiedWeight& w : borrowed_) {
    theirs.resize(compute_->layout().slots[w.slot].count);
    receive(peers_.onward, std::as_writable_bytes(std::span(theirs)), w.other, times);
    compute_->set_value(w.slot, theirs);
  }
  loaded_ = 0;
}

void PipelineRuntime::lend(const TiedWeight& weight) {
  const auto start = [&] {
    peers_.onward.start_send(std::as_bytes(compute_->value(weight.slot)), weight.other);
  };
  if (gathers_ == nullptr) return start();
  const auto behind = std::ranges::upper_bound(blocks_, slot_of(weight).first, {},
                                               [](const ZeroBlock& b) { return b.whole.first; });
  const auto block = std::size_t(behind - blocks_.begin()) - 1;
  gathers_->prefetch(block);
  gathers_->wait_for(block);
  start();
  gathers_->release(block);
}

PassTimes PipelineRuntime::run_passes(const StepPasses& passes) {
  RECKON_CHECK(passes.count == layout_.micro_batches);
  PassTimes times;
  begin_step(times);
  for (const PipelinePass& pass : passes_of_stage(layout_, stage_)) {
    if (pass.forward)
      run_forward(pass, passes, true, times);
    else
      run_backward(pass, passes, times);
  }
  sum_tied(passes, times);
  Lap lap;
  peers_.onward.finish_sends();
  peers_.back.finish_sends();
  times.sending += lap.next();
  return times;
}

std::int64_t PipelineRuntime::passes_together() const {
  return layout_.schedule == PipelineSchedule::interleaved ? layout_.pipeline : 1;
}

/// In the order of a step's forward passes. A stage's memory is that of one pass of each part.
double PipelineRuntime::evaluate(const StepPasses& passes) {
  PassTimes times;
  begin_step(times);
  int last_with_data = -1;
  for (std::size_t k = 0; k < parts_.size(); ++k)
    if (parts_[k].needs_data) last_with_data = int(k);
  Layout forward_only = layout_;
  forward_only.micro_batches = passes.count;
  for (const PipelinePass& pass : passes_of_stage(forward_only, stage_)) {
    if (!pass.forward) continue;
    run_forward(pass, passes, false, times);
    in_flight(parts_[std::size_t(pass.part)], pass.micro_batch).micro_batch = -1;
    if (pass.part == last_with_data) batches_.erase(pass.micro_batch);
  }
  peers_.onward.finish_sends();
  return times.loss;
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
void PipelineRuntime::copy_statistics(StagePart& part, PartRuntime& runtime, bool out) {
  if (part.statistics.empty()) return;
  const auto of_pass = runtime.running_statistics();
  for (std::size_t k = 0; k < of_pass.size(); ++k) {
    if (out)
      std::ranges::copy(of_pass[k].values, part.statistics[k].begin());
    else
      std::ranges::copy(part.statistics[k], of_pass[k].values.begin());
  }
}

void PipelineRuntime::run_forward(const PipelinePass& pass, const StepPasses& passes, bool training,
                                  PassTimes& times) {
  StagePart& part = parts_[std::size_t(pass.part)];
  PassInFlight& flight = in_flight(part, -1);
  flight.micro_batch = pass.micro_batch;
  PartRuntime& runtime = *flight.runtime;
  if (!part.first) {
    const auto in = runtime.crossing_in();
    for (const std::span<std::byte> values : in.values)
      receive(peers_.onward, values, before(), times);
  }
  const BatchView& batch = part.needs_data ? batch_of(pass.micro_batch, passes, times) : no_data_;
  copy_statistics(part, runtime, false);
  if (walk_) walk_->begin_pass(part.forward);
  Lap lap;
  const double loss = runtime.forward(batch, passes.position(pass.micro_batch), training);
  const ExchangeWaits waited = passes.take_waited();
  times.waited += waited;
  times.forward += lap.next() - waited.total() - times.add(runtime.take_exchanged());
  if (training) copy_statistics(part, runtime, true);
  if (part.last) {
    passes.check(loss);
    times.loss += loss * layout_.pipeline / double(passes.count);
    return;
  }
  const auto out = runtime.crossing_out();
  for (const std::span<std::byte> values : out.values) send(peers_.onward, values, next(), times);
}

/// More messages than a schedule ever has under way are not kept.
void PipelineRuntime::send(Communicator& by, std::span<const std::byte> bytes, int to,
                           PassTimes& times) const {
  constexpr std::size_t kTensors = 4;  // that cross a cut
  Lap lap;
  by.start_send(bytes, to);
  by.finish_sends(4 * kTensors * std::size_t(layout_.pipeline) * std::size_t(layout_.interleave));
  times.sending += lap.next();
  times.sent += Bytes{double(bytes.size())};
}

void PipelineRuntime::receive(Communicator& by, std::span<std::byte> bytes, int from,
                              PassTimes& times) {
  Lap lap;
  by.receive(bytes, from);
  times.bubble += lap.next();
}

bool PipelineRuntime::is_lent(ParameterRange range) const {
  return std::ranges::any_of(lent_, [&](const TiedWeight& w) {
    const std::size_t first = slot_of(w).first;
    return first >= range.first && first < range.first + range.count;
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
  PartRuntime& runtime = *flight.runtime;
  if (!part.last) {
    const auto out = runtime.crossing_out();
    for (const std::span<std::byte> gradients : out.gradients)
      if (!gradients.empty()) receive(peers_.back, gradients, next(), times);
  }
  Lap lap;
  passes.begin_backward();
  if (walk_) walk_->begin_pass(part.backward);
  GradientTaker taker;
  if (pass.micro_batch + 1 == passes.count)
    taker.ready = [&](ParameterRange range) {
      if (is_lent(range))
        held_back_.push_back(range);
      else
        passes.ready(range);
    };
  else if (passes.exchanged_every_pass)
    taker = {.ready = passes.ready,
             .leaves = [&](ParameterRange range) { return !waits_for_copies(range); }};
  runtime.backward(passes.scale, taker);
  const ExchangeWaits waited = passes.take_waited();
  times.backward += lap.next() - waited.total() - times.add(runtime.take_exchanged());
  times.waited += waited;
  if (!part.first) {
    const auto in = runtime.crossing_in();
    for (const std::span<std::byte> gradients : in.gradients)
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
    send(peers_.back, std::as_bytes(compute_->gradient(w.slot)), w.other, times);
  std::vector<float> theirs;
  for (const TiedWeight& w : lent_) {
    theirs.resize(compute_->layout().slots[w.slot].count);
    receive(peers_.back, std::as_writable_bytes(std::span(theirs)), w.other, times);
    compute_->add_gradient(w.slot, theirs);
  }
  for (const ParameterRange& range : std::exchange(held_back_, {})) passes.ready(range);
}

}  // namespace reckon
