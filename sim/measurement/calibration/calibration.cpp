#include "sim/measurement/calibration/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

std::string text_of_duration(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.4g}us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.4g}ms", seconds * 1e3);
  return fmt::format("{:.4g}s", seconds);
}

}  // namespace

std::string to_text(const OwnData& data) {
  std::string text = fmt::format("dataset: {{samples: {:.15g}, bytes_per_sample: {:.0f}B",
                                 data.samples, std::max(1.0, data.bytes));
  if (data.decode_seconds > 0) text += ", decode: " + text_of_duration(data.decode_seconds);
  return text + "}";
}

void add_alone(Calibration& calibration, Correction correction) {
  const std::size_t before = calibration.corrections.size(), after = before + 1;
  std::vector<double> covariance(after * after, 0);
  for (std::size_t a = 0; a < before; ++a)
    for (std::size_t b = 0; b < before; ++b)
      covariance[a * after + b] = calibration.covariance[a * before + b];
  covariance.back() = correction.standard_error * correction.standard_error;
  calibration.covariance = std::move(covariance);
  calibration.corrections.push_back(std::move(correction));
}

Diagnostics lay_over(Catalog& catalog, const Calibration& calibration) {
  Diagnostics problems;
  const SourceId source = static_cast<SourceId>(catalog.sources.size());
  bool moved = false;  // the catalog is not the one that was corrected
  std::vector<std::pair<CatalogParameter, ParameterValue>> found;
  // A row's speed is set before its single numbers, which it would change.
  std::vector<const Correction*> order;
  for (const Correction& c : calibration.corrections) order.push_back(&c);
  std::stable_partition(order.begin(), order.end(),
                        [](const Correction* c) { return c->parameter.ends_with("/speed"); });
  for (const Correction* c : order) {
    auto parameter = find_parameter(catalog, c->parameter);
    if (!parameter) {
      for (Diagnostic& d : parameter.error()) {
        d.at.file = calibration.name;
        problems.push_back(std::move(d));
      }
      continue;
    }
    constexpr double kRounded = 1e-5;  // the file has six digits
    const double now = parameter->get().value;
    moved = moved || std::abs(now - c->catalog.value) > kRounded * std::abs(now);
    found.emplace_back(std::move(*parameter), c->calibrated);
  }
  if (!problems.empty()) return problems;
  for (auto& [parameter, value] : found) parameter.set(value, source);
  catalog.sources.push_back({.id = calibration.name,
                             .reference = fmt::format("calibration {}", calibration.name),
                             .retrieved = calibration.created});
  std::string line = fmt::format("{}: {} corrections from {}, {}", calibration.name,
                                 calibration.corrections.size(),
                                 fmt::join(calibration.measurements, ", "), calibration.created);
  if (const std::size_t own = calibration.own_runs.size(); own > 0) {
    line += fmt::format("; {} run{} of one's own", own, own == 1 ? "" : "s");
    moved = moved || calibration.catalog_digest != catalog.digest;
  }
  if (moved) line += "; made for another catalog";
  catalog.calibrations.push_back(std::move(line));
  return {};
}

}  // namespace reckon
