#include "sim/forecast/compare.h"

#include "sim/base/check.h"

namespace reckon {
namespace {

template <class T>
using Matrix = std::vector<std::vector<std::optional<T>>>;

/// f(values of a, values of b) for every pair that has values.
template <class T, class F>
Matrix<T> by_pair(const std::vector<Forecast>& forecasts, std::vector<double> Forecast::*values,
                  F f) {
  const std::size_t n = forecasts.size();
  Matrix<T> matrix(n, std::vector<std::optional<T>>(n));
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b) {
      const auto& of_a = forecasts[a].*values;
      const auto& of_b = forecasts[b].*values;
      if (a != b && !of_a.empty() && !of_b.empty()) matrix[a][b] = f(of_a, of_b);
    }
  return matrix;
}

}  // namespace

double probability_less(std::span<const double> a, std::span<const double> b) {
  RECKON_CHECK(!a.empty() && a.size() == b.size());
  double wins = 0;
  for (std::size_t k = 0; k < a.size(); ++k) {
    if (a[k] < b[k]) wins += 1;
    if (a[k] == b[k]) wins += 0.5;
  }
  return wins / double(a.size());
}

Quantiles paired_difference(std::span<const double> a, std::span<const double> b) {
  RECKON_CHECK(!a.empty() && a.size() == b.size());
  std::vector<double> differences;
  differences.reserve(a.size());
  for (std::size_t k = 0; k < a.size(); ++k)
    differences.push_back(a[k] == b[k] ? 0 : a[k] - b[k]);  // infinity - infinity is no number
  return quantiles(std::move(differences));
}

CandidateComparison compare(std::vector<Forecast> forecasts) {
  for (const Forecast& f : forecasts)
    RECKON_CHECK(f.seed == forecasts.front().seed &&
                 f.replications == forecasts.front().replications);
  CandidateComparison c;
  c.probability_faster = by_pair<double>(forecasts, &Forecast::times_seconds, probability_less);
  c.probability_cheaper = by_pair<double>(forecasts, &Forecast::costs_usd, probability_less);
  c.time_difference = by_pair<Quantiles>(forecasts, &Forecast::times_seconds, paired_difference);
  c.cost_difference = by_pair<Quantiles>(forecasts, &Forecast::costs_usd, paired_difference);
  c.forecasts = std::move(forecasts);
  return c;
}

}  // namespace reckon
