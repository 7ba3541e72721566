#include "executor/probe/device/device_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "executor/probe/numbers.h"
#include "kernels/elementwise.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Clock = std::chrono::steady_clock;

ProbeRecord record_of(const DeviceBench& bench, std::string kind, std::string item) {
  ProbeRecord r;
  r.kind = std::move(kind);
  r.item = std::move(item);
  r.device = bench.device;
  return r;
}

void wait(const DeviceBench& bench) {
  cuda::check(cudaStreamSynchronize(bench.stream), "waiting for the device");
}

Seconds queued(const DeviceBench& bench, std::int64_t times, const std::function<void()>& enqueue) {
  wait(bench);
  const auto begin = Clock::now();
  for (std::int64_t k = 0; k < times; ++k) enqueue();
  wait(bench);
  return Clock::now() - begin;
}

/// Memory of the host that the device reads by itself.
struct Unpin {
  void operator()(std::byte* p) const { cudaFreeHost(p); }
};
std::unique_ptr<std::byte, Unpin> pinned(std::size_t bytes) {
  void* p = nullptr;
  cuda::check(cudaMallocHost(&p, bytes), "page-locked memory of the host");
  return std::unique_ptr<std::byte, Unpin>(static_cast<std::byte*>(p));
}

template <class E>
ProbeRecord product(const DeviceBench& bench, const cuda::ProductShape& s) {
  const auto a = device_numbers<E>(s.rows * s.inner);
  const auto b = device_numbers<E>(s.inner * s.columns);
  cuda::DeviceBuffer<E> c(s.rows * s.columns);
  ProbeRecord r =
      record_of(bench, "matrix_product", fmt::format("{} x {} x {}", s.rows, s.columns, s.inner));
  r.precision = sizeof(E) == sizeof(float) ? "fp32" : "bf16";
  r.m = s.rows;
  r.n = s.columns;
  r.k = s.inner;
  r.flops = Flops{2.0 * static_cast<double>(s.rows) * static_cast<double>(s.columns) *
                  static_cast<double>(s.inner)};
  measure_queued(
      bench,
      [&] {
        bench.products.multiply<E, E>(s, {a.data(), s.inner}, {b.data(), s.columns}, c.data(),
                                      s.columns, false);
      },
      r);
  return r;
}

template <class E>
void products(const DeviceBench& bench, std::int64_t largest, std::vector<ProbeRecord>& out) {
  constexpr std::int64_t kSmallest = 256, kWide = 4096, kFew[] = {1, 16, 128};
  for (std::int64_t n = std::min(kSmallest, largest); n <= largest; n *= 2)
    out.push_back(product<E>(bench, {n, n, n}));
  const std::int64_t wide = std::min(kWide, largest);
  for (const std::int64_t rows : kFew) out.push_back(product<E>(bench, {rows, wide, wide}));
}

}  // namespace

template <class E>
cuda::DeviceBuffer<E> device_numbers(std::int64_t count) {
  constexpr std::int64_t kBlock = 1 << 20;
  const std::int64_t block = std::min(count, kBlock);
  AlignedBuffer<float> drawn = numbers<float>(block);
  std::vector<E> host;
  for (const float x : drawn.span()) host.push_back(from_float<E>(x));
  cuda::DeviceBuffer<E> out(count);
  for (std::int64_t k = 0; k < count; k += block) {
    const auto n = static_cast<std::size_t>(std::min(block, count - k));
    cuda::copy_to_device(out.data() + k, host.data(), n * sizeof(E));
  }
  return out;
}
template cuda::DeviceBuffer<float> device_numbers<float>(std::int64_t);
template cuda::DeviceBuffer<Bf16> device_numbers<Bf16>(std::int64_t);

