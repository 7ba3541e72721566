#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "executor/launch/progress_lines.h"
#include "sim/scenario/resolve/container_metrics.h"

// The progress of a program that is not ours, as `workload.container.metrics` says it is told.
namespace reckon {

class ProgressReader {
 public:
  /// The error is a sentence about the regular expression.
  static tl::expected<ProgressReader, std::string> from(ContainerMetrics metrics);

  /// Of a line of its log; nullopt: it says nothing of progress.
  std::optional<LogProgress> line(std::string_view text) const;
  /// Of a page of Prometheus' text format. Of a series that is there several times, with other
  /// labels each, the largest value counts: the rank that is furthest, the last version.
  std::optional<LogProgress> page(std::string_view text) const;

  const std::optional<PrometheusPage>& prometheus() const { return metrics_.prometheus; }

 private:
  ProgressReader(ContainerMetrics metrics, std::optional<ProgressPattern> pattern)
      : metrics_(std::move(metrics)), pattern_(std::move(pattern)) {}

  ContainerMetrics metrics_;
  std::optional<ProgressPattern> pattern_;  // nullopt: lines other than JSON are not looked at
};

}  // namespace reckon
