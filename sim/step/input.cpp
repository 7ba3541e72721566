#include "sim/step/input.h"

#include <algorithm>

namespace reckon {

Seconds InputTimes::slowest() const { return std::max({read, decode, copy}); }

InputTimes input_times(const PlannedPool& pool, const PlannedWorkload& job, double samples) {
  double accelerators_per_host = std::max(1, pool.accelerators_per_node);
  if (pool.slice)
    accelerators_per_host = double(pool.slice->chips) / std::max(1, pool.slice->hosts);
  const double of_host = samples * accelerators_per_host;
  const double threads =
      job.data.threads ? double(*job.data.threads) * accelerators_per_host : pool.machine.vcpus;
  InputTimes t;
  BytesPerSecond rate = job.checkpoint.storage.read_per_node.value;
  if (pool.machine.network.value.v > 0) rate = std::min(rate, pool.machine.network.value);
  const Bytes stored = of_host * job.dataset.bytes_per_sample.value;
  if (stored.v > 0 && rate.v > 0) t.read = stored / rate;
  const double decode = of_host * job.dataset.decode_cpu_seconds.value;
  if (is_store_location(job.data.path) && threads > 0) {
    const Seconds requests = t.read + of_host * job.checkpoint.storage.latency.value;
    t.read = std::max(t.read, (requests + Seconds{decode}) / threads);
  }
  const double cores = std::min(threads, double(pool.machine.vcpus));
  if (decode > 0 && cores > 0) {
    t.decode = Seconds{decode / cores};
    t.processors = Seconds{decode / pool.machine.vcpus};
  }
  t.copy = copy_time(pool, job.model, samples);
  return t;
}

Seconds copy_time(const PlannedPool& pool, const ModelGraph& model, double samples) {
  if (!pool.accelerator || pool.accelerator->host_bandwidth.value.v <= 0) return {};
  const double input = double(elements(model.layers().front().output));
  return samples * input * Bytes{4} / pool.accelerator->host_bandwidth.value;
}

}  // namespace reckon
