#include "sim/step/collectives.h"

#include <algorithm>
#include <chrono>

#include "executor/probe/probe.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Clock = std::chrono::steady_clock;

/// The time of one call, of the rank that took longest; the same number on every rank.
Seconds slowest(Communicator& communicator, const std::function<void()>& call) {
  communicator.barrier();
  const auto begin = Clock::now();
  call();
  const float mine = float(Seconds{Clock::now() - begin}.count());
  std::vector<float> all(std::size_t(communicator.size()));
  communicator.all_gather(std::span(&mine, 1), all);
  return Seconds{double(*std::ranges::max_element(all))};
}

ProbeRecord record_of(std::string kind, Bytes size, const Communicator& communicator) {
  ProbeRecord r;
  r.kind = std::move(kind);
  r.item = format_bytes(size);
  r.precision = "fp32";
  r.processes = communicator.size();
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

ProbeRecord collective(Communicator& communicator, CollectiveKind kind, const RepeatRule& rule,
                       Bytes about) {
  const auto ranks = std::size_t(communicator.size());
  // The whole buffer, in equal parts; zeros stay zeros however often they are added up.
  const std::size_t count =
      std::max<std::size_t>(1, std::size_t(about.v) / sizeof(float) / ranks) * ranks;
  std::vector<float> a(count), b(count);
  ProbeRecord r =
      record_of(std::string(to_text(kind)), Bytes{double(count * sizeof(float))}, communicator);
  summarize(
      repeat(rule, [&] { return slowest(communicator, [&] { call(communicator, kind, a, b); }); }),
      r);
  r.bus_bandwidth = bus_bandwidth(kind, r.bytes, communicator.size(), r.median);
  return r;
}

/// Between ranks 0 and 1, while the others wait: there and back, halved.
ProbeRecord point_to_point(Communicator& communicator, const RepeatRule& rule, Bytes size) {
  std::vector<std::byte> buffer(std::size_t(size.v));
  ProbeRecord r = record_of("point_to_point", size, communicator);
  r.precision.clear();
  Repeated times = repeat(rule, [&] {
    return slowest(communicator, [&] {
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

std::vector<ProbeRecord> probe_collectives(Communicator& communicator, const RepeatRule& rule,
                                           Bytes largest) {
  std::vector<ProbeRecord> out;
  const auto sweep = [&](const std::function<ProbeRecord(Bytes)>& measure) {
    constexpr double kSmallest = 1024, kStep = 16;
    for (Bytes size{kSmallest}; size <= largest; size = size * kStep) {
      out.push_back(measure(size));
      if (out.back().median > kLongestInBudgets * rule.budget) break;  // larger ones take longer
    }
  };
  for (const auto kind :
       {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
        CollectiveKind::all_to_all, CollectiveKind::broadcast})
    sweep([&](Bytes size) { return collective(communicator, kind, rule, size); });
  sweep([&](Bytes size) { return point_to_point(communicator, rule, size); });
  return out;
}

}  // namespace reckon
