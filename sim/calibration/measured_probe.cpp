#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/calibration/measured_run.h"
#include "sim/catalog/operations_keys.h"
#include "sim/forecast/forecast.h"

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
double value_of(const ProbeRecord& p, std::string_view key) {
  const double seconds = p.median.count(), threads = std::max(1, p.threads);
  if (!(seconds > 0)) return 0;
  if (key == keys::kCpuFlopsPerVcpu)
    return p.precision == "fp32" ? p.flops.v / seconds / threads : 0;
  if (key == keys::kCpuMemoryPerVcpu) return p.bytes.v / seconds / threads;
  return seconds;
}

void warn_of_machine(const Measurements& probe, MeasuredRun& run) {
  constexpr double kDrift = 0.1;
  for (const MachineRecord& m : probe.machines) {
    if (std::abs(m.drift) > kDrift)
      run.warnings.push_back(fmt::format(
          "{}: products were {:+.0f} % as fast at the end of the probe as at its begin: "
          "throttling, or other work on the machine",
          run.name, 100 * m.drift));
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
        if (const double v = value_of(p, item.key); v > 0) values.push_back(v);
    if (values.empty()) continue;
    run.quantities.push_back({.what = Measured::number,
                              .value = quantile(values, 0.5),
                              .log_error = item.log_error,
                              .values = int(values.size()),
                              .parameter = fmt::format("operations/{}", item.key)});
  }
  if (!run.scenario.scenario.name.empty())
    for (const ProbeRecord& p : probe.probes)
      if (p.kind == "all_reduce" && p.median.count() > 0)
        run.quantities.push_back({.what = Measured::reduce,
                                  .value = p.median.count(),
                                  .log_error = p.variation,
                                  .values = int(p.repetitions),
                                  .size = p.bytes});
  warn_of_machine(probe, run);
  return run;
}

}  // namespace reckon
