#include "sim/queue/snapshot/job_lengths.h"

#include <algorithm>

namespace reckon {
namespace {

constexpr Seconds kShortestRest{1}, kLongestLength{365 * 86400.0};

/// One of the ascending `values` above `low`, each as likely as the next; nullopt: none is.
std::optional<double> drawn_above(const std::vector<double>& values, double low, double uniform) {
  const auto first = std::upper_bound(values.begin(), values.end(), low);
  const auto count = values.end() - first;
  if (count == 0) return std::nullopt;
  return *(first + static_cast<std::ptrdiff_t>(uniform * double(count)));
}

}  // namespace

JobLengths::JobLengths(const JobList& history) {
  for (const JobRequest& job : history.jobs) {
    const auto& fixed = std::get<FixedTime>(job.work);
    const double length = to_seconds(fixed.time).count();
    if (length <= 0) continue;
    lengths_.push_back(length);
    if (!fixed.limit || fixed.limit->count() <= 0) continue;
    const double share = std::min(1.0, length / to_seconds(*fixed.limit).count());
    shares_.push_back(share);
    shares_of_[history.names.users.name(job.owner.user)].push_back(share);
  }
  std::sort(lengths_.begin(), lengths_.end());
  std::sort(shares_.begin(), shares_.end());
  std::erase_if(shares_of_, [](const auto& of) { return of.second.size() < kJobsOfUser; });
  for (auto& [user, shares] : shares_of_) std::sort(shares.begin(), shares.end());
}

Seconds JobLengths::draw(const std::string& user, std::optional<Seconds> limit, Seconds elapsed,
                         Seconds unknown, RandomStream& stream) const {
  const double uniform = stream.uniform();
  const Seconds least = elapsed + kShortestRest;
  if (limit) {
    if (*limit <= least) return least;  // it is due
    const auto own = shares_of_.find(user);
    const double passed = elapsed / *limit;
    const auto share =
        drawn_above(own == shares_of_.end() ? shares_ : own->second, passed, uniform);
    return std::max(least, share.value_or(passed + uniform * (1 - passed)) * *limit);
  }
  if (const auto length = drawn_above(lengths_, elapsed.count(), uniform))
    return std::max(least, Seconds{*length});
  const Seconds law = elapsed.count() > 0 ? elapsed / (1 - uniform) : unknown;
  return std::clamp(law, least, std::max(least, kLongestLength));
}

}  // namespace reckon
