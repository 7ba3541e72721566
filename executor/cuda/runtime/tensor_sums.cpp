#include "executor/cuda/runtime/tensor_sums.h"

#include "sim/model/shapes.h"

namespace reckon::cuda {

void TensorSums::sum(LayerId layer, DeviceParameters& parameters, const DevicePass& pass) {
  const auto& slots = parameters.layout().slots;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (slots[s].layer != layer || !slots[s].sums_gradient) continue;
    const std::span<float> ours{parameters.gradient(s), slots[s].count};
    const auto whole = static_cast<std::size_t>(elements(slots[s].global));
    const auto all_reduce = [&](std::span<float> values) {
      timed_exchange(pass, 2 * count_of(values.size()) / pass.tensor->size(),
                     [&](DeviceGroup& group) { group.queue_all_reduce(values, pass.stream); });
    };
    if (slots[s].shape == slots[s].global) {
      all_reduce(ours);
      continue;
    }
    // Ranks may have the same part of a tensor, or different ones: the sum is of the whole.
    if (whole_.size() < count_of(whole)) whole_ = DeviceBuffer<float>(count_of(whole));
    std::vector<float> here(ours.size()), all(whole);
    const auto each_part = [&](auto copy) {
      for (const SlotPart& part : slots[s].parts)
        copy(part.box,
             std::span(here).subspan(part.first - slots[s].first,
                                     static_cast<std::size_t>(elements(part.box.length))));
    };
    check(cudaStreamSynchronize(pass.stream), "gradients");
    copy_to_host(here.data(), ours.data(), ours.size_bytes());
    each_part([&](const Box& box, std::span<float> part) {
      copy_box(box, box, std::as_bytes(part), whole_box(slots[s].global),
               std::as_writable_bytes(std::span(all)), sizeof(float));
    });
    copy_to_device(whole_.data(), all.data(), whole * sizeof(float));
    all_reduce(whole_.span().first(whole));
    check(cudaStreamSynchronize(pass.stream), "gradients");
    copy_to_host(all.data(), whole_.data(), whole * sizeof(float));
    each_part([&](const Box& box, std::span<float> part) {
      copy_box(box, whole_box(slots[s].global), std::as_bytes(std::span(all)), box,
               std::as_writable_bytes(part), sizeof(float));
    });
    copy_to_device(ours.data(), here.data(), ours.size_bytes());
  }
}

}  // namespace reckon::cuda
