#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/scenario/scenario.h"

// What `workload.container.metrics` says: how the progress of a program that is not ours is read.
namespace reckon {

/// What a program may tell of its progress, by the name that the scenario calls it:
/// step            steps done, of the whole job
/// seconds, milliseconds, steps_per_second      how fast a step is
/// samples_per_second, loss
/// checkpoint      the step that a checkpoint was saved behind
inline constexpr std::string_view kProgressNames[] = {
    "step", "seconds",   "milliseconds", "steps_per_second", "samples_per_second",
    "loss", "checkpoint"};

/// Which of a program's own names stands for which of kProgressNames.
using ProgressKeys = std::map<std::string, std::string>;

struct PrometheusPage {
  int port = 0;
  std::string path = "/metrics";
  ProgressKeys names;  // of series; those of the same name stand for themselves
};

struct ContainerMetrics {
  std::string log;                   // a regular expression with named groups; "": common forms
  std::optional<ProgressKeys> json;  // lines that are JSON objects are read by key
  std::optional<PrometheusPage> prometheus;
};

/// A mistake, at the key of `metrics` that has it ("": of all).
struct MetricsMistake {
  std::string key, what, hint;
};

/// log: REGEX; json: "step=global_step, loss=train.loss" (dots lead into objects; "" for keys that
/// are called as reckon calls them); prometheus: ":9090/metrics step=train_steps_total". Whether
/// the expression is one is looked at by whoever reads with it.
ContainerMetrics container_metrics(const ContainerSpec& container,
                                   std::vector<MetricsMistake>& mistakes);

}  // namespace reckon
