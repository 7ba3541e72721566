#include "executor/kubernetes/pods/gang/watched_gang.h"

namespace reckon::kubernetes {

/// All ranks run, and nothing is known against it.
bool ClusterGang::trains() const {
  if (broken_ || asked_ || hopeless_ || first_ended_ || regroups_ || is_ending()) return false;
  if (options_.independent || (options_.stays && !seated_)) return false;
  for (std::size_t k = 0; k < members_.size(); ++k)
    if (!stands_by(k) && !members_[k].is_there()) return false;
  return true;
}

/// The cluster answers, and the logs are open.
bool ClusterGang::hears() const {
  if (!pods_.answers()) return false;
  for (std::size_t k = 0; k < members_.size(); ++k) {
    const Member& m = members_[k];
    if (!stands_by(k) && is_followed(k) && !(m.log && m.log->reads())) return false;
  }
  return true;
}

/// Has every pod that is followed printed nothing but what was read? False as well where nobody
/// answers in time: nothing else is watched meanwhile. A connection that died without a word is
/// made anew.
bool ClusterGang::is_read() const {
  constexpr Seconds kAnswers{10}, kAll{30};
  constexpr Seconds kBehind{10};  // a program that prints is ever a little ahead
  const Clock::time_point begin = Clock::now();
  for (std::size_t k = 0; k < members_.size(); ++k) {
    const Member& m = members_[k];
    if (stands_by(k) || !is_followed(k)) continue;
    if (since(begin) > kAll) return false;
    const KubectlResult last =
        kubectl_.attempt({"logs", m.pod->name, "--timestamps", "--tail=1"}, {}, kAnswers);
    if (!last.good()) return false;
    std::string_view rest;
    const auto printed = parse_time(sortable_time(last.out, rest));
    const auto read = parse_time(m.log->last_time());
    if (!printed || (read && Seconds(*printed - *read) < kBehind)) continue;
    m.log->reconnect();
    return false;
  }
  return true;
}

void ClusterGang::look_for_hang() {
  constexpr Seconds kBetweenLooks{30};
  const Seconds passed = listened_.since_last();
  if (!events_.hangs || !hang_.empty() || !trains()) return;
  const std::string why = events_.hangs(hears() ? passed : Seconds{0});
  if (why.empty() || since(looked_for_hang_) < kBetweenLooks) return;
  if (is_read()) hang_ = why;
  looked_for_hang_ = Clock::now();
}

}  // namespace reckon::kubernetes
