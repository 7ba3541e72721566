#include "sim/accuracy/scoring/fit/inherit.h"

#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

// What convolutions, matrix products and memory reach is the chip's. Whether attention writes its
// scores, how large kernels are, and what issues them and how fast is the programs'; how
// convolutions of 3 x 3 are done is the library's.
const FitLogs kOfChip = (FitLogs() << 1, 1, 0, 1, 0, 0, 0, 0).finished();
const FitLogs kOfClass = (FitLogs() << 1, 1, 1, 1, 1, 1, 1, 0).finished();

}  // namespace

Told told_by(const GroupFit& fit, const FitLogs& prior, double year) {
  constexpr double kNothing = 1e-9;  // of 1 / variance
  Told told;
  told.year = year;
  for (Eigen::Index i = 0; i < prior.size(); ++i) {
    const double spread = prior_spread()[i];
    const double all = 1 / (fit.errors[i] * fit.errors[i]), own = 1 / (spread * spread);
    const double runs = std::max(kNothing, all - own);
    told.shift[i] = (fit.logs[i] - prior[i]) * all / runs;
    told.weight[i] = 1 / (1 / runs + spread * spread);
  }
  return told;
}

FitLogs inherited(const std::map<GroupKey, Told>& told, const GroupKey& heir, double year) {
  constexpr double kGeneration = 2;  // years
  FitLogs sum = FitLogs::Zero(), weight = FitLogs::Zero();
  for (const auto& [key, t] : told) {
    if (key == heir) continue;
    const bool alike = !heir.stacks.empty() && key.stacks == heir.stacks;
    FitLogs near = (alike ? kOfClass : kOfChip) * std::exp(-std::abs(t.year - year) / kGeneration);
    if (alike) near[kHostNumber] = 1;  // the host's processor is of no chip's generation
    if (key.accelerator == heir.accelerator && key.stacks.empty())
      near[kLaunchNumber] = near[kHostNumber] = 1;
    sum += near.cwiseProduct(t.weight).cwiseProduct(t.shift);
    weight += near.cwiseProduct(t.weight);
  }
  const FitLogs drawn = prior_spread().cwiseProduct(prior_spread()).cwiseInverse();
  return sum.cwiseQuotient(weight + drawn);
}

}  // namespace reckon
