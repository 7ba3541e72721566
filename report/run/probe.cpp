#include "report/run/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/text.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr double kUnsteady = 0.2;  // variation
constexpr double kSlower = -0.1;   // drift

std::string hertz(std::optional<double> value) {
  return value ? fmt::format("{:.2f} GHz", *value / 1e9) : "unknown";
}

/// What the item is measured for: FLOP/s, bytes/s, samples/s.
std::string rate_of(const ProbeRecord& r) {
  if (r.median.count() <= 0) return "-";
  if (r.bus_bandwidth.v > 0) return format_bandwidth(r.bus_bandwidth);
  const bool arithmetic =
      r.kind == "matrix_product" || r.kind == "convolution" || r.kind == "attention";
  if (arithmetic) return format_flop_rate(r.flops / r.median);
  if (r.samples > 0)
    return fmt::format("{} samples/s",
                       format_count(std::round(double(r.samples) / r.median.count())));
  return r.bytes.v > 0 ? format_bandwidth(r.bytes / r.median) : "-";
}

std::string heading(const ProbeRecord& r) {
  std::string kind = r.kind;
  std::ranges::replace(kind, '_', ' ');
  if (!r.device.empty()) kind += fmt::format(" on {}", r.device);
  if (!r.precision.empty()) kind += ", " + r.precision;
  if (r.processes > 1) kind += fmt::format(", {} processes", r.processes);
  return r.bus_bandwidth.v > 0 ? kind + " (bus bandwidth)" : kind;
}

std::string items_of(const std::vector<ProbeRecord>& probes) {
  std::string out;
  for (std::size_t first = 0; first < probes.size();) {
    const std::string title = heading(probes[first]);
    Columns table;
    table.row({title, "rate", "median", "best", "p99", "variation", "repetitions"});
    std::size_t k = first;
    for (; k < probes.size() && heading(probes[k]) == title; ++k) {
      const ProbeRecord& r = probes[k];
      table.row({r.item, rate_of(r), format_duration(r.median), format_duration(r.min),
                 format_duration(r.p99), format_percent(r.variation),
                 format_count(double(r.repetitions))});
    }
    out += '\n' + table.text();
    first = k;
  }
  return out;
}

void add_machine(const MachineRecord& m, Columns& facts) {
  facts.row({"processor", m.processor.empty() ? "unknown" : m.processor});
  facts.row(
      {"cores", fmt::format("{} usable, {} socket{}, {} NUMA node{}; {} thread{} measured", m.cores,
                            m.sockets, m.sockets == 1 ? "" : "s", m.numa_nodes,
                            m.numa_nodes == 1 ? "" : "s", m.threads, m.threads == 1 ? "" : "s")});
  if (m.cpu_quota) facts.row({"CPU quota", fmt::format("{:.3g} cores", *m.cpu_quota)});
  facts.row({"memory", format_bytes(m.memory)});
  facts.row(
      {"clock", fmt::format("{} before, {} after", hertz(m.hertz_before), hertz(m.hertz_after))});
  facts.row({"instructions", m.stack});
}

std::string gpu_of(const AcceleratorRecord& a) {
  std::string text = fmt::format("{}, {}", a.name, format_bytes(a.memory));
  if (a.hertz) text += fmt::format(", {} of {}", hertz(a.hertz), hertz(a.hertz_max));
  if (a.pcie_generation && a.pcie_lanes)
    text += fmt::format(", PCIe {}.0 x{}", *a.pcie_generation, *a.pcie_lanes);
  if (a.nvlinks) text += fmt::format(", {} NVLinks", *a.nvlinks);
  if (a.celsius) text += fmt::format(", {:.0f} C", *a.celsius);
  return text + fmt::format(", driver {}", a.driver);
}

std::vector<std::string> doubts(const Measurements& probe) {
  std::vector<std::string> out;
  for (const MachineRecord& m : probe.machines) {
    if (m.drift < kSlower)
      out.push_back(
          fmt::format("the machine was {} slower at the end of the probe than at the start (heat, "
                      "a neighbour, a quota)",
                      format_percent(-m.drift)));
    if (m.device_drift && *m.device_drift < kSlower)
      out.push_back(fmt::format(
          "the GPU was {} slower at the end of the probe than at the start (heat, power)",
          format_percent(-*m.device_drift)));
    if (m.throttled.count() > 0)
      out.push_back(fmt::format("the control group held the processes back for {}",
                                format_duration(m.throttled)));
    if (m.cpu_quota && *m.cpu_quota < m.threads)
      out.push_back(
          fmt::format("{} threads share a quota of {:.3g} cores", m.threads, *m.cpu_quota));
  }
  const auto unsteady = std::ranges::count_if(
      probe.probes, [](const ProbeRecord& r) { return r.variation > kUnsteady; });
  if (unsteady > 0)
    out.push_back(
        fmt::format("{} of {} items vary by more than {}: others use the machine too, or "
                    "it is an item of microseconds",
                    unsteady, probe.probes.size(), format_percent(kUnsteady)));
  return out;
}

}  // namespace

std::string probe_table(const Measurements& probe, const GpuAnswer& gpu) {
  Columns facts(Columns::Kind::facts);
  for (const MachineRecord& m : probe.machines) add_machine(m, facts);
  for (const AcceleratorRecord& a : probe.accelerators)
    facts.row({fmt::format("GPU {}", a.index), gpu_of(a)});
  if (!probe.machines.empty() && probe.accelerators.empty())
    facts.row({"GPU", "none: " + gpu.none});
  if (!probe.accelerators.empty() && !gpu.not_measured.empty())
    facts.row({"", "described, not measured: " + gpu.not_measured});
  std::string out = facts.text();
  const std::vector<std::string> problems = doubts(probe);
  if (!problems.empty()) out += "\nWarnings\n";
  for (const std::string& problem : problems) out += "  - " + problem + '\n';
  return out + items_of(probe.probes);
}

}  // namespace reckon
