#include "executor/kubernetes/kubernetes_run.h"

#include <fmt/format.h>

#include "executor/kubernetes/watched_run.h"
#include "executor/train/recipe/recipe.h"
#include "sim/base/check.h"

namespace reckon::kubernetes {

std::vector<std::string> process_names(const PlannedStrategy& strategy) {
  std::vector<std::string> names;
  const int each = ranks_of_worker(strategy);
  for (int k = 0; k < strategy.workers; ++k)
    names.push_back(
        each == 1 ? fmt::format("rank {}", k)
                  : fmt::format("worker {} (ranks {} to {})", k, k * each, (k + 1) * each - 1));
  for (int k = 0; k < strategy.server_count(); ++k)
    names.push_back(fmt::format("rank {} (server {})", computing_ranks(strategy) + k, k));
  return names;
}

RunEnd run_on_kubernetes(const Plan& plan, const Forecast& forecast, const Kubectl& kubectl,
                         const KubernetesRunOptions& options, const KubernetesObserver& observer,
                         const std::function<StopRequest()>& stop) {
  RECKON_CHECK(forecast.feasible && plan.jobs.size() == 1);
  return WatchedRun(plan, forecast, kubectl, options, observer, stop).run();
}

}  // namespace reckon::kubernetes
