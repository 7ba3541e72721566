#include "cli/probe/probe_device.h"

#include "executor/probe/probe.h"
#include "sim/catalog/catalog.h"

#ifdef RECKON_HAS_CUDA
#include "executor/cuda/exchange/nccl_communicator.h"
#include "executor/cuda/libraries/nccl.h"
#include "executor/cuda/open_device.h"
#include "executor/probe/device/device_probe.h"
#endif

namespace reckon::cli {

#ifdef RECKON_HAS_CUDA

std::string why_no_gpu() { return cuda::why_no_device(0); }

DeviceProbe probe_device(const RepeatRule& rule, const ModelGraph* model, std::int64_t batch) {
  constexpr Bytes kArray{1 << 30};  // many times the last cache of any device
  constexpr Bytes kCopy{256 << 20};
  constexpr std::int64_t kProduct = 8192, kReference = 4096;
  DeviceProbe out;
  const cuda::OpenDevice device(0);
  cuda::Products products(device.stream());
  const DeviceBench bench{device.stream(), products, device.name(), rule};
  const auto add = [&](std::vector<ProbeRecord> more) {
    std::ranges::move(more, std::back_inserter(out.records));
  };
  const ProbeRecord first = probe_device_reference(bench, kReference);
  add(probe_device_memory(bench, kArray));
  add(probe_device_copies(bench, kCopy));
  add(probe_launch(bench));
  add(probe_device_products(bench, kProduct));
  if (model != nullptr) add(probe_device_model(bench, *model, batch));
  const ProbeRecord last = probe_device_reference(bench, kReference);
  out.drift = first.median / last.median - 1;
  return out;
}

std::vector<ProbeRecord> probe_between_devices(Communicator& control, int local_rank,
                                               const RepeatRule& rule, Bytes largest) {
  const bool able = cuda::why_no_device(local_rank).empty() && cuda::why_no_nccl().empty();
  std::int64_t without = able ? 0 : 1;
  control.all_reduce(std::span<std::int64_t>(&without, 1));
  if (without > 0) return {};
  const cuda::OpenDevice device(local_rank);
  const auto nccl = cuda::make_nccl_communicator(control, local_rank);
  const auto allocate = [](std::size_t count) {
    auto both = std::make_shared<cuda::DeviceBuffer<float>>(2 * static_cast<std::int64_t>(count));
    const std::span<float> all = both->span();
    return ProbeBuffers{all.first(count), all.last(count), both};
  };
  return probe_collectives({*nccl, control, rule, device.name(), allocate}, largest);
}

#else

std::string why_no_gpu() { return "this reckon was built without CUDA"; }
DeviceProbe probe_device(const RepeatRule&, const ModelGraph*, std::int64_t) { return {}; }
std::vector<ProbeRecord> probe_between_devices(Communicator&, int, const RepeatRule&, Bytes) {
  return {};
}

#endif

}  // namespace reckon::cli
