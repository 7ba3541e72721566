#include "cli/load/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <utility>

#include "cli/errors.h"
#include "cli/output.h"
#include "cli/own_job_time.h"
#include "exchange/model_files.h"
#include "executor/train/records/run_directory.h"
#include "sim/accuracy/plan_evidence.h"
#include "sim/accuracy/profiled_step.h"
#include "sim/base/printed_currency.h"
#include "sim/scenario/own_program.h"
#include "sim/scenario/resolve/one_job.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "sim/serving/serving.h"
#include "sim/step/step.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

fs::path plan_of_run(const std::string& file) {
  std::error_code error;
  return fs::is_directory(file, error) ? RunDirectory{file}.plan() : fs::path(file);
}

/// The first currency that is read is the command's.
void print_in(const Currency& currency) {
  static std::mutex first;
  const std::lock_guard lock(first);
  if (printed_currency() == Currency{}) print_money_in(currency);
}

bool asks_whether_feasible(const Plan& plan) {
  return std::any_of(plan.expect.begin(), plan.expect.end(),
                     [](const Expectation& e) { return e.metric == Metric::feasible; });
}

Expected<ScenarioFile> with_model_files(Expected<ScenarioFile> scenario) {
  if (!scenario) return scenario;
  print_in_its_currency(*scenario);
  Diagnostics unread = resolve_model_files(*scenario);
  if (!unread.empty()) return tl::unexpected(std::move(unread));
  return scenario;
}

/// `as_written`: the scenario before the command line's changes.
Expected<void> apply_evidence(Plan& plan, const ScenarioFile& as_written,
                              const LoadedCatalog& catalog) {
  const auto profile = evidence_of_profile(as_written, catalog);
  if (!profile) return tl::unexpected(profile.error());
  const PlannedPool* workers = plan.pool_with(Role::worker);
  if (workers == nullptr || !workers->accelerator) return {};  // before any is made ready
  const Evidence* evidence = *profile ? profile->get() : catalog.evidence();
  if (evidence == nullptr || !set_residual(plan, *evidence)) return {};
  add_trial(plan, *evidence);
  return {};
}

/// Of a scenario with a measured step, which was measured before anything was changed.
Expected<std::optional<ScenarioFile>> as_written(const std::string& file,
                                                 const ScenarioChanges& changes,
                                                 const ScenarioFile& changed) {
  if (changes.overrides.empty() || !has_profiled_step(changed.scenario)) return std::nullopt;
  auto read = load_scenario(file, {.overrides = {}, .layers = changes.layers});
  if (!read) return tl::unexpected(std::move(read.error()));
  return std::optional(std::move(*read));
}

}  // namespace

void print_in_its_currency(const ScenarioFile& file) {
  const auto& prices = file.scenario.prices;
  if (prices && prices->usd_rate && *prices->usd_rate > 0)
    print_in({prices->currency, *prices->usd_rate});
}

std::optional<Expected<ReadArtifact>> load_artifact(const std::string& file) {
  const fs::path path = plan_of_run(file);
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return std::nullopt;
  const std::string bytes = read_text(path);
  if (!is_artifact(bytes)) return std::nullopt;
  auto read = read_artifact(bytes, path.string());
  if (read) print_in(read->artifact.plan.currency);
  return read;
}

Expected<ScenarioText> scenario_text(const std::string& file) {
  const auto run = load_artifact(file);
  if (!run) return ScenarioText{read_text(file), file};
  if (!*run) return tl::unexpected(run->error());
  const RunArtifact& of = (*run)->artifact;
  return ScenarioText{of.scenario, (plan_of_run(file).parent_path() / of.file).string()};
}

Expected<ScenarioFile> load_scenario(const std::string& file, const ScenarioChanges& changes) {
  if (!load_artifact(file))
    return with_model_files(read_scenario(file, changes.overrides, changes.layers));
  const auto run = scenario_text(file);
  if (!run) return tl::unexpected(run.error());
  return load_scenario_text(run->text, run->file, changes);
}

