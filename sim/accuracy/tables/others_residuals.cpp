#include "sim/accuracy/tables/others_residuals.h"

#include <cmath>

#include "sim/forecast/forecast.h"

namespace reckon {

double factor_of_others(std::span<const RowResidual> rows, std::size_t at) {
  double sum = 0, count = 0;
  std::vector<double> elsewhere;
  for (const RowResidual& r : rows) {
    if (r.id == rows[at].id) continue;
    if (r.network == rows[at].network) {
      sum += r.log_ratio;
      ++count;
    } else {
      elsewhere.push_back(r.log_ratio);
    }
  }
  if (!elsewhere.empty()) {
    sum += quantile(std::move(elsewhere), 0.5);
    ++count;
  }
  return count > 0 ? std::exp(sum / count) : 1;
}

}  // namespace reckon
