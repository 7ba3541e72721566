#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "cli/load/load.h"
#include "cli/run/run_options.h"
#include "executor/launch/local/metrics_server.h"
#include "executor/launch/progress_reader.h"
#include "executor/launch/run_tracker.h"
#include "executor/train/records/run_directory.h"
#include "executor/train/trainable.h"
#include "report/run/status.h"
#include "sim/forecast/forecast.h"
#include "sim/measurement/own_runs.h"

// What `reckon run` does alike wherever the processes are.
namespace reckon::cli {

/// Shows a run on standard error: lines that are rewritten on a terminal, now and then a line
/// elsewhere.
class Display {
 public:
  Display();
  ~Display() { clear(); }
  Display(const Display&) = delete;
  Display& operator=(const Display&) = delete;

  /// `table`: lines above the status, on a terminal only.
  void status(const RunStatus& status, const std::string& table = {});
  void line(std::string_view text);

 private:
  void clear();
  int width() const;

  bool terminal_;
  int drawn_ = 0;  // lines that are to be rewritten
  std::optional<std::chrono::steady_clock::time_point> shown_;
};

/// load_plan_to_run() of what the options name, under their seed.
Expected<LoadedPlan> load_run(const RunOptions& options, const LoadedCatalog& catalog);
/// The deadline that was given, else the tightest upper bound on time that the scenario expects.
std::optional<Seconds> deadline_of(const RunOptions& options, const Plan& plan);
/// --budget in USD. Throws WrongInput where the scenario does not say what a USD costs in its
/// currency, or where a price of the plan is unknown. nullopt: none was given.
std::optional<Usd> budget_of(const RunOptions& options, const LoadedPlan& loaded);
/// The service's rules, changed by --retries and --retry-delay. Where the service waits for nothing
/// a run does, a second that doubles up to a minute: what ends a job at once would end it a
/// thousand times an hour, and nobody could read why.
RetryRules retry_of(const RunOptions& options, RetryRules rules);
/// What of the plan, read from `file`, reckon-worker cannot train; of a program that is not ours
/// nothing is known.
Diagnostics not_trained_by_worker(const RunArtifact& artifact, const std::string& file);
/// The same on this machine, whose memory all ranks share.
Diagnostics not_trained_here(const RunArtifact& artifact, const std::string& file);
/// What of the plan, read from `file`, pods of reckon-worker would not train as it was simulated;
/// of a program that is not ours nothing is known. `node_directory`: --node-dir.
Diagnostics not_trained_in_pods(const RunArtifact& artifact, const std::string& file,
                                const std::string& node_directory, WatchedPods watched);
/// How it tells of its progress. Throws UsageError where its expression is none.
ProgressReader progress_of(const ContainerSpec& container);
RunDirectory directory_of(const RunOptions& options, const Plan& plan);
/// `reckon diff` names which assumption was off, so their effects are in it.
Forecast forecast_with_effects(const Sampling& sampling, const Plan& plan);
/// A plan whose checkpoints are made at the optimal interval holds the one that was forecast.
void keep_save_interval(Plan& plan, const Forecast& forecast);

/// nullptr: nobody asked for metrics.
std::unique_ptr<MetricsServer> metrics_server(const RunOptions& options, Display& display);

/// Does the history get a record of the run? Not of one that it has already.
enum class InHistory { no, yes };

/// Keeps what the run took beside what was forecast of it, as evidence of the next if it ran here
/// (`here`), and draws its timeline. Returns the run by its records; what they do not say, by
/// `end`.
WholeRun keep_and_draw(const Plan& plan, const Forecast& forecast, const RunDirectory& directory,
                       const RunEnd& end, InHistory in_history,
                       const std::optional<OwnRun>& here = std::nullopt);
/// By what the launcher knows of it.
WholeRun run_without_records(const RunEnd& end);

}  // namespace reckon::cli
