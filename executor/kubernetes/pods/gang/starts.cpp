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
  start_ = start;
  seated_ = false;
  left_.reset();
  broken_.reset();
  losses_ = 0;
  patience_ =
      StartPatience({.pending = options_.pending_deadline, .image = options_.image_deadline},
                    [this](const std::string& text) { say(text); });
  for (Member& m : members_) {
    m.replaces = false;
    if (!m.ended()) continue;
    if (m.pod) gone_.insert(m.pod->uid);
    std::optional<PodView> next = std::move(m.next);
    m = Member{};
    m.pod = std::move(next);
  }
}

/// One that ended before this watch of the start, or whose loss was dealt with.
bool ClusterGang::is_of_before(const PodView& view) const {
  if (gone_.contains(view.uid)) return true;
  const Member& m = members_[std::size_t(view.rank)];
  const bool known = m.pod && m.pod->uid == view.uid;
  return !known && view.ended() && view.start < start_;
}

/// All run: they are told to meet. Where a launcher before this one told them, and one of them is
/// another by now, the start is broken.
void ClusterGang::seat() {
  if (seated_ || !pods_.listed() || broken_ || asked_ || hopeless_) return;
  const auto is_told = [&](const Member& m) { return m.pod && m.pod->start == start_; };
  const auto told = std::ranges::count_if(members_, is_told);
  if (told == std::ssize(members_)) {
    seated_ = true;
    return;
  }
  if (told > 0 && last_order_ == Clock::time_point{}) {
    for (Member& m : members_) m.replaces = !m.ended() && !is_told(m);
    broken_ = Clock::now();
    return;
  }
  const bool all_run = std::ranges::all_of(members_, [](const Member& m) {
    return m.pod && m.pod->started && !m.pod->deleting && !m.ended();
  });
  if (all_run) seated_ = give_order();
}

/// False: not now. First their Jobs, so that no later launcher gives the number again.
bool ClusterGang::give_order() {
  constexpr Seconds kBetweenTries{1};
  if (since(last_order_) < kBetweenTries) return false;
  last_order_ = Clock::now();
  const std::string note = fmt::format("{}={}", kStartAnnotation, start_);
  Words pods{"annotate", "pods"};
  for (const Member& m : members_) pods.push_back(m.pod->name);
  pods.insert(pods.end(), {note, "--overwrite"});
  try {
    kubectl_.run({"annotate", "jobs", "--selector", selector_of(options_.run, options_.attempt),
                  note, "--overwrite"},
                 {}, kManyObjects);
    kubectl_.run(pods, {}, kManyObjects);
  } catch (const KubectlError& error) {
    // One that is gone in the meantime: the watch will tell.
    if (error.failure() != KubectlFailure::missing && !passes(error.failure())) throw;
    return false;
  }
  return true;
}

/// A member is lost, as are those that went with it, and what they said is read.
bool ClusterGang::start_is_over() const {
  constexpr Seconds kOthersOfANode{2}, kToRead{7};
  if (!broken_ || asked_ || hopeless_ || first_ended_ || since(*broken_) < kOthersOfANode)
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
