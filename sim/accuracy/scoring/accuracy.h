#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/accuracy/evidence/memory_evidence.h"
#include "sim/accuracy/predict.h"
#include "sim/accuracy/published_runs.h"

// Predicted against measured.
namespace reckon {

/// A run with both. The unit of the numbers is the same for all that are scored together (samples a
/// second; collectives: bus bandwidth).
struct ScoredRun {
  PublishedRun at;
  double measured = 0;
  double predicted = 0, low = 0, high = 0;  // low..high: nine of ten
  bool stack_known = false;
  Slowing slowing = {};  // of `predicted`
  MemoryEstimate memory = {};
  bool memory_known = true;  // Prediction's
  double device_share = 1;
  std::string_view evidence = {};  // what is near of it; "": predicted by the step model alone
  std::string_view domain = {};    // of its network, where there is evidence: "language", ...
  /// Which line of the figures it belongs to, where the kind of table says; "": what ran says.
  std::string_view figure = {};
  double error() const { return predicted / measured - 1; }  // a share
  bool covered() const { return low <= measured && measured <= high; }
  double half_width() const { return (high - low) / 2 / predicted; }  // a share
};

/// What errors look like. `bias` is the median of the signed errors; rank_correlation Spearman's.
/// Errors, coverage and half widths are shares: 0.1 is 10 %.
struct Scores {
  std::int64_t runs = 0;
  double median_absolute_error = 0, mean_absolute_error = 0, p90_absolute_error = 0,
         max_absolute_error = 0, bias = 0, rank_correlation = 0, interval_coverage = 0,
         interval_median_half_width = 0;
};
/// By run. None: all zero.
Scores scores_of(std::span<const ScoredRun> runs);
/// By group of accelerator x model x number of accelerators, each standing for its runs by the
/// median of their absolute errors, of their signed errors and of what else is asked, so that what
/// was submitted often does not dominate. `runs` counts groups.
Scores grouped_scores_of(std::span<const ScoredRun> runs);

/// The model as its variant says: gpt is llama3.1-405b.
std::string_view model_name(const RunConfiguration& run);
/// "1", "2-8", "9-64", "65-512", "513 and more" accelerators.
std::string_view scale_name(int accelerators);

struct NamedScores {
  std::string name;
  Scores runs, groups;
};
/// Everything that is told of one set of predictions.
struct Evaluation {
  Scores runs, groups;
  std::vector<NamedScores> targets;  // the lines of issue 5, as far as there are such runs
  std::vector<std::pair<std::string, std::vector<NamedScores>>> by;  // "accelerator", "model", ...
  std::int64_t does_not_fit = 0;     // ran, but P(out of memory) is above kCannotFit
  std::int64_t over_plans_risk = 0;  // ran, but P(out of memory) is above kRiskOfAPlan
  std::int64_t memory_unknown = 0;   // what they keep is not printed, and not counted above
  Scores memory;  // peaks of memory, of the runs whose peak was measured; without intervals
};
Evaluation evaluate(std::span<const ScoredRun> runs);

/// What two runs have in common that are taken for the same.
enum class Alike {
  hardware_and_model,  // accelerator, model, precision and number of accelerators
  configuration,       // and nodes, links, layout, batch, sequence length and recomputation
  stack                // and software stack
};
/// Prediction by what others measured: the median over other sources' runs that are alike. Only
/// runs that have such others. It is a guess with an error of its own, to be beaten, not a limit.
std::vector<ScoredRun> baseline(std::span<const ScoredRun> runs, Alike alike);
/// The same runs, each with the median of all that are alike, itself among them: one number for
/// runs that a row tells nothing apart about, and of all such numbers the one nearest to them in
/// the mean of absolute distances. How far they lie from it is the noise floor as these runs show
/// it; of few runs it comes out low (of two, half of their difference), because each draws the
/// median along.
std::vector<ScoredRun> noise_floor(std::span<const ScoredRun> runs, Alike alike);

/// By group: how far runs lie from the median of their own kind, how close other sources' runs
/// come, and how close the prediction of the same runs.
struct OthersScores {
  std::string name;
  Scores floor, others, predicted;
};

/// Runs that could be predicted, and why the others could not.
struct ScoredRuns {
  std::vector<ScoredRun> runs;
  SkippedRows skipped;
};
ScoredRuns score_cold(std::span<const PublishedRun> measurements, const Catalog& catalog);

/// What a user who has measured `points` runs would see (accuracy_modes.h).
struct WarmEvaluation {
  int points = 1;
  Evaluation rest;                    // all that was not measured
  Scores larger_runs, larger_groups;  // of it, on more accelerators than was measured
};

/// measured rate of the fastest layout / that of the layout we would take - 1.
struct RegretScores {
  std::int64_t groups = 0;
  double mean = 0, max = 0;  // shares
};
struct Regret {
  RegretScores one_node, many_nodes;  // trust A and B
  RegretScores weak;                  // trust C: told, not counted
};

/// All that `reckon accuracy` tells.
struct AccuracyReport {
  std::string from;  // the kind of file: "normalised", "vtrain"
  std::string unit = "samples/s";
  bool cross_validated = false;  // `cold` is from fits without each run's source
  std::int64_t rows = 0, filtered_out = 0;
  std::vector<std::pair<std::string, SkippedRows::Reason>> skipped;  // most first
  std::vector<ScoredRun> runs;                                       // the cold predictions
  Evaluation cold;
  std::vector<OthersScores> others;  // that have any: "hardware_and_model", ...
  std::vector<WarmEvaluation> warm;
  std::optional<Regret> regret;
};
/// Puts together what was counted while reading and while predicting.
AccuracyReport make_accuracy_report(const PublishedCounts& counts, ScoredRuns scored);

/// Measured all-reduces (columns system, gpus, nodes, collective, message_bytes, time_us, source),
/// predicted for the machine or accelerator of the catalog that `system` names. Numbers are bus
/// bandwidths in GB/s.
struct CollectiveRuns {
  PublishedCounts counts;
  ScoredRuns scored;
};
Expected<CollectiveRuns> score_collectives(std::string_view file_name, std::string_view bytes,
                                           TextPool& pool, const Catalog& catalog);

/// Measured times to a target quality (columns id, source, accelerator, accelerators, nodes, model,
/// global_batch, epochs_or_samples_to_converge, minutes, trust, notes; the notes say "unit=samples"
/// or "unit=epochs"), predicted from the samples that the run needed and its configuration.
/// Evaluation and start-up are in the measured minutes and not in the predicted ones. Numbers are
/// minutes.
struct TimedRuns {
  PublishedCounts counts;
  ScoredRuns scored;
};
Expected<TimedRuns> score_time_to_train(std::string_view file_name, std::string_view bytes,
                                        const PublishedFilter& filter, TextPool& pool,
                                        const Catalog& catalog);

}  // namespace reckon
