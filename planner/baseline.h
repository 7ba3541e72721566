#pragma once
#include <optional>
#include <string>
#include <vector>

#include "planner/planner.h"

// `reckon plan --baseline plan.yaml`: today's best plan against one that was made before.
namespace reckon::planner {

/// What a plan file says of itself, and what its plan would take and cost today.
struct Baseline {
  std::string name;  // of the file
  Plan plan;         // with today's catalog
  /// Of the `planned:` block: the means when it was made; nullopt: the file has none.
  std::optional<double> time_then, cost_then;
  std::optional<double> score_then;
  std::string catalog_then, prices_then;  // digest, date; "": not said
  Evaluated today;                        // the same plan, judged by today's question
};

/// Errors: it is no plan any more with today's catalog.
Expected<Baseline> read_baseline(const Question& question, ScenarioFile file,
                                 const Catalog& catalog, const NetworkModel& network,
                                 const Answer& answer, int threads);

struct BaselineVerdict {
  double before = 0;   // score: then, where the file says it, else what it would be today
  double now = 0;      // of today's best; infinite: no plan fits
  double change = 0;   // now / before - 1
  bool worse = false;  // by more than the tolerance, or no plan fits
};
BaselineVerdict held_against_baseline(const Answer& answer, const Baseline& baseline,
                                      double tolerance);

}  // namespace reckon::planner
