#pragma once
#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <vector>

#include "executor/cuda/layers/products.h"
#include "executor/cuda/memory/buffers.h"
#include "executor/probe/repeat.h"
#include "sim/measurement/probe_record.h"
#include "sim/model/graph.h"

// Microbenchmarks of one device, by the kernels and products that train on it. Times are the
// host's, around work queued on the stream and waited for: several repetitions of a thing that is
// over sooner than waiting for it takes. No setting of the device is changed. All throw
// DeviceError.
namespace reckon {

struct DeviceBench {
  cudaStream_t stream = nullptr;
  cuda::Products& products;
  std::string device;  // its name, into every record
  RepeatRule rule;
};

/// out = a + b over three arrays of `array` bytes, as STREAM's add counts: several times the last
/// cache, or it measures that.
std::vector<ProbeRecord> probe_device_memory(const DeviceBench& bench, Bytes array);
/// From page-locked and from ordinary memory of the host, to it, and on the device; 64 KiB and
/// `largest`.
std::vector<ProbeRecord> probe_device_copies(const DeviceBench& bench, Bytes largest);
/// A kernel of one element: in a queue, where launching is what takes time, and waited for.
std::vector<ProbeRecord> probe_launch(const DeviceBench& bench);
/// bf16 and fp32, square ones from 256 to `largest`, and some with few rows.
std::vector<ProbeRecord> probe_device_products(const DeviceBench& bench, std::int64_t largest);
/// One bf16 product of `size` cubed: to see whether the device still runs as fast.
ProbeRecord probe_device_reference(const DeviceBench& bench, std::int64_t size);
/// Forward passes in bf16 of layers_to_probe().
std::vector<ProbeRecord> probe_device_model(const DeviceBench& bench, const ModelGraph& model,
                                            std::int64_t batch, int most = 4);

/// `enqueue` queues the thing once. It is done once unmeasured (algorithms are chosen, modules
/// loaded), then so often in a repetition that waiting for the stream does not matter.
void measure_queued(const DeviceBench& bench, const std::function<void()>& enqueue,
                    ProbeRecord& into);

/// `count` numbers between -0.5 and 0.5: products of zeros take less power, so they run at higher
/// clocks than those of a network.
template <class E>
cuda::DeviceBuffer<E> device_numbers(std::int64_t count);

}  // namespace reckon