Expected<ScenarioFile> load_scenario_text(std::string_view text, const std::string& file,
                                          const ScenarioChanges& changes) {
  return with_model_files(parse_scenario(text, file, changes.overrides, changes.layers));
}

Expected<std::unique_ptr<const Evidence>> evidence_of_profile(const ScenarioFile& as_written,
                                                              const LoadedCatalog& catalog) {
  if (!has_profiled_step(as_written.scenario)) return nullptr;
  const auto row = profiled_row(as_written, catalog);
  if (!row) return tl::unexpected(row.error());
  return catalog.evidence_with(*row);
}

Expected<LoadedPlan> read_plan(const std::string& file, const ScenarioChanges& changes,
                               const LoadedCatalog& catalog) {
  auto scenario = load_scenario(file, changes);
  if (!scenario) return tl::unexpected(std::move(scenario.error()));
  auto plan = make_plan(*scenario, catalog);
  if (!plan) return tl::unexpected(std::move(plan.error()));
  const auto written = as_written(file, changes, *scenario);
  if (!written) return tl::unexpected(written.error());
  if (auto applied = apply_evidence(*plan, *written ? **written : *scenario, catalog); !applied)
    return tl::unexpected(std::move(applied.error()));
  return LoadedPlan{std::move(*scenario), std::move(*plan)};
}

fs::path artifact_beside(const std::string& scenario) {
  return fs::path(scenario).replace_extension(".reckon");
}

RunArtifact artifact_of(LoadedPlan loaded, const std::string& file,
                        const ScenarioChanges& changes) {
  const auto& workload = loaded.file.scenario.workload;
  const ScenarioText of = scenario_text(file).value();  // it was read
  constexpr std::array<std::string_view, 1> kInIt{"extends"};
  // One that is run as it is keeps its digest, whatever folder it stands in by now.
  const auto planned = load_artifact(file);
  const bool as_planned = planned && *planned && !(*planned)->artifact.rebound &&
                          changes.overrides.empty() && changes.layers.empty();
  return {
      .plan = std::move(loaded.plan),
      .container = workload ? workload->container : std::nullopt,
      .scenario = flat_scenario(of.text, of.file, changes.overrides, changes.layers, kInIt).value(),
      .file = as_planned ? (*planned)->artifact.file : fs::absolute(of.file).string(),
      .rebound = {}};
}

void tell_left_out(const RunArtifact& planned) {
  if (planned.container) return;
  if (const std::string what = left_out_by_own_program(planned.plan); !what.empty())
    print_error(fmt::format("reckon: {}\n", what));
}

namespace {

Diagnostics memory_problems(const Plan& plan, const ScenarioFile& file, const Catalog& catalog) {
  Diagnostics problems;
  for (std::size_t k = 0; k < plan.jobs.size(); ++k) {
    if (plan.jobs[k].same_as) continue;
    const Plan alone = plan_of_job(plan, k);
    const Places places = file.places.with_alias(alone.only_job().path, "workload");
    if (auto problem = check_memory(alone, alone.only_job(), catalog, places))
      problems.push_back(std::move(*problem));
  }
  return problems;
}

Expected<LoadedPlan> if_it_fits(Expected<LoadedPlan> loaded, const Catalog& catalog) {
  if (!loaded) return loaded;
  Diagnostics problems = memory_problems(loaded->plan, loaded->file, catalog);
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return loaded;
}

void add_new(Diagnostics& all, const Diagnostics& more) {
  for (const Diagnostic& d : more)
    if (std::find(all.begin(), all.end(), d) == all.end()) all.push_back(d);
}

}  // namespace

