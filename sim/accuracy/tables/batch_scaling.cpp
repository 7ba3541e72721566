#include "sim/accuracy/tables/batch_scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/check.h"

namespace reckon {
namespace {

constexpr double kHalf = 0.5;  // epochs

/// Before it is rounded up to a whole epoch.
double within_epoch(const BatchEpochs& given, double batch, double inverse) {
  const double reached = std::max(kHalf, given.epochs - kHalf);
  return reached * (1 + batch * inverse) / (1 + given.batch * inverse);
}

double misfit(std::span<const std::vector<BatchEpochs>> targets, double inverse) {
  double sum = 0;
  for (const auto& batches : targets) {
    if (batches.size() < 2) continue;
    const BatchEpochs& given = given_of(batches);
    for (const BatchEpochs& b : batches)
      if (&b != &given)
        sum += std::abs(std::log((within_epoch(given, b.batch, inverse) + kHalf) / b.epochs));
  }
  return sum;
}

}  // namespace

double epochs_at(const BatchEpochs& given, double batch, double inverse) {
  constexpr double kRounding = 1e-9;
  return std::max(1.0, std::ceil(within_epoch(given, batch, inverse) - kRounding));
}

const BatchEpochs& given_of(std::span<const BatchEpochs> ascending) {
  RECKON_CHECK(!ascending.empty());
  return ascending[ascending.size() / 2];
}

double inverse_critical_batch(std::span<const std::vector<BatchEpochs>> targets) {
  constexpr int kFirst = 8, kLast = 32;  // halves of a power of two
  constexpr double kBetter = 1 - 1e-9;   // of equal ones the law with fewer effects
  double best = 0, least = misfit(targets, 0);
  for (int k = kLast; k >= kFirst; --k) {
    const double inverse = std::exp2(-double(k) / 2);
    const double sum = misfit(targets, inverse);
    if (sum >= least * kBetter) continue;
    least = sum;
    best = inverse;
  }
  return best;
}

}  // namespace reckon
