#include "sim/scenario/resolve/one_job.h"

#include <fmt/format.h>

namespace reckon {

std::optional<Diagnostic> why_not_one_job(const Plan& plan, const Places& places,
                                          std::string_view what) {
  if (plan.jobs.size() == 1) return std::nullopt;
  return Diagnostic{Severity::error, places.find("jobs"),
                    fmt::format("{} is of one job, and the scenario has several", what),
                    "a scenario of that job alone, with workload: instead of jobs:"};
}

}  // namespace reckon