Expected<LoadedPlan> load_plan(const std::string& file, const ScenarioChanges& changes,
                               const LoadedCatalog& catalog) {
  auto loaded = read_plan(file, changes, catalog);
  if (loaded && asks_whether_feasible(loaded->plan)) return loaded;
  return if_it_fits(std::move(loaded), catalog);
}

Expected<LoadedPlan> load_plan_that_fits(const std::string& file, const ScenarioChanges& changes,
                                         const LoadedCatalog& catalog) {
  return if_it_fits(read_plan(file, changes, catalog), catalog);
}

namespace {

bool changes_nothing(const ScenarioChanges& changes, const CatalogChoice& choice) {
  return changes.overrides.empty() && changes.layers.empty() && choice.catalogs.empty() &&
         choice.calibrations.empty() && choice.evidence.empty() && choice.without_evidence.empty();
}

}  // namespace

Expected<LoadedPlan> load_plan_to_run(const std::string& file, const ScenarioChanges& changes,
                                      const CatalogChoice& choice, const LoadedCatalog& catalog) {
  auto read = load_artifact(file);
  // One that a machine was measured for is made again for the machine that runs it now.
  const bool as_planned = read && *read && !(*read)->artifact.rebound;
  if (!as_planned || !changes_nothing(changes, choice)) return load_plan(file, changes, catalog);
  if (auto problem = why_not_run(**read, file))
    return tl::unexpected(Diagnostics{std::move(*problem)});
  const auto of = scenario_text(file);
  if (!of) return tl::unexpected(of.error());
  auto scenario = parse_scenario(of->text, of->file);
  if (!scenario) return tl::unexpected(std::move(scenario.error()));
  return LoadedPlan{std::move(*scenario), std::move((*read)->artifact.plan)};
}

Expected<LoadedScenario> load_all(const std::string& file, const ScenarioChanges& changes,
                                  const LoadedCatalog& catalog) {
  auto scenario = load_scenario(file, changes);
  if (!scenario) return tl::unexpected(std::move(scenario.error()));
  const auto written = as_written(file, changes, *scenario);
  if (!written) return tl::unexpected(written.error());
  return load_all(std::move(*scenario), catalog, *written ? &**written : nullptr);
}

Expected<LoadedScenario> load_all(ScenarioFile scenario, const LoadedCatalog& catalog,
                                  const ScenarioFile* as_written) {
  LoadedScenario loaded;
  loaded.file = std::move(scenario);
  const Scenario& asked = loaded.file.scenario;
  if (asked.of_queue()) {
    QueueSources sources;
    sources.own_times = own_times(catalog);
    sources.offers = [&catalog](const ScenarioFile& file) {
      return karpenter_offers(file, catalog);
    };
    auto trace = load_trace(loaded.file, sources);
    if (!trace) return tl::unexpected(std::move(trace.error()));
    loaded.trace = std::move(*trace);
    return loaded;
  }
  Diagnostics problems;
  if (trains(asked) || !asked.serving) {
    auto plan = make_plan(loaded.file, catalog);
    if (!plan) add_new(problems, plan.error());
    if (plan) {
      if (!asks_whether_feasible(*plan))
        add_new(problems, memory_problems(*plan, loaded.file, catalog));
      const auto applied =
          apply_evidence(*plan, as_written != nullptr ? *as_written : loaded.file, catalog);
      if (!applied) add_new(problems, applied.error());
      loaded.plan = std::move(*plan);
    }
  }
  if (asked.serving) {
    auto serving = make_serving_plan(loaded.file, catalog);
    if (!serving)
      add_new(problems, serving.error());
    else if (auto problem = check_serving_memory(*serving, loaded.file.places))
      add_new(problems, {std::move(*problem)});
    if (serving) loaded.serving = std::move(*serving);
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return loaded;
}

void require_one_job(const LoadedPlan& loaded, std::string_view what) {
  if (auto several = why_not_one_job(loaded.plan, loaded.file.places, what))
    throw WrongInput({std::move(*several)});
}

}  // namespace reckon::cli
