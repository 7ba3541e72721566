#include "sim/cluster/notice.h"

#include <algorithm>
#include <cmath>

#include "sim/base/random.h"

namespace reckon {

Seconds time_to_saved(const NoticeRules& rules, const NoticeLuck& luck) {
  if (rules.policy == OnNotice::none) return Seconds::max();
  double slowest = 1;
  if (rules.writer_spread > 0) {
    constexpr double kBelowOne = 1 - 1e-12;  // a probability whose quantile is finite
    const double u = std::min(std::pow(luck.writer, 1.0 / std::max(rules.writers, 1)), kBelowOne);
    slowest = std::exp(rules.writer_spread * normal_quantile(u));
  }
  return rules.reaction + rules.step * luck.step + rules.save * slowest;
}

double probability_of_save(const NoticeRules& rules, Seconds notice) {
  if (rules.policy == OnNotice::none) return 0;
  constexpr int kPoints = 512;
  double sum = 0;
  for (int k = 0; k < kPoints; ++k) {
    const double u = (k + 0.5) / kPoints;
    const double left = (notice - rules.reaction - rules.step * u).count();
    const double save = rules.save.count();
    if (left < 0) continue;
    if (rules.writer_spread <= 0 || save <= 0) {
      sum += left >= save ? 1 : 0;
    } else if (left > 0) {
      const double z = std::log(left / save) / rules.writer_spread;
      sum += std::pow(0.5 * std::erfc(-z / std::sqrt(2.0)), std::max(rules.writers, 1));
    }
  }
  return sum / kPoints;
}

}  // namespace reckon
