#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/random.h"
#include "sim/queue/job_list.h"

namespace reckon {

/// How long jobs take whose end nobody knows, given that they took `elapsed` already.
///
/// With a limit M: a share T / M of it that a recorded job of the same user took (of all users
/// where fewer than kJobsOfUser are recorded), of those above elapsed / M. Without records the
/// share is uniform between elapsed / M and 1: users ask for far more than they take, and the
/// shares that jobs take of it are spread flat [Mu'alem and Feitelson 2001, IEEE TPDS 12(6), Sec.
/// 4; Tsafrir, Etsion and Feitelson 2007, IEEE TPDS 18(6)]; it has no peaks at 0 (jobs that fail at
/// once) and at 1 (jobs that are killed).
///
/// Without a limit: a recorded length above `elapsed`; without records P(T > t | T > e) = e / t,
/// the law of processes' lifetimes, so that the median of what is left is what has passed
/// [Harchol-Balter and Downey 1997, ACM TOCS 15(3)]; of a job that has not started `unknown`.
class JobLengths {
 public:
  explicit JobLengths(const JobList& history);

  static constexpr std::size_t kJobsOfUser = 20;
  /// In all, above `elapsed`; at most `limit`, or a year.
  Seconds draw(const std::string& user, std::optional<Seconds> limit, Seconds elapsed,
               Seconds unknown, RandomStream& stream) const;
  bool recorded_shares() const { return !shares_.empty(); }
  bool recorded_lengths() const { return !lengths_.empty(); }

 private:
  std::vector<double> shares_, lengths_;  // ascending; lengths in seconds
  std::map<std::string, std::vector<double>> shares_of_;
};

}  // namespace reckon
