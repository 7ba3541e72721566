#pragma once
#include <vector>

#include "executor/cuda/runtime/layouts.h"
#include "executor/train/resumed_layouts.h"
#include "gpu/device.h"

// Jobs of layout_jobs.h whose ranks are threads that share one device (or its emulator) and
// exchange through the host's memory; what they are held to.
namespace reckon::test {

inline RankMaker device_maker(cuda::DevicePrecision precision) {
  return [precision] {
    return cuda::make_device_layouts(
        precision, nullptr, [](Communicator& hosts) { return cuda::make_staged_group(hosts); });
  };
}

inline std::vector<LayoutRun> on_devices(
    const PlannedWorkload& job, std::int64_t steps,
    cuda::DevicePrecision precision = cuda::DevicePrecision::fp32) {
  return train_under(job, steps, {}, LossScale::kFirst, device_maker(precision));
}

inline ModelGraph tiny_gpt(double dropout = 0.1, int layers = 2) {
  auto made = make_transformer("gpt2", {.layers = layers,
                                        .hidden = 16,
                                        .heads = 2,
                                        .vocabulary = 29,
                                        .sequence_length = 8,
                                        .positions = 8,
                                        .dropout = dropout});
  return std::move(*made);
}

inline void check_same(const std::vector<LayoutRun>& a, const std::vector<LayoutRun>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t rank = 0; rank < a.size(); ++rank) {
    CHECK(a[rank].losses == b[rank].losses);
    CHECK(a[rank].parameters == b[rank].parameters);
  }
}

/// What rounding may change of what a few steps of SGD move: a gradient has the share of an error
/// that device_runtime_gpu_test.cpp derives, of forty tensors rounded on the way there and back,
/// and steps move straight on. `u`: roundoff of a step's sums.
inline void check_moved(const std::vector<LayoutRun>& runs, const std::vector<LayoutRun>& others,
                        const PlannedWorkload& job, double u = 0x1p-22) {
  const double share = 4 * 2 * std::sqrt(80.0) * u / 2;
  auto as_floats = job;
  as_floats.precision = Precision::fp32;
  const auto first = whole_of(train_under(as_floats, 0));
  const auto there = whole_of(runs), here = whole_of(others);
  std::vector<double> moved_there, moved_here;
  for (const auto& [name, values] : first)
    for (std::size_t i = 0; i < values.size(); ++i) {
      moved_there.push_back(double{there.at(name)[i]} - double{values[i]});
      moved_here.push_back(double{here.at(name)[i]} - double{values[i]});
    }
  check_share(moved_there, moved_here, share);
  check_losses(runs[0], others[0], share);
}

}  // namespace reckon::test
