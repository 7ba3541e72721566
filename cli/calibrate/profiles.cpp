#include "cli/calibrate/profiles.h"

#include <fmt/format.h>

#include <utility>

#include "cli/load/load.h"
#include "sim/accuracy/plan_evidence.h"
#include "sim/base/unit_text.h"
#include "sim/measurement/calibration/predicted.h"
#include "sim/measurement/profiles/kineto.h"
#include "sim/measurement/profiles/nsys.h"
#include "sim/scenario/artifact/gzip.h"
#include "sim/scenario/resolve/one_job.h"

namespace reckon::cli {
namespace {

template <class T>
Expected<std::variant<Profile, DeviceActivity, CollectiveLog>> as_any(Expected<T> read) {
  if (!read) return tl::unexpected(std::move(read.error()));
  return std::move(*read);
}

Expected<std::variant<Profile, DeviceActivity, CollectiveLog>> parse(
    const std::string& name, std::string_view bytes, const CalibrateOptions& options) {
  if (is_sqlite(bytes)) return as_any(parse_nsys_sqlite(name, bytes, options.steps));
  if (is_kineto(bytes)) return as_any(parse_kineto(name, bytes));
  if (is_nsys_csv(bytes)) return as_any(parse_nsys_csv(name, bytes, options.steps));
  if (is_nccl_tests(bytes)) return as_any(parse_nccl_tests(name, bytes));
  if (is_dcgm(bytes)) return as_any(parse_dcgm(name, bytes));
  return tl::unexpected(Diagnostics{
      {Severity::error,
       {name, 0, 0},
       "the packed file is no profile",
       "profiles: PyTorch's traces, Nsight Systems' databases and tables, nccl-tests, DCGM"}});
}

bool tells_of_job(const ProfiledFile& file) {
  if (const auto* profile = std::get_if<Profile>(&file.what)) return !profile->steps.empty();
  const auto* log = std::get_if<CollectiveLog>(&file.what);
  return log != nullptr && log->collective == "all_reduce";
}

/// What was profiled is what the scenario says, as far as the file tells.
Diagnostics contradictions(const ProfiledFile& file, const Plan& plan) {
  Diagnostics problems;
  const auto* profile = std::get_if<Profile>(&file.what);
  const PlannedPool* pool = plan.pool_with(Role::worker);
  if (profile == nullptr || pool == nullptr) return problems;
  const auto problem = [&](std::string what) {
    problems.push_back({Severity::error,
                        {file.file, 0, 0},
                        std::move(what),
                        "name the scenario of the job that was profiled: --scenario FILE, --set"});
  };
  if (!profile->device.empty() &&
      !(pool->accelerator && names_accelerator(profile->device, pool->accelerator->name)))
    problem(
        fmt::format("it is of '{}', the scenario has {}", profile->device,
                    pool->accelerator ? std::string(pool->accelerator->name) : "no accelerator"));
  const int accelerators = plan.only_job().strategy.accelerators();
  if (profile->ranks > 0 && profile->ranks != accelerators)
    problem(fmt::format("its job has {} ranks, the scenario's {} accelerators", profile->ranks,
                        accelerators));
  return problems;
}

ProfileForecast forecast_of(const Plan& plan, const NetworkModel& network) {
  const PlannedWorkload& job = plan.only_job();
  const PlannedPool* pool = plan.pool_with(Role::worker);
  ProfileForecast forecast;
  forecast.step = estimate_step(plan, job, network);
  forecast.memory = estimate_memory(plan, job);
  if (pool != nullptr && pool->accelerator) forecast.watts = pool->accelerator->power_watts;
  return forecast;
}

}  // namespace

bool is_profile(std::string_view bytes) {
  return artifact::is_packed(bytes) || is_sqlite(bytes) || is_kineto(bytes) || is_nsys_csv(bytes) ||
         is_nccl_tests(bytes) || is_dcgm(bytes);
}

Expected<MeasuredRun> load_profile(const std::filesystem::path& path, std::string bytes,
                                   const ScenarioFile* scenario, const CalibrateOptions& options,
                                   const Catalog& catalog, std::vector<ProfiledFile>& read) {
  const std::string name = path.string();
  if (artifact::is_packed(bytes)) {
    auto text = artifact::unpacked(bytes, kLargestProfile);
    if (!text)
      return tl::unexpected(Diagnostics{
          {Severity::error, {name, 0, 0}, text.error(), "copy it again, or profile fewer steps"}});
    bytes = std::move(*text);
  }
  auto what = parse(name, bytes, options);
  if (!what) return tl::unexpected(std::move(what.error()));
  ProfiledFile file{name, std::move(*what), {}};
  if (scenario == nullptr && tells_of_job(file))
    return tl::unexpected(Diagnostics{{Severity::error,
                                       {name, 0, 0},
                                       "the file does not name its scenario",
                                       "name it: --scenario FILE"}});
  MeasuredRun run = measured_waits(name, scenario != nullptr ? *scenario : ScenarioFile{}, {});
  if (scenario != nullptr) {
    const auto plan = make_plan(*scenario, catalog);
    if (!plan) return tl::unexpected(plan.error());
    if (auto several = why_not_one_job(*plan, scenario->places, "a profile"))
      return tl::unexpected(Diagnostics{std::move(*several)});
    if (Diagnostics wrong = contradictions(file, *plan); !wrong.empty())
      return tl::unexpected(std::move(wrong));
    file.forecast = forecast_of(*plan, *make_network({}));
    if (const auto* profile = std::get_if<Profile>(&file.what); profile && !profile->steps.empty())
      run = measured_steps(name, *scenario, profile->steps);
    if (const auto* log = std::get_if<CollectiveLog>(&file.what); log && tells_of_job(file))
      run = measured_collectives(name, *scenario, log->samples);
  }
  read.push_back(std::move(file));
  return run;
}

}  // namespace reckon::cli
