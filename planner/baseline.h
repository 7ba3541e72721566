#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/lock/attribution.h"
#include "planner/planner.h"

// `reckon plan --baseline plan.yaml`: today's best plan against one that was made before.
namespace reckon::planner {

/// What a plan file says of itself, and what its plan would take and cost today.
struct Baseline {
  std::string name;  // of the file
  /// Of the `planned:` block: the means when it was made; nullopt: the file has none.
  std::optional<double> time_then, cost_then;  // seconds, USD
  std::optional<double> score_then;            // unit as score_of()'s
  std::string catalog_then, prices_then;       // digest, date; "": not said
  std::uint64_t seed = 1;                      // of the forecast then
  int replications = 0;
  std::optional<Plan> plan;        // with today's catalog; nullopt: it is no plan any more
  Diagnostics no_plan;             // why
  std::optional<Evaluated> today;  // the same plan, judged by today's question: judge_today()
};

/// Before the search, so that a file that cannot be read costs nothing. Errors: neither does the
/// file say what its plan would have cost, nor is it a plan with today's catalog.
Expected<Baseline> read_baseline(const Question& question, ScenarioFile file,
                                 const Catalog& catalog);

/// Forecasts the baseline's plan with the answer's seed and replications. `best`: today's best
/// plan, if there is one. Errors: the baseline trains something else.
Expected<void> judge_today(Baseline& baseline, const Question& question, const Answer& answer,
                           const Plan* best, const NetworkModel& network, int threads);

struct BaselineVerdict {
  double before = 0;   // score: then, where the file says it, else what it would be today
  double now = 0;      // of today's best, in the same unit; infinite: no plan fits
  double change = 0;   // now / before - 1, a share; 0 where both are 0
  bool worse = false;  // by more than the tolerance, or no plan fits
  /// Of a baseline that is a lock: what made it worse; it fails by an edit only. nullopt: it is not
  /// worse, or no lock says.
  std::optional<Cause> cause;
  bool fails() const { return worse && (!cause || *cause == Cause::edit); }
};
/// `swaps`: the score, where the baseline is a lock.
/// `tolerance`: share by which today's score may be above that of then; 0.03 is 3 %.
BaselineVerdict held_against_baseline(const Answer& answer, const Baseline& baseline,
                                      double tolerance, const Swaps* swaps = nullptr);

}  // namespace reckon::planner
