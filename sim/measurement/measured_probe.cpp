#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/catalog/operations_keys.h"
#include "sim/forecast/forecast.h"
#include "sim/measurement/measured_run.h"

namespace reckon {
namespace {

/// How far what one item says of its number holds for training, as one standard deviation of the
/// logarithm: products alone are faster than a network's layers, and a stream is what memory does
/// at best.
constexpr double kOfProducts = 0.3, kOfMemory = 0.2, kOfDispatch = 0.5;

struct ProcessorItem {
  std::string_view kind;
  std::string_view key;
  double log_error;
};
constexpr ProcessorItem kItems[] = {
    {"matrix_product", keys::kCpuFlopsPerVcpu, kOfProducts},
    {"memory", keys::kCpuMemoryPerVcpu, kOfMemory},
    {"dispatch", keys::kCpuLaunch, kOfDispatch},
};

/// In the key's unit; 0: the record does not say.
double probed_value_of(const ProbeRecord& p, std::string_view key) {
  const double seconds = p.median.count(), threads = std::max(1, p.threads);
  if (!(seconds > 0)) return 0;
  if (key == keys::kCpuFlopsPerVcpu)
    return p.precision == "fp32" ? p.flops.v / seconds / threads : 0;
  if (key == keys::kCpuMemoryPerVcpu) return p.bytes.v / seconds / threads;
  return seconds;
}

/// Nullopt: the step model has no such kernel.
std::optional<MeasuredKernel> kernel_of(const ProbeRecord& p) {
  MeasuredKernel k{.device = p.device, .flops = p.flops};
  if (p.precision == "bf16")
    k.precision = Precision::bf16;
  else if (p.precision == "fp32")
    k.precision = Precision::fp32;
  else
    return std::nullopt;
  const double element = k.precision == Precision::bf16 ? 2 : 4;
  if (p.kind == "memory") {
    k.work = WorkKind::memory;
    k.bytes = p.bytes;
  } else if (p.kind == "attention") {
    k.work = WorkKind::attention;
  } else if (p.kind == "matrix_product" || p.kind == "convolution") {
    k.work = p.kind == "convolution" ? WorkKind::convolution : WorkKind::matmul;
    const double m = double(p.m), n = double(p.n), k_ = double(p.k);
    // A convolution reads its image once and not once for each place of its filter.
    if (p.kind == "matrix_product") k.bytes = Bytes{element * (m * k_ + k_ * n + m * n)};
  } else {
    return std::nullopt;
  }
  return k;
}

/// What holds for all products alike (that they are faster alone than in a network) is no less
/// uncertain for there being many of them.
void add_kernels(const Measurements& probe, MeasuredRun& run) {
  std::map<WorkKind, std::vector<MeasuredQuantity>> kinds;
  for (const ProbeRecord& p : probe.probes) {
    if (p.device.empty() || p.processes > 1 || !(p.median.count() > 0)) continue;
    auto kernel = kernel_of(p);
    if (!kernel) continue;
    const WorkKind work = kernel->work;
    kinds[work].push_back({.what = Measured::kernel,
                           .value = p.median.count(),
                           .values = int(p.repetitions),
                           .kernel = std::move(kernel)});
  }
  for (auto& [work, quantities] : kinds) {
    const double alone = work == WorkKind::memory ? kOfMemory : kOfProducts;
    for (MeasuredQuantity& q : quantities) {
      q.log_error = alone * std::sqrt(double(quantities.size()));
      run.quantities.push_back(std::move(q));
    }
  }
}

void warn_of_machine(const Measurements& probe, MeasuredRun& run) {
  constexpr double kDrift = 0.1;  // a share, as MachineRecord::drift
  for (const MachineRecord& m : probe.machines) {
    if (std::abs(m.drift) > kDrift)
      run.warnings.push_back(fmt::format(
          "{}: products were {:+.0f} % as fast at the end of the probe as at its begin: "
          "throttling, or other work on the machine",
          run.name, 100 * m.drift));
    if (m.device_drift && std::abs(*m.device_drift) > kDrift)
      run.warnings.push_back(fmt::format(
          "{}: the GPU's products were {:+.0f} % as fast at the end of the probe as at its begin: "
          "heat, or its limit of power",
          run.name, 100 * *m.device_drift));
    if (m.throttled.count() > 0.01 * m.seconds.count())
      run.warnings.push_back(fmt::format("{}: the control group held the probe back for {:.1f} s",
                                         run.name, m.throttled.count()));
  }
}

}  // namespace

MeasuredRun measured_probe(std::string file, ScenarioFile scenario, const Measurements& probe) {
  MeasuredRun run{.name = scenario.scenario.name.empty() ? "probe" : scenario.scenario.name,
                  .file = std::move(file)};
  run.configuration = run.name + " probe";
  run.scenario = std::move(scenario);
  for (const ProcessorItem& item : kItems) {
    std::vector<double> values;
    for (const ProbeRecord& p : probe.probes)
      if (p.kind == item.kind && p.device.empty())
        if (const double v = probed_value_of(p, item.key); v > 0) values.push_back(v);
    if (values.empty()) continue;
    run.quantities.push_back({.what = Measured::number,
                              .value = quantile(values, 0.5),
                              .log_error = item.log_error,
                              .values = int(values.size()),
                              .parameter = fmt::format("operations/{}", item.key)});
  }
  if (!run.scenario.scenario.name.empty())
    for (const ProbeRecord& p : probe.probes)
      if (p.kind == "all_reduce" && p.device.empty() && p.median.count() > 0)
        run.quantities.push_back({.what = Measured::reduce,
                                  .value = p.median.count(),
                                  .log_error = p.variation,
                                  .values = int(p.repetitions),
                                  .size = p.bytes});
  if (!run.scenario.scenario.name.empty())
    add_kernels(probe, run);
  else if (std::ranges::any_of(probe.probes,
                               [](const ProbeRecord& p) { return !p.device.empty(); }))
    run.warnings.push_back(run.name +
                           ": what it says of the GPU needs a scenario with that accelerator "
                           "(--scenario)");
  warn_of_machine(probe, run);
  return run;
}

}  // namespace reckon
