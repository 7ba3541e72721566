#include <algorithm>
#include <set>

#include "sim/calibration/fit.h"
#include "sim/calibration/held_out_intervals.h"

// Fits without each source in turn: how wrong predictions of what was not seen are.
namespace reckon {

ScoredRuns score_cross_validated(std::span<const PublishedRun> runs, const Catalog& catalog) {
  std::set<std::string_view> sources;
  for (const PublishedRun& r : runs) sources.insert(r.source);
  const EfficiencyFit fit(runs, catalog);
  ScoredRuns result;
  for (const std::string_view source : sources) {
    auto rows = fit.rows(source);
    const auto stacks = share_stacks(rows);
    const Catalog others = with_fitted(catalog, rows, stacks);
    std::vector<PublishedRun> own;
    for (const PublishedRun& r : runs)
      if (r.source == source) own.push_back(r);
    ScoredRuns scored = score_cold(own, others);
    result.runs.insert(result.runs.end(), scored.runs.begin(), scored.runs.end());
    result.skipped.add(scored.skipped);
  }
  std::sort(result.runs.begin(), result.runs.end(),
            [](const ScoredRun& a, const ScoredRun& b) { return a.at.line < b.at.line; });
  set_held_out_intervals(result.runs, catalog);
  return result;
}

}  // namespace reckon
