#include <algorithm>
#include <vector>

#include "sim/accuracy/scoring/fit/fit.h"

namespace reckon {

Catalog with_fitted(const Catalog& catalog, std::span<const FittedRow> rows,
                    std::span<const FittedStack> stacks) {
  Catalog result = catalog;
  const auto fitted_before = [&](SourceId source) {
    return catalog.sources[index(source)].id == kFittedSource;
  };
  std::erase_if(result.efficiencies,
                [&](const Efficiency& e) { return fitted_before(e.convolution.source); });
  std::erase_if(result.stacks,
                [&](const SoftwareStack& s) { return fitted_before(s.speed.source); });
  for (const FittedStack& s : stacks) result.stacks.push_back(s.stack);
  // A prior stands in for a row that is fitted no more.
  std::vector<Efficiency> priors;
  for (const Efficiency& e : result.efficiencies)
    if (e.stack == kPriorStack) {
      priors.push_back(e);
      priors.back().stack.clear();
    }
  result.efficiencies.insert(result.efficiencies.end(), priors.begin(), priors.end());
  for (const FittedRow& row : rows) {
    std::erase_if(result.efficiencies, [&](const Efficiency& e) {
      return e.accelerator == row.efficiency.accelerator &&
             e.precision == row.efficiency.precision && e.stack == row.efficiency.stack;
    });
    result.efficiencies.push_back(row.efficiency);
  }
  return result;
}

}  // namespace reckon
