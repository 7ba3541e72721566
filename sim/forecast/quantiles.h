#pragma once
#include <vector>

namespace reckon {

struct Quantiles {
  double mean = 0, p5 = 0, p50 = 0, p95 = 0;  // in the unit of the values
};
/// Linear interpolation between order statistics (type 7 of [Hyndman & Fan 1996]). values must not
/// be empty.
Quantiles quantiles(std::vector<double> values);
/// One of them, by the same rule; p in 0..1.
double quantile(std::vector<double> values, double p);

}  // namespace reckon
