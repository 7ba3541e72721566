#include <fmt/format.h>

#include <filesystem>

#include "cli/command.h"
#include "cli/history/history_store.h"
#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/simulate/answer.h"
#include "cli/simulate/submit.h"
#include "cli/sweep.h"
#include "report/html/html.h"
#include "report/json.h"
#include "report/memo/memo.h"
#include "report/queue/queue.h"
#include "report/serving/serving.h"
#include "report/serving/sweep.h"
#include "report/table.h"
#include "sim/forecast/forecast.h"
#include "sim/serving/serving_range.h"

namespace reckon::cli {
namespace {

struct SimulateOptions : Files,
                         AnswerFormat,
                         Sampling,
                         ScenarioChanges,
                         Sweeps,
                         SubmitChoice,
                         NetworkChoice,
                         CatalogChoice {
  std::string csv, memo, html, trace;  // files to write; "": none

  std::vector<Option> declared() {
    std::vector<Option> all{
        format_option(),
        seed_option(),
        replications_option(),
        set_option(),
        layer_option(),
        sweep_option(),
        {{"csv", "FILE",
          "CSV of the --sweep rows; for a queue without --sweep, a directory with jobs.csv and "
          "teams.csv"},
         file_name(csv)},
        memo_option(memo),
        html_option(html),
        {{"trace", "FILE",
          "event trace of one replication, for ui.perfetto.dev or chrome://tracing"},
         file_name(trace)},
        cluster_option()};
    for (Option& option : submit_options()) all.push_back(std::move(option));
    for (Option option : {engine_option(), catalog_option(), calibration_option(),
                          evidence_option(), without_evidence_option(), threads_option()})
      all.push_back(std::move(option));
    return all;
  }
  void check() const {
    check_submit();
    const bool writes = !trace.empty() || !csv.empty() || !memo.empty() || !html.empty();
    if (!cluster.empty() && (writes || !sweeps.empty()))
      throw UsageError(
          "--cluster answers when a job starts; --trace, --csv, --memo, --html and --sweep show a "
          "run: leave them out");
    refuse_same_file({{"trace", &trace}, {"csv", &csv}, {"memo", &memo}, {"html", &html}});
    if (files.size() > 1)
      throw UsageError("simulate takes one scenario file; for several use 'reckon check'");
    if (!trace.empty() && !sweeps.empty())
      throw UsageError("--trace shows one run and --sweep makes many: leave one of them out");
    if (!html.empty() && !sweeps.empty())
      throw UsageError(
          "--html shows one plan and --sweep makes many: 'reckon compare FILE --sweep ... --html' "
          "shows them side by side");
  }
};

void write_html(const Plan& plan, const Forecast& forecast, const NetworkModel& network,
                const SimulateOptions& options, const ServingForecast* serving) {
  HtmlReport report{plan, forecast, question_of(read_text(options.files.front()))};
  report.serving = serving;
  LifeResult life;
  if (forecast.feasible) {
    report.replication = typical_replication(forecast);
    life = record_replication(plan, network, forecast.seed, report.replication);
    report.life = &life;
  }
  write_file(options.html, forecast_html(report, html_assets()));
}

/// Files besides the answer.
void write_forecast_files(const SimulateOptions& options, const Plan& plan,
                          const Forecast& forecast, const NetworkModel& network,
                          const Sweep* alternatives, const ServingForecast* serving) {
  const std::string& file = options.files.front();
  if (!options.trace.empty() && !forecast.feasible)
    print_error(fmt::format("no {}: what does not fit in memory has no timeline\n", options.trace));
  if (forecast.feasible) keep(record_of(plan, forecast, utc_now()));
  if (!options.trace.empty() && forecast.feasible)
    write_file(options.trace,
               trace_json(plan, record_replication(plan, network, forecast.seed, 0)));
  if (!options.memo.empty())
    write_file(options.memo, memo_markdown({plan, forecast, question_of(read_text(file)),
                                            alternatives, serving}));
  if (!options.html.empty()) write_html(plan, forecast, network, options, serving);
}

int simulate_queue(const LoadedScenario& loaded, const SimulateOptions& options) {
  if (!options.memo.empty())
    throw UsageError("--memo shows a training, and this scenario is a trace");
  const TraceResult result = answer_trace(*loaded.trace, options);
  print(options.format == OutputFormat::json ? queue_json(result) : queue_table(result));
  if (options.csv.empty() && options.html.empty() && options.trace.empty()) return kDone;
  TraceQuestion asked = *loaded.trace;
  asked.seed = result.seed;
  const auto record = record_queue(asked);
  if (!record)
    throw UsageError(
        "--csv, --html and --trace show jobs that take a recorded time, and these do not");
  if (!options.csv.empty()) {
    const std::filesystem::path folder = options.csv;
    std::filesystem::create_directories(folder);
    write_file(folder / "jobs.csv", queue_jobs_csv(asked, *record));
    write_file(folder / "teams.csv", queue_teams_csv(result));
  }
  if (!options.trace.empty()) write_file(options.trace, queue_trace_json(asked, *record));
  if (!options.html.empty())
    write_file(options.html,
               queue_html({asked, result, *record, question_of(read_text(options.files.front()))},
                          html_assets()));
  return kDone;
}

int simulate_queue_sweep(const SimulateOptions& options, const std::vector<SweepAxis>& axes,
                         const LoadedCatalog& catalog) {
  if (!options.memo.empty())
    throw UsageError("--memo is of a training, and this --sweep of a queue: leave one out");
  const auto sweep =
      checked(run_queue_sweep(options.files.front(), options, options, axes, catalog));
  print(options.format == OutputFormat::json ? queue_sweep_json(sweep) : queue_sweep_table(sweep));
  if (!options.csv.empty()) write_file(options.csv, queue_sweep_csv(sweep));
  return kDone;
}

/// The scenario itself, without any --sweep.
int simulate_one(const SimulateOptions& options, const LoadedCatalog& catalog,
                 const NetworkModel& network, const Sweep* alternatives) {
  const auto loaded = checked(load_all(options.files.front(), options, catalog));
  if (loaded.trace) return simulate_queue(loaded, options);
  if (!options.csv.empty() && alternatives == nullptr)
    throw UsageError("--csv needs --sweep, whose rows it writes");
  const bool of_training = !options.trace.empty() || !options.memo.empty() || !options.html.empty();
  if (!loaded.plan && of_training)
    throw UsageError("--trace, --memo and --html show a training, and this scenario only serves");
  ScenarioAnswer answer;
  {
    ProgressLine progress;
    answer = answer_scenario(loaded, network, options, progress.callback());
  }
  const auto& [forecast, serving] = answer;
  if (alternatives == nullptr) print(answer_text(answer, options.format));
  if (forecast)
    write_forecast_files(options, *loaded.plan, *forecast, network, alternatives,
                         serving ? &*serving : nullptr);
  return kDone;
}

int simulate_serving_sweep(const SimulateOptions& options, const std::vector<SweepAxis>& axes,
                           const LoadedCatalog& catalog) {
  if (!options.memo.empty())
    throw UsageError("--memo is of a training, and this --sweep of a service: leave one out");
  const auto sweep =
      checked(run_serving_sweep(options.files.front(), options, options, axes, catalog));
  print(options.format == OutputFormat::json ? serving_sweep_json(sweep)
                                             : serving_sweep_table(sweep));
  if (!options.csv.empty()) write_file(options.csv, serving_sweep_csv(sweep));
  return kDone;
}

int simulate_sweep(const SimulateOptions& options, const LoadedCatalog& catalog,
                   const NetworkModel& network) {
  const std::vector<SweepAxis> axes = sweep_axes(options, true);
  if (checked(load_scenario(options.files.front(), options)).scenario.of_queue())
    return simulate_queue_sweep(options, axes, catalog);
  const auto of_service = checked(sweeps_service(options.files.front(), options, axes));
  if (of_service) return simulate_serving_sweep(options, axes, catalog);
  const auto sweep =
      checked(run_sweep(options.files.front(), options, options, axes, catalog, network));
  print(options.format == OutputFormat::json ? sweep_json(sweep) : sweep_table(sweep));
  if (!options.csv.empty()) write_file(options.csv, sweep_csv(sweep));
  return options.memo.empty() ? kDone : simulate_one(options, catalog, network, &sweep);
}

}  // namespace

std::vector<OptionText> simulate_options() { return shown_options<SimulateOptions>(); }

int run_simulate(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<SimulateOptions>(self, arguments);
  if (!options) return kDone;
  if (!options->html.empty()) require_html();
  const auto catalog = checked(load_catalogs(*options));
  const auto network = make_network(*options);
  if (!options->cluster.empty())
    return simulate_submission(options->files.front(), *options, *options, *options,
                               options->format, catalog, *network);
  return options->sweeps.empty() ? simulate_one(*options, catalog, *network, nullptr)
                                 : simulate_sweep(*options, catalog, *network);
}

}  // namespace reckon::cli
