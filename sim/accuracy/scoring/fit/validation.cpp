#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "sim/accuracy/evidence/features.h"
#include "sim/accuracy/scoring/evidence_scores.h"
#include "sim/accuracy/scoring/fit/fit.h"
#include "sim/accuracy/scoring/held_out_intervals.h"

// Fits without each fold in turn: how wrong predictions of what was not seen are.
namespace reckon {

std::string fold_of(const PublishedRun& run, HoldOut by) {
  switch (by) {
    case HoldOut::source:
      break;
    case HoldOut::publisher:
      return std::string(publisher_of(run.source));
    case HoldOut::model:
      return fmt::format("{} {}", run.source, model_name(run.run));
  }
  return std::string(run.source);
}

ScoredRuns score_cross_validated(std::span<const PublishedRun> runs, const Catalog& catalog,
                                 HoldOut by, const EvidenceKernel* kernel,
                                 const PublishedFilter& wanted) {
  return score_cross_validated(EfficiencyFit(runs, catalog), runs, catalog, by, kernel, wanted);
}

ScoredRuns score_cross_validated(const EfficiencyFit& fit, std::span<const PublishedRun> runs,
                                 const Catalog& catalog, HoldOut by, const EvidenceKernel* kernel,
                                 const PublishedFilter& wanted) {
  std::map<std::string, std::vector<PublishedRun>> folds;
  for (const PublishedRun& r : runs) folds[fold_of(r, by)].push_back(r);
  fit.rows();  // near which the fits without a fold begin
  ScoredRuns result;
  const auto wants = [&](const PublishedRun& r) { return is_wanted(r, wanted); };
  for (const auto& [fold, own] : folds) {
    if (kernel != nullptr && std::ranges::none_of(own, wants)) continue;
    auto rows = fit.rows(by, fold);
    const auto stacks = share_stacks(rows, catalog);
    const Catalog others = with_fitted(catalog, rows, stacks);
    ScoredRuns scored = score_cold(own, others);
    if (kernel != nullptr) {
      std::vector<PublishedRun> rest;
      std::ranges::copy_if(runs, std::back_inserter(rest), [&, fold = fold](const PublishedRun& r) {
        return fold_of(r, by) != fold;
      });
      add_evidence(scored.runs, Evidence(rest, others, *kernel), others, by);
    }
    result.runs.insert(result.runs.end(), scored.runs.begin(), scored.runs.end());
    result.skipped.add(scored.skipped);
  }
  std::stable_sort(result.runs.begin(), result.runs.end(),
                   [](const ScoredRun& a, const ScoredRun& b) { return a.at.line < b.at.line; });
  if (kernel == nullptr) set_held_out_intervals(result.runs, catalog, by);
  return result;
}

}  // namespace reckon
