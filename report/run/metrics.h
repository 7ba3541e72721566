#pragma once
#include <chrono>
#include <string>

#include "executor/launch/run_tracker.h"

namespace reckon {

/// A run as Prometheus reads it: text format 0.0.4, each family with its HELP and TYPE
/// [https://prometheus.io/docs/instrumenting/exposition_formats]. `now`: the wall clock at the
/// status. What is not known yet is left out.
std::string run_metrics(const std::string& scenario, const RunStatus& status,
                        std::chrono::system_clock::time_point now);

}  // namespace reckon
