#pragma once
#include <optional>
#include <string_view>

// Lines of Prometheus' text format 0.0.4 [prometheus.io, "Exposition formats"]:
// NAME{LABEL="value",...} VALUE TIME, without the labels or the time where there are none.
namespace reckon {

/// Views into the line. `value` as it is written, which may be no number.
struct MetricLine {
  std::string_view name, labels, value;

  /// What stands between the quotes of a label, escapes as they are; "": there is none.
  std::string_view label(std::string_view key) const;
};

/// nullopt: a comment, or no such line.
std::optional<MetricLine> metric_line_in(std::string_view line);

}  // namespace reckon
