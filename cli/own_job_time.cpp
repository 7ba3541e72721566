#include "cli/own_job_time.h"

#include <fmt/format.h>

#include <map>

#include "sim/cluster/life/life.h"
#include "sim/forecast/pace.h"
#include "sim/step/network/network.h"

namespace reckon::cli {
namespace {

tl::unexpected<Diagnostics> not_a_job(const std::string& file, std::string what, std::string hint) {
  return tl::unexpected(
      Diagnostics{{Severity::error, {file, 0, 0}, std::move(what), std::move(hint)}});
}

ScenarioFile on_cluster(ScenarioFile file, const ClusterSpec& on) {
  Scenario& scenario = file.scenario;
  scenario.cluster = on;
  scenario.serving.reset();
  scenario.prices.reset();
  scenario.expect.clear();
  scenario.disruptions = {};
  scenario.disruptions.preemption = NoReclaim{};
  scenario.disruptions.maintenance_off = scenario.disruptions.failures_off =
      scenario.disruptions.shortage_off = true;
  return file;
}

Expected<Seconds> time_on(const ScenarioFile& file, const std::string& name, const ClusterSpec& on,
                          const LoadedCatalog& catalog, const NetworkModel& network) {
  const auto loaded = load_all(on_cluster(file, on), catalog);
  if (!loaded) return tl::unexpected(loaded.error());
  const Plan& plan = *loaded->plan;
  const JobRequest request = request_of(plan.only_job(), make_pace(plan, network).pace);
  const LifeResult life = simulate_life(plan, request, {});
  if (!life.finished) return not_a_job(name, life.failure, "'reckon simulate' of it says more");
  const JobOutcome& job = life.jobs.front();
  return to_seconds(job.finish - job.submit - job.queued);
}

}  // namespace

OwnTimes own_times(const LoadedCatalog& catalog) {
  auto files = std::make_shared<std::map<std::filesystem::path, ScenarioFile>>();
  const std::shared_ptr<const NetworkModel> network = make_default_network();
  OwnTimes times;
  times.of_training = [&catalog, network](const ScenarioFile& training, const ClusterSpec& on) {
    return time_on(training, training.scenario.name, on, catalog, *network);
  };
  times.of_file = [&catalog, files, network](const std::filesystem::path& path,
                                             const ClusterSpec& on) -> Expected<Seconds> {
    const std::string name = path.lexically_normal().string();
    auto known = files->find(path);
    if (known == files->end()) {
      std::error_code error;
      if (!std::filesystem::is_regular_file(path, error))
        return not_a_job(name, fmt::format("the file '{}' is not found", name), "");
      auto read = load_scenario(name, {});
      if (!read) return tl::unexpected(std::move(read.error()));
      if (!read->scenario.workload)
        return not_a_job(name, fmt::format("'{}' is not a scenario with one training job", name),
                         "a scenario with a workload: block");
      known = files->emplace(path, std::move(*read)).first;
    }
    return time_on(known->second, name, on, catalog, *network);
  };
  return times;
}

}  // namespace reckon::cli