void measure_queued(const DeviceBench& bench, const std::function<void()>& enqueue,
                    ProbeRecord& into) {
  constexpr Seconds kRepetition{2e-3};  // hundreds of times what waiting for a stream takes
  constexpr double kMostQueued = 500;   // less than what a stream takes before launches wait
  queued(bench, 1, enqueue);
  const Seconds once = queued(bench, 1, enqueue);
  const auto times = static_cast<std::int64_t>(
      std::clamp(kRepetition.count() / std::max(once.count(), 1e-9), 1.0, kMostQueued));
  Repeated measured = repeat(bench.rule, [&] { return queued(bench, times, enqueue); });
  for (double& seconds : measured.seconds) seconds /= static_cast<double>(times);
  summarize(measured, into);
}

std::vector<ProbeRecord> probe_device_memory(const DeviceBench& bench, Bytes array) {
  const auto count = static_cast<std::int64_t>(array.v / sizeof(float));
  cuda::DeviceBuffer<float> a(count), b(count), c(count);
  ProbeRecord r = record_of(bench, "memory", "a + b over 3 arrays of " + format_bytes(array));
  r.precision = "fp32";
  r.flops = Flops{static_cast<double>(count)};
  r.bytes = Bytes{3.0 * static_cast<double>(count) * sizeof(float)};
  measure_queued(
      bench,
      [&] {
        cuda::check(gpu::add(a.data(), b.data(), c.data(), count, bench.stream), "adding arrays");
      },
      r);
  return {r};
}

std::vector<ProbeRecord> probe_device_copies(const DeviceBench& bench, Bytes largest) {
  constexpr Bytes kSmall{65536};
  const auto most = static_cast<std::size_t>(std::max(largest, kSmall).v);
  const auto locked = pinned(most);
  std::vector<std::byte> ordinary(most);
  cuda::DeviceBuffer<std::byte> here(static_cast<std::int64_t>(most)),
      there(static_cast<std::int64_t>(most));
  struct Way {
    const char* name;
    void* to;
    const void* from;
    cudaMemcpyKind kind;
  };
  const Way ways[] = {
      {"host to device, page-locked", here.data(), locked.get(), cudaMemcpyHostToDevice},
      {"device to host, page-locked", locked.get(), here.data(), cudaMemcpyDeviceToHost},
      {"host to device", here.data(), ordinary.data(), cudaMemcpyHostToDevice},
      {"device to host", ordinary.data(), here.data(), cudaMemcpyDeviceToHost},
      {"on the device", there.data(), here.data(), cudaMemcpyDeviceToDevice}};
  std::vector<ProbeRecord> out;
  for (const Way& way : ways)
    for (const Bytes size : {kSmall, Bytes{static_cast<double>(most)}}) {
      ProbeRecord r = record_of(bench, "copy", fmt::format("{}, {}", format_bytes(size), way.name));
      r.bytes = size;
      measure_queued(
          bench,
          [&] {
            cuda::check(cudaMemcpyAsync(way.to, way.from, static_cast<std::size_t>(size.v),
                                        way.kind, bench.stream),
                        "copying");
          },
          r);
      out.push_back(r);
    }
  return out;
}

std::vector<ProbeRecord> probe_launch(const DeviceBench& bench) {
  cuda::DeviceBuffer<float> one(1);
  const auto enqueue = [&] {
    cuda::check(gpu::scale(one.data(), 1.0f, one.data(), false, 1, bench.stream), "a launch");
  };
  ProbeRecord in_queue = record_of(bench, "launch", "a kernel of one element, in a queue");
  measure_queued(bench, enqueue, in_queue);
  ProbeRecord waited = record_of(bench, "launch", "a kernel of one element, waited for");
  summarize(repeat(bench.rule, [&] { return queued(bench, 1, enqueue); }), waited);
  return {in_queue, waited};
}

std::vector<ProbeRecord> probe_device_products(const DeviceBench& bench, std::int64_t largest) {
  std::vector<ProbeRecord> out;
  products<Bf16>(bench, largest, out);
  products<float>(bench, largest, out);
  return out;
}

ProbeRecord probe_device_reference(const DeviceBench& bench, std::int64_t size) {
  return product<Bf16>(bench, {size, size, size});
}

}  // namespace reckon
