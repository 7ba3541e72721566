#pragma once
#include <chrono>
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
#include "sim/scenario/processor_rates.h"

// `reckon run --replan`: looks while the job runs whether it will keep its deadline and budget, and
// searches beside it for what helps.
namespace reckon::cli {

/// The options with the changes of the decisions that earlier parts of the run took of the plan
/// that the options make, and of those that came of it. Of a run that is not resumed: none.
RunOptions as_decided(RunOptions options, const LoadedCatalog& catalog);

class Replanner {
 public:
  /// `arguments`: the words of the user behind `reckon run`. The catalog must outlive it.
  Replanner(const RunOptions& options, planner::RunLimits limits,
            std::span<const std::string> arguments, const LoadedCatalog& catalog, Display& display);
  ~Replanner();
  Replanner(const Replanner&) = delete;
  Replanner& operator=(const Replanner&) = delete;

  /// A part of the run begins: under the plan that these options make, bound to this machine so.
  void begin(const RunOptions& options, const RunArtifact& bound, const RunDirectory& directory);
  /// Ten times a second.
  void look(const RunStatus& status);
  /// The run is to stop behind a checkpoint, and to go on with the changes.
  bool stops() const { return taken_.has_value(); }
  /// "goes on with two more workers"; "": it does not stop.
  std::string reason() const;
  /// What is changed; the run then begins another part.
  std::vector<std::string> take();

 private:
  struct Search;
  using Found = std::optional<planner::Remedy>;
  using Clock = std::chrono::steady_clock;

  bool has_measured(const RunStatus& status);
  void start_search(const RunStatus& status);
  void decide(const RunStatus& status, Found found);
  void record(const RunStatus& status, const DecisionRecord& decision, const Found& found) const;
  void tell(const RunStatus& status, const DecisionRecord& decision);

  const RunOptions& asked_;
  const planner::RunLimits limits_;
  const std::span<const std::string> arguments_;
  const LoadedCatalog& catalog_;
  Display& display_;
  std::optional<ProcessorRates> rates_;

  RunOptions options_;  // that make the plan in force
  RunArtifact bound_;
  RunDirectory directory_;
  std::vector<OwnRun> seen_;                // steps of the run's earlier plans
  std::optional<std::int64_t> first_step_;  // of this part

  std::stop_source cancel_;
  std::shared_ptr<Search> latest_;  // of this part
  std::future<Found> search_;
  Clock::time_point searched_{}, next_search_{};
  std::optional<std::string> told_;
  std::optional<DecisionRecord> taken_;
};

}  // namespace reckon::cli
