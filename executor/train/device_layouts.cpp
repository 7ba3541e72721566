#include "executor/train/device_layouts.h"

#include <fmt/format.h>

namespace reckon {

Diagnostics cannot_cut_on_device(const PlannedWorkload& job) {
  Diagnostics problems;
  if (!cuts_the_model(job.strategy)) return problems;
  const Layout& l = job.strategy.layout;
  const auto refuse = [&](const char* what, int degree) {
    if (degree <= 1) return;
    problems.push_back({.at = {},
                        .what = fmt::format("reckon-worker's ranks with {}: {} train on CPUs, not "
                                            "on devices",
                                            what, degree),
                        .hint = fmt::format("{}: 1, or --device cpu", what)});
  };
  refuse("pipeline", l.pipeline);
  refuse("tensor", l.tensor);
  refuse("context", l.context);
  refuse("expert", l.expert);
  return problems;
}

}  // namespace reckon
