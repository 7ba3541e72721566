#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "executor/train/checkpoint/tensor_slice.h"
#include "executor/train/initialise.h"
#include "executor/train/trainer.h"
#include "sim/base/check.h"

// What of a rank's training a checkpoint keeps.
namespace reckon {

/// (slice of the tensor, buffer of FlatOptimizer::state()) of each.
/// What is frozen has none.
template <class Take>
void Trainer::for_optimizer_tensors(std::size_t buffers, Take take) const {
  for (const ParameterSlot& slot : runtime_->layout().slots)
    for (std::size_t k = 0; slot.trained && k < buffers; ++k)
      for (const SlotSlice& slice : slices_of(slot, optimizer_tensor(slot.name, k, buffers)))
        take(slice, k);
}

/// The parts by tensor: (slice, its numbers), of parameters and of the optimizer.
template <class Take>
void Trainer::for_kept_slices(const std::vector<KeptPart>& kept, Take take) const {
  for (const KeptPart& part : kept)
    for (const ParameterSlot& slot : runtime_->layout().slots)
      for (const SlotSlice& held : slices_of(slot, slot.name)) {
        const std::size_t begin = std::max(part.range.first, held.first);
        const std::size_t end =
            std::min(part.range.first + part.range.count, held.first + held.count);
        if (begin >= end) continue;
        std::size_t at = begin - part.range.first;
        for (Box& box : boxes_of_run(held.tensor.box.length, std::int64_t(begin - held.first),
                                     std::int64_t(end - begin))) {
          const auto count = static_cast<std::size_t>(elements(box.length));
          for (std::size_t d = 0; d < box.first.size(); ++d)
            box.first[d] += held.tensor.box.first[d];
          TensorSlice slice{.name = slot.name, .global = held.tensor.global, .box = std::move(box)};
          take(slot, slice, part.values.subspan(at, count));
          for (std::size_t k = 0; k < part.optimizer.size(); ++k) {
            slice.name = optimizer_tensor(slot.name, k, part.optimizer.size());
            take(slot, slice, part.optimizer[k].subspan(at, count));
          }
          at += count;
        }
      }
}

std::vector<RestoreTensor> Trainer::restore(std::int64_t steps_done) {
  steps_done_ = updates_done_ = steps_done;
  optimizer_began_ = 0;
  std::vector<RestoreTensor> state;
  const auto add_statistics = [&] {
    for (const RunningStatistics<float>& s : runtime_->running_statistics())
      state.push_back({whole_tensor(s.name, {std::int64_t(s.values.size())}),
                       std::as_writable_bytes(s.values)});
    if (!options_.loss_scale) return;
    const auto kept = options_.loss_scale->state();
    state.push_back({whole_tensor(LossScale::kTensor, {std::int64_t(kept.size())}),
                     std::as_writable_bytes(std::span<float>(kept))});
  };
  if (exchange_.keeps_parts()) {
    restored_parts_ = true;
    start_exchange();
    for_kept_slices(exchange_.kept_parts(),
                    [&](const ParameterSlot&, const TensorSlice& slice, std::span<float> values) {
                      state.push_back({slice, std::as_writable_bytes(values)});
                    });
    add_statistics();
    return state;
  }
  const std::span<float> values = runtime_->values();
  for (const ParameterSlot& slot : runtime_->layout().slots) {
    if (!slot.pulled || !options_.keeps_tables) continue;
    const auto count = static_cast<std::size_t>(elements(slot.global));
    WholeTable& table =
        held_tables_.emplace_back(WholeTable{slot.first, std::vector<float>(count)});
    const auto add = [&](const std::string& name, std::vector<float>& numbers) {
      state.push_back(
          {whole_tensor(name, slot.global), std::as_writable_bytes(std::span(numbers))});
    };
    add(slot.name, table.values);
    table.optimizer.assign(options_.optimizer_buffers, std::vector<float>(count));
    for (std::size_t k = 0; k < table.optimizer.size(); ++k)
      add(optimizer_tensor(slot.name, k, table.optimizer.size()), table.optimizer[k]);
  }
  // Copies come from their owners in every step, and are in no rank's file but theirs.
  for (const ParameterSlot& slot : runtime_->layout().slots)
    for (const SlotSlice& slice : slices_of(slot, slot.name))
      if (!slot.copied)
        state.push_back(
            {slice.tensor, std::as_writable_bytes(values.subspan(slice.first, slice.count))});
  add_statistics();
  for (std::size_t k = 0; k < options_.optimizer_buffers; ++k)
    restored_optimizer_.emplace_back(runtime_->layout().count);
  for_optimizer_tensors(options_.optimizer_buffers, [&](const SlotSlice& slice, std::size_t k) {
    const auto part = restored_optimizer_[k].span().subspan(slice.first, slice.count);
    state.push_back({slice.tensor, std::as_writable_bytes(part)});
  });
  return state;
}

void Trainer::begin_optimizer() {
  optimizer_began_ = steps_done_;
  if (options_.loss_scale) optimizer_began_ -= options_.loss_scale->skipped_steps();
}

/// Its first values: those of a checkpoint, or new ones.
void Trainer::draw_table(std::size_t table, std::span<float> values) {
  const auto slot = std::ranges::find(runtime_->layout().slots, table, &ParameterSlot::first);
  RECKON_CHECK(slot != runtime_->layout().slots.end() && slot->pulled);
  if (const WholeTable* restored = held(*slot)) {
    std::ranges::copy(restored->values, values.begin());
    return;
  }
  ParameterLayout whole{.count = values.size()};
  whole.slots.push_back({.layer = slot->layer,
                         .name = slot->name,
                         .shape = slot->global,
                         .count = values.size(),
                         .trained = slot->trained});
  initialise(model_, whole, options_.seed, workers_, values);
}

/// nullptr: this rank does not have the slot's table whole.
const WholeTable* Trainer::held(const ParameterSlot& slot) const {
  const auto table = std::ranges::find(held_tables_, slot.first, &WholeTable::table);
  return slot.pulled && table != held_tables_.end() ? &*table : nullptr;
}

/// A gradient may leave the range of numbers behind a loss that is one. Saved, it would be what
/// every further start ends with.
void Trainer::check_parameters(std::span<const float> values) const {
  const auto at = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
  if (at != values.end())
    throw TrainingError(
        fmt::format("a parameter is {} after {} steps, nothing of them is saved: training cannot "
                    "go on; a lower "
                    "learning rate, a longer warm-up or clip_norm may help",
                    std::isnan(*at) ? "not a number" : "infinite", steps_done_));
}

std::vector<StateTensor> Trainer::trained() {
  held_tables_ = options_.keeps_tables ? exchange_.fetch_tables(false) : std::vector<WholeTable>();
  return values_of_slots();
}

std::vector<StateTensor> Trainer::values_of_slots() {
  runtime_->to_host();
  std::vector<StateTensor> tensors;
  const std::span<const float> values = runtime_->values();
  check_parameters(values);
  for (const ParameterSlot& slot : runtime_->layout().slots) {
    for (const SlotSlice& slice : slices_of(slot, slot.name))
      if (!slot.copied)
        tensors.push_back({slice.tensor, std::as_bytes(values.subspan(slice.first, slice.count))});
    if (const WholeTable* table = held(slot)) {
      check_parameters(table->values);
      tensors.push_back(
          {whole_tensor(slot.name, slot.global), std::as_bytes(std::span(table->values))});
    }
  }
  add_statistics_to(tensors);
  return tensors;
}

void Trainer::add_statistics_to(std::vector<StateTensor>& tensors) {
  for (const RunningStatistics<float>& s : runtime_->running_statistics())
    tensors.push_back(
        {whole_tensor(s.name, {std::int64_t(s.values.size())}), std::as_bytes(s.values)});
}

void Trainer::add_loss_scale_to(std::vector<StateTensor>& tensors) {
  if (!options_.loss_scale) return;
  const auto kept = options_.loss_scale->state();
  tensors.push_back({whole_tensor(LossScale::kTensor, {std::int64_t(kept.size())}),
                     std::as_bytes(std::span<float>(kept))});
}

std::vector<StateTensor> Trainer::statistics() {
  std::vector<StateTensor> tensors;
  add_statistics_to(tensors);
  return tensors;
}

std::vector<StateTensor> Trainer::statistics_before_step() {
  std::vector<StateTensor> tensors = statistics();
  if (under_way_)
    for (std::size_t k = 0; k < tensors.size(); ++k)
      tensors[k].bytes = std::as_bytes(std::span(statistics_before_[k]));
  return tensors;
}

void Trainer::set_statistic(const std::string& name, std::span<const std::byte> bytes) {
  for (const RunningStatistics<float>& s : runtime_->running_statistics())
    if (s.name == name) std::ranges::copy(bytes, std::as_writable_bytes(s.values).begin());
}

std::vector<StateTensor> Trainer::state() {
  if (exchange_.keeps_parts()) {
    std::vector<StateTensor> slices;
    const std::vector<KeptPart> kept = exchange_.kept_parts();
    for (const KeptPart& part : kept) check_parameters(part.values);
    for_kept_slices(
        kept, [&](const ParameterSlot& slot, const TensorSlice& slice, std::span<float> values) {
          if (!slot.copied) slices.push_back({slice, std::as_bytes(values)});
        });
    add_statistics_to(slices);
    add_loss_scale_to(slices);
    return slices;
  }
  held_tables_ = options_.keeps_tables ? exchange_.fetch_tables(true) : std::vector<WholeTable>();
  std::vector<StateTensor> tensors = values_of_slots();
  add_loss_scale_to(tensors);
  const auto optimizer = exchange_.optimizer_state();
  for_optimizer_tensors(optimizer.size(), [&](const SlotSlice& slice, std::size_t k) {
    const auto part = optimizer[k].subspan(slice.first, slice.count);
    tensors.push_back({slice.tensor, std::as_bytes(part)});
  });
  for (const ParameterSlot& slot : runtime_->layout().slots) {
    const WholeTable* table = held(slot);
    for (std::size_t k = 0; table != nullptr && k < table->optimizer.size(); ++k)
      tensors.push_back(
          {whole_tensor(optimizer_tensor(slot.name, k, table->optimizer.size()), slot.global),
           std::as_bytes(std::span(table->optimizer[k]))});
  }
  return tensors;
}

}  // namespace reckon
