#include "executor/kubernetes/lease_rule.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace reckon::kubernetes {
namespace {

bool same_renewal(const LeaseRecord& a, const LeaseRecord& b) {
  return a.holder == b.holder && a.renewed == b.renewed && a.transitions == b.transitions &&
         a.duration == b.duration;
}

}  // namespace

LeaseRule::LeaseRule(std::string identity, bool fresh, LeaseTerms terms)
    : identity_(std::move(identity)),
      fresh_(fresh),
      terms_(terms),
      next_(-std::numeric_limits<double>::infinity()),
      acts_until_(-std::numeric_limits<double>::infinity()) {}

/// A record that its holder gave back, our own, and one that has not changed for as long as its
/// holder said.
bool LeaseRule::is_free(Seconds now) const {
  if (!seen_) return fresh_ || now - seen_at_ >= terms_.duration;
  if (seen_->holder.empty() || seen_->holder == identity_) return true;
  return now - seen_at_ >= std::max(seen_->duration, terms_.duration);
}

LeaseRecord LeaseRule::mine(const LeaseRecord& before) const {
  LeaseRecord record = before;
  record.holder = identity_;
  record.duration = terms_.duration;
  if (before.holder != identity_) ++record.transitions;
  return record;
}

std::optional<LeaseRule::Request> LeaseRule::next(Seconds now) const {
  if (lost_ || now < next_) return std::nullopt;
  if (!known_) return Request{Request::Kind::read, {}, now};
  // Whoever acts on a record that is missing is the only one who does not wait for it.
  if (!seen_ && may_act(now)) return Request{Request::Kind::create, mine({}), now};
  if (held_ && seen_) return Request{Request::Kind::replace, mine(*seen_), now};
  if (!is_free(now)) return Request{Request::Kind::read, {}, now};
  if (!seen_) return Request{Request::Kind::create, mine({}), now};
  return Request{Request::Kind::replace, mine(*seen_), now};
}

void LeaseRule::see(const std::optional<LeaseRecord>& record, Seconds now) {
  const bool same = std::exchange(looked_, true) && seen_.has_value() == record.has_value();
  const bool unchanged = same && (!record || same_renewal(*seen_, *record));
  if (!unchanged) {
    if (seen_ && record && !record->holder.empty() && record->holder == seen_->holder)
      ++renewals_seen_;
    seen_at_ = now;
  }
  seen_ = record;
  known_ = true;
}

void LeaseRule::answer(const Request& request, const Answer& answer, Seconds now) {
  const bool wrote = request.kind != Request::Kind::read;
  switch (answer.kind) {
    case Answer::Kind::none:
      next_ = now + terms_.retries;
      return;
    case Answer::Kind::conflict:
      known_ = false;
      next_ = now;
      return;
    case Answer::Kind::missing:
      see(std::nullopt, now);
      next_ = held_ ? now : now + terms_.retries;
      if (fresh_) next_ = now;
      return;
    case Answer::Kind::done:
      break;
  }
  see(answer.record, now);
  if (wrote) {
    held_ = true;
    fresh_ = false;
    acts_until_ = request.asked + terms_.acts;
    next_ = request.asked + terms_.renews;
    return;
  }
  const bool own = answer.record.holder == identity_;
  if (held_ && !own) {
    held_ = false;
    lost_ = true;
    return;
  }
  next_ = is_free(now) ? now : now + terms_.retries;
}

std::optional<LeaseRule::Request> LeaseRule::release(Seconds now) {
  if (!std::exchange(held_, false) || !seen_) return std::nullopt;
  lost_ = true;
  LeaseRecord record = *seen_;
  record.holder.clear();
  return Request{Request::Kind::replace, std::move(record), now};
}

}  // namespace reckon::kubernetes
