#include "sim/measurement/measured_processor.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace reckon {
namespace {

struct Rates {
  ProductTimes products;
  StreamTimes streams;
};

/// Of the records with `processes` processes.
std::optional<Rates> rates_of(const Measurements& probe, int processes) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Seconds> products;
  std::set<std::int64_t> extents;
  Rates rates;
  for (const ProbeRecord& p : probe.probes) {
    if (!p.device.empty() || p.processes != processes || !(p.median.count() > 0)) continue;
    if (p.kind == "memory" && p.bytes.v > 0)
      rates.streams.passes.push_back({.bytes = p.bytes, .time = p.median});
    if (p.kind != "matrix_product" || p.precision != "fp32") continue;
    products[{p.m, p.n, p.k}] = p.median;
    extents.insert({p.m, p.n, p.k});
  }
  if (extents.empty() || rates.streams.passes.empty()) return std::nullopt;
  rates.products.extents.assign(extents.begin(), extents.end());
  for (const std::int64_t m : extents)
    for (const std::int64_t n : extents)
      for (const std::int64_t k : extents) {
        const auto found = products.find({m, n, k});
        if (found == products.end()) return std::nullopt;
        rates.products.times.push_back(found->second);
      }
  std::ranges::sort(rates.streams.passes, {}, &StreamTimes::Pass::bytes);
  return rates;
}

/// Latency from the smallest message, bandwidth from the largest up to 16 MiB: larger ones leave
/// the last cache, gradients of what trains on processors do not.
ProcessLink link_of(const Measurements& probe, std::string_view kind, double messages) {
  constexpr Bytes kLargest{16 << 20};
  const ProbeRecord *least = nullptr, *most = nullptr;
  for (const ProbeRecord& p : probe.probes) {
    if (p.kind != kind || !p.device.empty() || p.bytes > kLargest || !(p.median.count() > 0))
      continue;
    if (least == nullptr || p.bytes < least->bytes) least = &p;
    if (most == nullptr || p.bytes > most->bytes) most = &p;
  }
  if (least == nullptr || !(least->bytes < most->bytes) || !(least->median < most->median))
    return {};
  return {.latency = least->median / messages,
          .bandwidth = (most->bytes - least->bytes) / (most->median - least->median)};
}

}  // namespace

std::optional<ProcessorRates> processor_rates(const Measurements& probe) {
  if (probe.machines.empty()) return std::nullopt;
  const MachineRecord& machine = probe.machines.front();
  auto together = rates_of(probe, 1);
  auto apart = machine.threads > 1 ? rates_of(probe, machine.threads) : together;
  if (!together || !apart) return std::nullopt;
  return ProcessorRates{.processor = machine.processor,
                        .cores = machine.threads,
                        .together = std::move(together->products),
                        .apart = std::move(apart->products),
                        .streams = std::move(together->streams),
                        .streams_apart = std::move(apart->streams),
                        // Of two ranks: a message each to reduce, and one to gather; each half.
                        .reduce = link_of(probe, "all_reduce", 2),
                        .message = link_of(probe, "point_to_point", 1)};
}

}  // namespace reckon
