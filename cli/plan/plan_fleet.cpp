#include "cli/plan/plan_fleet.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "cli/command.h"
#include "cli/load/load.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "planner/fleet/fleet.h"
#include "report/plan/fleet.h"

namespace reckon::cli {
namespace {

void refuse_options(const PlanOptions& options) {
  refuse_given({{"fewest", options.fewest},
                {"baseline", !options.baseline.empty()},
                {"lock", options.lock},
                {"svg", !options.svg.empty()},
                {"plans", options.plans.has_value()},
                {"memo", !options.memo.empty()}},
               [](const char* name) {
                 return fmt::format("--{} is for one job, and the scenario has several", name);
               });
}

/// "fleet.yaml" -> "fleet-2.yaml".
std::filesystem::path numbered(const std::filesystem::path& path, std::size_t number) {
  return path.parent_path() /
         fmt::format("{}-{}{}", path.stem().string(), number, path.extension().string());
}

}  // namespace

Expected<int> answer_fleet(const PlanOptions& options, const planner::Base& base,
                           const Catalog& catalog, const NetworkModel& network) {
  refuse_options(options);
  planner::FleetOptions how;
  how.seed = options.seed;
  how.replications = options.replications;
  how.threads = options.threads;
  const auto answer = planner::plan_fleet(base, catalog, network, how);
  if (!answer) return tl::unexpected(answer.error());
  const std::string& out = options.out;
  if (!out.empty() && answer->replay)
    for (std::size_t k = 0; k < answer->replay->pools.size(); ++k)
      write_file(numbered(out, k + 1).string(), planner::fleet_file(*answer, k, RECKON_VERSION));
  print(options.format == OutputFormat::json ? fleet_json(*answer) : fleet_table(*answer));
  return fleet_fits(*answer) ? kDone : kAnswerIsNo;
}

}  // namespace reckon::cli
