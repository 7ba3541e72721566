#pragma once
#include <span>
#include <string>
#include <vector>

#include "planner/search/candidates.h"
#include "sim/forecast/forecast.h"

// A candidate's forecast: its scenario, planned as `reckon simulate` would, lived by the same
// make_forecast.
namespace reckon::planner {

struct Evaluated {
  Candidate candidate;
  std::vector<Change> changes;  // of the question's scenario: the candidate
  Forecast forecast;
  std::string refused;  // why it cannot be planned after all; else ""
  double score = 0;     // score_of(): seconds, USD or USD x s; infinite: refused, or it never ends
  // What deadline and budget are held against: seconds, USD; infinite: never, unknown.
  double late = 0, dear = 0;
  bool meets_deadline = true, meets_budget = true;
  bool meets_emissions = true;  // the limits on energy and CO2; what is not known meets none
  bool meets_all() const {
    return refused.empty() && meets_deadline && meets_budget && meets_emissions;
  }
};

/// Best first: those that meet all limits, by score, then time, then what they are.
bool is_better(const Evaluated& a, const Evaluated& b);

/// The forecast judged by the question's limits.
Evaluated judged(const Question& question, Forecast forecast);

class Evaluator {
 public:
  explicit Evaluator(const SearchSetting& setting) : s_(setting) {}

  /// Of each candidate, in their order; all draw from the same streams.
  std::vector<Evaluated> evaluate(std::span<const Candidate> candidates, int replications);
  const Question& question() const { return s_.question; }
  std::int64_t lives() const { return lives_; }  // that were simulated so far

 private:
  Evaluated evaluate_one(const Candidate& candidate, int replications, int threads) const;
  Forecast forecast_of(const Plan& plan, int replications, int threads) const;
  SearchSetting s_;
  std::int64_t lives_ = 0;
};

}  // namespace reckon::planner
