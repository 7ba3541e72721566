#pragma once
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "cli/load/load.h"
#include "cli/run/run_options.h"
#include "cli/run/run_parts.h"
#include "planner/remedies.h"
#include "sim/measurement/own_runs.h"
#include "sim/measurement/slow_ranks_outlook.h"
#include "sim/scenario/processor_rates.h"

// `reckon run --replan`: looks while the job runs whether it will keep its deadline and budget, and
// searches beside it for what helps.
namespace reckon::cli {

/// The options with the changes of the decisions that earlier parts of the run took of the plan
/// that the options make, and of those that came of it. Of a run that is not resumed: none.
RunOptions as_decided(RunOptions options, const LoadedCatalog& catalog);

/// Where a run is, as a search for what helps asks: all from a thread of its own.
struct RunsAt {
  bool this_machine = true;  // plans are bound to it, and its measured rates count
  /// Are the nodes of another plan there when it begins? Else some are made for it.
  std::function<bool(const Plan& now, const Plan& next)> has_nodes;
  /// Whether the processes there train the plan.
  std::function<bool(const Plan&)> trains;
  /// Numbers of nodes to consider beside the plan in force.
  std::function<std::vector<int>(const Scenario&, const Plan& now)> nodes;
  /// The command that goes on with the changes, behind "Ctrl-C, then ".
  std::function<std::string(std::span<const std::string> changes)> command;
};
/// This machine; `arguments`: the words of the user behind `reckon run`, which outlive it.
RunsAt runs_here(std::span<const std::string> arguments);

class Replanner {
 public:
  /// The options and the catalog must outlive it.
  Replanner(const RunOptions& options, planner::RunLimits limits, RunsAt at,
            const LoadedCatalog& catalog, Display& display);
  ~Replanner();
  Replanner(const Replanner&) = delete;
  Replanner& operator=(const Replanner&) = delete;

  /// A part of the run begins: under the plan that these options make, bound to this machine so.
  void begin(const RunOptions& options, const RunArtifact& bound, const RunDirectory& directory);
  /// Ten times a second.
  void look(const RunStatus& status);
  /// Fills in a decision's forecasts: `then` with it, `status.estimate` without. Keeps the first in
  /// the history.
  void add_ends(DecisionRecord& decision, const RunStatus& status, const RunEnds& then) const;
  /// The run is to stop behind a checkpoint, and to go on with the changes.
  bool stops() const { return taken_.has_value(); }
  /// "goes on with two more workers"; "": it does not stop.
  std::string reason() const;
  /// The decision that it stops for.
  const DecisionRecord& taken() const { return taken_.value(); }
  /// What is changed; the run then begins another part.
  std::vector<std::string> take();
  /// Whether the options that made the plan in force make it by the files as they are now: somebody
  /// may have changed these for another run.
  bool files_are_as_begun() const;
  /// Nothing is looked for any more: what was decided could not be done.
  void end() { ended_ = true; }

 private:
  struct Search;
  using Found = std::optional<planner::Remedy>;
  using Clock = std::chrono::steady_clock;

  bool has_measured(const RunStatus& status);
  void start_search(const RunStatus& status);
  void decide(const RunStatus& status, Found found);
  void record(const RunStatus& status, const DecisionRecord& decision, const Found& found) const;
  void keep_in_history(const Plan& plan, const planner::RunOutlook& outlook,
                       const RunStatus& status) const;
  void tell(const RunStatus& status, const DecisionRecord& decision);
  void tell_files_changed();

  const RunOptions& asked_;
  const planner::RunLimits limits_;
  const RunsAt at_;
  const LoadedCatalog& catalog_;
  Display& display_;
  std::optional<ProcessorRates> rates_;

  RunOptions options_;       // that make the plan in force
  std::string made_digest_;  // of what they made when its part began
  RunArtifact bound_;
  RunDirectory directory_;
  std::vector<OwnRun> seen_;                // steps of the run's earlier plans
  std::optional<std::int64_t> first_step_;  // of this part

  std::stop_source cancel_;
  std::shared_ptr<Search> latest_;  // of this part
  std::future<Found> search_;
  Clock::time_point searched_{}, next_search_{};
  std::optional<std::string> told_;
  bool told_files_ = false, ended_ = false;
  std::optional<DecisionRecord> taken_;
};

}  // namespace reckon::cli
