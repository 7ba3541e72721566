#pragma once
#include <span>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/measurement/calibration/calibration.h"

// Times that were waited, some of which were cut off before what was waited for had come.
namespace reckon {

struct WaitingSample {
  Seconds seconds{};
  bool censored = false;  // it had not come by then
};

/// Families by likelihood, least AIC first. Density f of those seen, survival S of those cut off
/// [Klein and Moeschberger 2003, "Survival analysis", 2nd ed., eq. 3.5.1]:
///   ln L = sum ln f(seen) + sum ln S(cut off)
/// exponential (scale: mean), weibull (scale: 63rd percentile, shape), lognormal (scale: median,
/// shape: sigma), gamma (scale, shape; mean = scale x shape). AIC = 2 p - 2 ln L [Akaike 1974], BIC
/// = p ln n - 2 ln L [Schwarz 1978]. Families of two numbers need kFewestSeen samples that were
/// seen. Empty: nothing was seen.
inline constexpr int kFewestSeen = 5;
std::vector<FamilyFit> fit_families(std::span<const WaitingSample> samples);

double mean_of(const FamilyFit& family);                // seconds
double quantile_of(const FamilyFit& family, double p);  // seconds; p in 0..1

/// What the samples say of a waiting time that the catalog has as median and 5th to 95th
/// percentile: the catalog's counts like kPriorSamples of them, in logarithms, quantile by
/// quantile. With fewer than kFewestSeen seen, the catalog's own spread around their middle.
inline constexpr double kPriorSamples = 4;  // samples
ParameterValue after_waiting(const ParameterValue& prior, std::span<const WaitingSample> samples,
                             const std::vector<FamilyFit>& families);

/// The mean of an exponential waiting time: `events` in `exposure` (all that was waited, cut off or
/// not) with the catalog's range as prior. Maximum of  -n ln m - T / m - (ln m - ln prior)^2 / (2
/// spread^2); its curvature gives the error. Without events it grows with what was waited in vain.
struct MeanEstimate {
  double mean = 0, log_error = 0;  // seconds; one standard deviation of ln(mean)
};
MeanEstimate exponential_mean(const ParameterValue& prior, int events, Seconds exposure);

}  // namespace reckon
