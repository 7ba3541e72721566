#include "sim/queue/kueue/order.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace reckon {
namespace {

bool goes_before(const KueueNomination& a, const KueueNomination& b) {
  return std::tie(b.workload.priority, a.workload.submit, a.workload.job) <
         std::tie(a.workload.priority, b.workload.submit, b.workload.job);
}

class FairTournament {
 public:
  FairTournament(const std::vector<KueueNomination>& nominations, const std::vector<bool>& done,
                 KueueQuotas& quotas)
      : nominations_(nominations), quotas_(quotas), of_queue_(quotas.queues(), kNobody) {
    for (std::size_t k = 0; k < nominations.size(); ++k) {
      if (done[k]) continue;
      of_queue_[nominations[k].workload.queue] = k;
      roots_.insert(quotas.root(nominations[k].workload.queue));
    }
  }
  std::size_t winner() {
    const std::vector<std::size_t> roots(roots_.begin(), roots_.end());
    return winner_of(roots);
  }

 private:
  static constexpr std::size_t kNobody = static_cast<std::size_t>(-1);

  std::size_t winner_of(std::span<const std::size_t> places) {
    std::size_t best = kNobody;
    double best_share = 0;
    for (const std::size_t place : places) {
      const std::size_t k =
          place < quotas_.queues() ? of_queue_[place] : winner_of(quotas_.below(place));
      if (k == kNobody) continue;
      const KueueWorkload& w = nominations_[k].workload;
      const double share = quotas_.share_with(place, w.queue, w.pool, w.gpus);
      if (best != kNobody && share > best_share) continue;
      if (best != kNobody && share == best_share &&
          goes_before(nominations_[best], nominations_[k]))
        continue;
      best = k;
      best_share = share;
    }
    return best;
  }

  const std::vector<KueueNomination>& nominations_;
  KueueQuotas& quotas_;
  std::vector<std::size_t> of_queue_;
  std::set<std::size_t> roots_;
};

}  // namespace

void sort_by_borrowing(std::vector<KueueNomination>& nominations) {
  std::stable_sort(nominations.begin(), nominations.end(),
                   [](const KueueNomination& a, const KueueNomination& b) {
                     return a.borrows != b.borrows ? b.borrows : goes_before(a, b);
                   });
}

std::size_t next_of_fair(const std::vector<KueueNomination>& nominations,
                         const std::vector<bool>& done, KueueQuotas& quotas) {
  return FairTournament(nominations, done, quotas).winner();
}

}  // namespace reckon
