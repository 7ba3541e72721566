#include "sim/measurement/calibration/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reckon {

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
