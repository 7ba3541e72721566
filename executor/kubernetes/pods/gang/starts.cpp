#include <fmt/format.h>

#include <algorithm>

#include "executor/kubernetes/pods/gang/watched_gang.h"
#include "executor/train/records/pod_orders.h"

namespace reckon::kubernetes {

GangEnd ClusterGang::run_start(std::int64_t start, const std::function<StopRequest()>& stop) {
  begin_start(start);
  return run(stop);
}

bool ClusterGang::can_go_on() const {
  return !ending_ && std::ranges::none_of(members_, [](const Member& m) {
    return m.loss && m.loss->end == PodEnd::finished;
  });
}

void ClusterGang::begin_start(std::int64_t start) {
  start_before_ = start_;
  start_ = start;
  ranks_ = 0;
  grows_ = regroups_;
  given_ = noted_ = seated_ = begun_ = regroups_ = false;
  left_.reset();
  broken_.reset();
  losses_ = 0;
  all_ended_ = {};
  patience_ =
      StartPatience({.pending = options_.pending_deadline, .image = options_.image_deadline},
                    [this](const std::string& text) { say(text); });
  for (Member& m : members_) {
    m.rank = -1;
    m.replaces = false;
    if (m.ended()) replace(m);
  }
}

/// By the pod that came in its place, or will.
void ClusterGang::replace(Member& m) {
  if (m.pod) gone_.insert(m.pod->uid);
  std::optional<PodView> next = std::move(m.next);
  m = Member{};
  m.pod = std::move(next);
}

int ClusterGang::rank_at(std::size_t place) const {
  if (!options_.stays) return int(place);
  const Member& m = members_[place];
  if (m.rank >= 0 || given_) return m.rank;
  const bool had_one = m.pod && m.pod->ordered_rank() >= 0 && m.pod->ordered_rank() < rules_.wanted;
  if (had_one) return m.pod->ordered_rank();
  return int(place) < rules_.wanted ? int(place) : -1;
}

std::string ClusterGang::name_at(std::size_t place) const {
  const int rank = rank_at(place);
  return rank < 0 ? "a pod that stands by" : options_.names[std::size_t(rank)];
}

bool ClusterGang::is_over(std::size_t place) const {
  return members_[place].ended() || (stands_by(place) && !members_[place].pod);
}

bool ClusterGang::all_ranks_ended() const {
  return std::ranges::all_of(members_, [](const Member& m) { return m.rank < 0 || m.ended(); });
}

/// What its pod says of the starts that it takes part in.
void ClusterGang::read_progress(std::size_t place, std::string_view line) {
  Member& m = members_[place];
  if (const auto part = parse_part_line(line); part && part->rank < rules_.wanted) {
    m.log_rank = part->rank;
    m.log_start = part->attempt;
    m.waits = false;
  } else if (const auto behind = parse_waiting_line(line)) {
    m.waits = true;
    m.left = *behind;
    if (!left_ && given_ && m.rank >= 0 && *behind == start_)
      left_ = Left{int(place), Clock::now()};
  } else if (m.log_rank == 0 && m.log_start == start_ && line.starts_with("{\"record\":\"run\"")) {
    begun_ = true;
  }
}

/// An elastic job is as large as it can be: who stands by and is ready joins.
void ClusterGang::look_for_growth() {
  if (!seated_ || !begun_ || broken_ || asked_ || hopeless_ || first_ended_ || !hang_.empty())
    return;
  int waiting = 0;
  for (std::size_t k = 0; k < members_.size(); ++k) {
    const Member& m = members_[k];
    if (stands_by(k) && m.is_there() && (m.waits || !is_followed(k))) ++waiting;
  }
  regroups_ = could_grow(rules_, ranks_, waiting);
  if (regroups_) say("a pod is ready to join: the ranks regroup behind the step");
}

/// One that ended before this watch of the start, or whose loss was dealt with.
bool ClusterGang::is_of_before(const PodView& view) const {
  if (gone_.contains(view.uid)) return true;
  const Member& m = members_[std::size_t(view.rank)];
  const bool known = m.pod && m.pod->uid == view.uid;
  return !known && view.ended() && view.start() < start_;
}

/// A member is lost, as are those that went with it, and what they said is read. Pods that hang
/// take no orders: all are ended first.
bool ClusterGang::start_is_over() const {
  constexpr Seconds kOthersOfANode{2}, kToRead{7};
  if (!broken_ || asked_ || hopeless_ || first_ended_ || !hang_.empty() ||
      since(*broken_) < kOthersOfANode)
    return false;
  const auto is_read = [](const Member& m) { return !m.ended() || !m.log || m.log->done(); };
  return std::ranges::all_of(members_, is_read) || since(*broken_) > kToRead;
}

/// Who has left the start without a pod's being lost has lost the others all the same: a connection
/// broke, or somebody did not come to meet.
void ClusterGang::look_for_leavers() {
  if (!left_ || broken_ || since(left_->at) <= options_.grace) return;
  const auto is_leaving = [](const Member& m) { return m.pod && m.pod->deleting && !m.ended(); };
  if (std::ranges::none_of(members_, is_leaving)) broken_ = Clock::now();
}

}  // namespace reckon::kubernetes
