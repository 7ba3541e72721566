#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/calibrate/profiles.h"
#include "cli/command.h"
#include "cli/history/history_store.h"
#include "cli/load/load.h"
#include "cli/load/measurements.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "executor/train/records/run_directory.h"
#include "report/run/calibration.h"
#include "sim/base/text/shell_word.h"
#include "sim/base/unit_text.h"
#include "sim/measurement/calibration/calibrate.h"
#include "sim/scenario/resolve/one_job.h"
#include "sim/serving/measured_service.h"

namespace reckon::cli {
namespace {

namespace fs = std::filesystem;

Expected<ScenarioFile> scenario_given(const fs::path& path, const CalibrateOptions& options) {
  if (!options.scenario.empty()) return load_scenario(options.scenario, options);
  return tl::unexpected(Diagnostics{{Severity::error,
                                     {path.string(), 0, 0},
                                     "the file does not name its scenario",
                                     "name it: --scenario FILE"}});
}

template <class T, class Make>
Expected<MeasuredRun> made(const Expected<ScenarioFile>& scenario, const Expected<T>& read,
                           Make make) {
  Diagnostics problems;
  if (!scenario) problems = scenario.error();
  if (!read) problems.insert(problems.end(), read.error().begin(), read.error().end());
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return make(*scenario, *read);
}

/// Runs as they are read, and what files of other tools say.
struct Loading {
  const CalibrateOptions& options;
  const Catalog& catalog;
  std::vector<ProfiledFile> profiles;
};

/// Of programs that are not ours.
Expected<MeasuredRun> load_log(const fs::path& path, Loading& loading) {
  const CalibrateOptions& options = loading.options;
  const Catalog& catalog = loading.catalog;
  const std::string name = path.string();
  if (fs::is_regular_file(path) && fs::file_size(path) > kLargestProfile)
    return tl::unexpected(Diagnostics{
        {Severity::error,
         {name, 0, 0},
         fmt::format("the file has {}", format_bytes(Bytes{double(fs::file_size(path))})),
         "at most 1 GiB is read: profile fewer steps"}});
  std::string text = read_text(path);
  const std::string& pattern = options.pattern;
  if (pattern.empty() && is_profile(text)) {
    const bool named = !options.scenario.empty();
    auto of = named ? scenario_given(path, options) : ScenarioFile{};
    if (!of) return tl::unexpected(std::move(of.error()));
    return load_profile(path, std::move(text), named ? &*of : nullptr, options, catalog,
                        loading.profiles);
  }
  const auto scenario = scenario_given(path, options);
  if (pattern.empty() && is_waiting_csv(text))
    return made(scenario, parse_waiting_csv(name, text),
                [&](const auto& s, const auto& waits) { return measured_waits(name, s, waits); });
  const auto log =
      pattern.empty() ? parse_step_csv(name, text) : parse_pattern_log(name, text, pattern);
  Expected<Plan> plan = Plan{};
  if (scenario) plan = make_plan(*scenario, catalog);
  if (!plan) return tl::unexpected(plan.error());
  if (scenario)
    if (auto several = why_not_one_job(*plan, scenario->places, "a log of steps"))
      return tl::unexpected(Diagnostics{std::move(*several)});
  return made(scenario, log, [&](const auto& s, const StepLog& steps) {
    return measured_steps(name, s, steps.seconds(double(plan->only_job().global_batch)));
  });
}

/// A directory without measurements may be the one that holds the runs.
Diagnostics no_run_in(const fs::path& directory) {
  std::vector<std::string> runs;
  for (const auto& entry : fs::directory_iterator(directory))
    if (fs::exists(RunDirectory{entry.path()}.measurements()))
      runs.push_back(shell_file(entry.path().string()));
  std::ranges::sort(runs);
  const std::string hint =
      runs.empty() ? "name the directory that `reckon run` printed, such as runs/NAME"
                   : fmt::format("it holds runs: reckon calibrate {}", fmt::join(runs, " "));
  return {{Severity::error, {directory.string(), 0, 0}, "has no measurements.jsonl", hint}};
}

/// A run is named by its directory or by its measurements.
Expected<MeasuredRun> load_run(const fs::path& path, Loading& loading) {
  const CalibrateOptions& options = loading.options;
  const bool directory = fs::is_directory(path);
  if (!directory && path.extension() != ".jsonl") return load_log(path, loading);
  const RunDirectory run{directory ? path : path.parent_path()};
  const fs::path file = directory ? run.measurements() : path;
  if (directory && !fs::exists(file)) return tl::unexpected(no_run_in(path));
  auto measured = load_measurements(file);
  if (!measured) return tl::unexpected(std::move(measured.error()));
  if (measured->runs.empty() && !measured->probes.empty()) {
    auto of = options.scenario.empty() ? ScenarioFile{} : scenario_given(path, options);
    if (!of) return tl::unexpected(std::move(of.error()));
    return measured_probe(path.string(), std::move(*of), *measured);
  }
  const bool own = options.scenario.empty() && fs::exists(run.plan());
  // Its own job, with the facts of the catalog in use.
  auto scenario = own ? load_scenario(run.plan().string(), {}) : scenario_given(path, options);
  if (!scenario) return tl::unexpected(std::move(scenario.error()));
  return measured_run(path.string(), std::move(*scenario), *measured);
}

Expected<std::vector<MeasuredRun>> load_runs(Loading& loading) {
  std::vector<MeasuredRun> runs;
  Diagnostics problems;
  for (const std::string& file : loading.options.files) {
    auto run = load_run(file, loading);
    if (!run) {
      problems.insert(problems.end(), run.error().begin(), run.error().end());
      continue;
    }
    // Of several alike the second is "mlp 2".
    const std::string name = run->name;
    for (int n = 2; std::any_of(runs.begin(), runs.end(),
                                [&](const MeasuredRun& r) { return r.name == run->name; });
         ++n)
      run->name = fmt::format("{} {}", name, n);
    runs.push_back(std::move(*run));
  }
  if (!problems.empty()) return tl::unexpected(std::move(problems));
  return runs;
}

/// The metrics of a server that answers requests: no run, and no number of the catalog.
bool is_server(const fs::path& path) {
  return fs::is_regular_file(path) && path.extension() != ".jsonl" &&
         is_serving_metrics(read_text(path));
}

Expected<MeasuredService> measured_service(const fs::path& path) {
  const std::string text = read_text(path);
  const auto batches = parse_serving_metrics(path.string(), text);
  if (!batches) return tl::unexpected(batches.error());
  MeasuredService service = fit_serving(*batches, measured_outside(text), measured_alone(text));
  if (service.line || service.slowed) return service;
  return tl::unexpected(
      Diagnostics{{Severity::error,
                   {path.string(), 0, 0},
                   "all batches had the same size: what a batch and what a request costs cannot be "
                   "told apart",
                   "read /metrics again under more load, so that some requests share a batch"}});
}

std::string times_in_words(const MeasuredService& service) {
  const auto& [least, first] = service.times.front();
  const auto& [most, last] = service.times.back();
  return fmt::format("{} for {:.3g} requests to {} for {:.3g}", format_duration(first), least,
                     format_duration(last), most);
}

std::string in_words(const MeasuredService& service) {
  std::string out;
  if (service.slowed)
    out = fmt::format("under load a pass takes {:.2f} times as long as alone: {}\n",
                      *service.slowed, times_in_words(service));
  else if (service.times.empty())
    out = fmt::format(
        "a batch takes {} and {} a request, within {} of what was measured of each size\n",
        format_duration(service.line->batch), format_duration(service.line->request),
        format_percent(service.line->error));
  else
    out = fmt::format(
        "a line of a batch and its requests is {} off: the {} sizes that were measured are "
        "written, {}\n",
        format_percent(service.line->error), service.times.size(), times_in_words(service));
  if (service.outside.count() > 0)
    out += fmt::format("reading a request and writing its answer take {} beside the queue\n",
                       format_duration(service.outside));
  return out;
}

int calibrate_server(const CalibrateOptions& options, const fs::path& path) {
  const auto service = checked(measured_service(path));
  const std::string out = options.out.empty() ? "measured-serving.yaml" : options.out;
  write_file(out, serving_layer(service, path.filename().string()));
  if (out != "-")
    print(in_words(service) +
          fmt::format("{}: for the same model on such machines, with --layer {}\n", out, out));
  return kDone;
}

/// Nothing that a calibration is made of: shares of the time, how busy GPUs were.
bool tells_only_of_itself(const MeasuredRun& run) {
  return run.quantities.empty() && run.waits.empty();
}

int tell_profiles(const CalibrateOptions& options, std::span<const ProfiledFile> profiles) {
  print(options.format == OutputFormat::json
            ? calibration_json({}, profiles)
            : profile_sections(profiles) + "No step is measured in it: nothing is written.\n");
  return kDone;
}

int calibrate_runs(const CalibrateOptions& options, const Catalog& catalog) {
  Loading loading{options, catalog, {}};
  const auto runs = checked(load_runs(loading));
  const auto& profiles = loading.profiles;
  if (profiles.size() == runs.size() && std::ranges::all_of(runs, tells_only_of_itself))
    return tell_profiles(options, profiles);
  auto calibration = checked(calibrate(runs, catalog, *make_network({})));
  calibration.created = utc_now().substr(0, 10);
  calibration.name = options.out.empty() ? "calibration.yaml" : options.out;
  const bool refused = calibration.held_out.worse && !options.force;
  if (!refused) write_file(calibration.name, to_yaml(calibration));
  if (calibration.name != "-")
    print(options.format == OutputFormat::json
              ? calibration_json(calibration, profiles)
              : profile_sections(profiles) + calibration_table(calibration));
  if (refused)
    print_error(
        "reckon calibrate: forecasts of what was held out become worse: nothing is written "
        "(--force writes it all the same)\n");
  return refused ? kAnswerIsNo : kDone;
}

}  // namespace

std::vector<Option> CalibrateOptions::declared() {
  return {
      out_option(),
      {{"scenario", "FILE", "scenario that was measured, for files that do not name it"},
       text(scenario)},
      {{"pattern", "REGEX",
        "regular expression of a log's steps, with a group named seconds, milliseconds or "
        "samples_per_second"},
       text(pattern)},
      {steps_text(), whole(steps, 2, 1'000'000)},
      {{"force", "", "write the overlay even if it makes held-out forecasts worse"}, given(force)},
      set_option(),
      layer_option(),
      catalog_option(),
      calibration_option(),
      format_option()};
}

std::vector<OptionText> calibrate_options() { return shown_options<CalibrateOptions>(); }

int run_calibrate(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<CalibrateOptions>(self, arguments);
  if (!options) return kDone;
  const auto catalog = checked(load_catalogs(*options));
  const bool one_server = options->files.size() == 1 && is_server(options->files.front());
  return one_server ? calibrate_server(*options, options->files.front())
                    : calibrate_runs(*options, catalog);
}

}  // namespace reckon::cli
