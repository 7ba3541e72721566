#include "sim/step/network/collectives.h"

#include <algorithm>
#include <chrono>
#include <memory>

#include "executor/probe/probe.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Clock = std::chrono::steady_clock;

/// The time of one call, of the rank that took longest; the same number on every rank.
Seconds slowest(const CollectiveBench& bench, const std::function<void()>& call) {
  bench.measured.barrier();
  const auto begin = Clock::now();
  call();
  const float mine = float(Seconds{Clock::now() - begin}.count());
  std::vector<float> all(std::size_t(bench.control.size()));
  bench.control.all_gather(std::span(&mine, 1), all);
  return Seconds{double(*std::ranges::max_element(all))};
}

ProbeRecord record_of(std::string kind, Bytes size, const CollectiveBench& bench) {
  ProbeRecord r;
  r.device = bench.device;
  r.kind = std::move(kind);
  r.item = format_bytes(size);
  r.precision = "fp32";
  r.processes = bench.measured.size();
  r.bytes = size;
  return r;
}

void call(Communicator& communicator, CollectiveKind kind, std::span<float> a, std::span<float> b) {
  const std::size_t part = a.size() / std::size_t(communicator.size());
  switch (kind) {
    case CollectiveKind::all_reduce:
      return communicator.all_reduce(a);
    case CollectiveKind::all_gather:
      return communicator.all_gather(a.first(part), b);
    case CollectiveKind::reduce_scatter:
      return communicator.reduce_scatter(a, b.first(part));
    case CollectiveKind::all_to_all:
      return communicator.all_to_all(a, b);
    case CollectiveKind::broadcast:
      return communicator.broadcast(std::as_writable_bytes(a), 0);
  }
}

ProbeRecord collective(const CollectiveBench& bench, CollectiveKind kind, Bytes about) {
  const auto ranks = std::size_t(bench.measured.size());
  // The whole buffer, in equal parts; zeros stay zeros however often they are added up.
  const std::size_t count =
      std::max<std::size_t>(1, std::size_t(about.v) / sizeof(float) / ranks) * ranks;
  const ProbeBuffers buffers = bench.allocate(count);
  ProbeRecord r =
      record_of(std::string(to_text(kind)), Bytes{double(count * sizeof(float))}, bench);
  summarize(repeat(bench.rule,
                   [&] {
                     return slowest(
                         bench, [&] { call(bench.measured, kind, buffers.first, buffers.second); });
                   }),
            r);
  r.bus_bandwidth = bus_bandwidth(kind, r.bytes, bench.measured.size(), r.median);
  return r;
}

/// Between ranks 0 and 1, while the others wait: there and back, halved.
ProbeRecord point_to_point(const CollectiveBench& bench, Bytes size) {
  const ProbeBuffers buffers = bench.allocate(std::size_t(size.v) / sizeof(float));
  const std::span<std::byte> buffer = std::as_writable_bytes(buffers.first);
  Communicator& communicator = bench.measured;
  ProbeRecord r = record_of("point_to_point", size, bench);
  r.precision.clear();
  Repeated times = repeat(bench.rule, [&] {
    return slowest(bench, [&] {
      if (communicator.rank() == 0) {
        communicator.send(buffer, 1);
        communicator.receive(buffer, 1);
      } else if (communicator.rank() == 1) {
        communicator.receive(buffer, 0);
        communicator.send(buffer, 0);
      }
    });
  });
  for (double& seconds : times.seconds) seconds /= 2;
  summarize(times, r);
  return r;
}

}  // namespace

std::vector<ProbeRecord> probe_collectives(const CollectiveBench& bench, Bytes largest) {
  std::vector<ProbeRecord> out;
  const auto sweep = [&](const std::function<ProbeRecord(Bytes)>& measure) {
    constexpr double kSmallest = 1024, kStep = 16;
    for (Bytes size{kSmallest}; size <= largest; size = size * kStep) {
      out.push_back(measure(size));
      if (out.back().median > kLongestInBudgets * bench.rule.budget) break;  // larger: longer
    }
  };
  for (const auto kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
        CollectiveKind::all_to_all, CollectiveKind::broadcast})
    sweep([&](Bytes size) { return collective(bench, kind, size); });
  sweep([&](Bytes size) { return point_to_point(bench, size); });
  return out;
}

ProbeBuffers host_buffers(std::size_t count) {
  auto both = std::make_shared<std::vector<float>>(2 * count);
  const std::span<float> all(*both);
  return {all.first(count), all.last(count), both};
}

}  // namespace reckon
