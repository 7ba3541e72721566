#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/accuracy/scoring/accuracy.h"

namespace reckon {

/// The runs with the largest absolute errors, largest first; of equals the earlier line.
inline std::vector<const ScoredRun*> worst_runs(const AccuracyReport& report, int count) {
  std::vector<const ScoredRun*> all;
  for (const ScoredRun& r : report.runs) all.push_back(&r);
  std::stable_sort(all.begin(), all.end(), [](const ScoredRun* a, const ScoredRun* b) {
    return std::abs(a->error()) > std::abs(b->error());
  });
  if (all.size() > std::size_t(count)) all.resize(std::size_t(count));
  return all;
}

}  // namespace reckon
