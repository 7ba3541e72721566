#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "executor/kubernetes/pods/gang/watched_gang.h"

namespace reckon::kubernetes {

void ClusterGang::obey(StopRequest request) {
  if (request == StopRequest::none) return;
  if (!asked_ && request == StopRequest::own && options_.own_notice)
    notice_ = std::max(notice_, options_.own_notice());
  if (!asked_) own_ = request == StopRequest::own;
  asked_ = true;
  if (own_ && request > StopRequest::own) {  // whoever asks now has less time
    own_ = false;
    notice_ = options_.notice;
    if (kill_at_) kill_at_ = std::min(*kill_at_, Clock::now() + kill_after());
  }
  at_once_ = at_once_ || request == StopRequest::at_once;
  if (request == StopRequest::at_once) kill_at_ = Clock::now();
}

ClusterGang::Clock::duration ClusterGang::kill_after() const {
  constexpr Seconds kMargin{10};  // the cluster's own delays around the pods' grace period
  return std::chrono::duration_cast<Clock::duration>(notice_ + kMargin);
}

void ClusterGang::judge() {
  look_for_leavers();
  const bool breaks = broken_ && !options_.independent;
  if (!breaks && !asked_ && !first_ended_) look_at_waiting();
  if (!ending_) look_at_nodes();
  look_for_hang();
  const auto passed = [&](const std::optional<Clock::time_point>& moment) {
    return moment && since(*moment) > options_.grace;
  };
  const bool done = passed(first_ended_) || (first_ended_ && options_.stays && all_ranks_ended());
  if (asked_ || hopeless_ || !hang_.empty() || (breaks && !options_.stays && passed(broken_)) ||
      done)
    end_others();
  if (kill_at_ && Clock::now() >= *kill_at_) kill_rest();
}

/// Ends what still runs; what does not end by itself is killed.
void ClusterGang::end_others() {
  constexpr Seconds kBetweenTries{2};
  if (ending_ || since(last_try_) < kBetweenTries) return;
  tell_of_break();
  last_try_ = Clock::now();
  try {
    const bool own = own_ && options_.own_notice;
    end_attempt(kubectl_, options_.run, options_.attempt,
                own ? std::optional(notice_) : std::nullopt);
  } catch (const KubectlError& error) {
    if (!passes(error.failure())) throw;
    tell_that_it_waits();
    return;
  }
  ending_ = true;
  kill_at_ = Clock::now() + kill_after();
}

void ClusterGang::tell_that_it_waits() {
  if (!asked_ || told_waiting_) return;
  told_waiting_ = true;
  say("the run is stopped when the cluster answers again; asked once more, this command ends and "
      "leaves it running");
}

/// Once, and before anything is done about it.
void ClusterGang::tell_of_break() const {
  const bool breaks = broken_ || !hang_.empty();
  if (is_ending() || !breaks || asked_ || hopeless_ || options_.independent || !events_.breaks)
    return;
  GangEnd end;
  blame_culprit(end);
  events_.breaks(end);
}

/// Pods that do not end are on nodes that do not answer, or stand still.
void ClusterGang::kill_rest() {
  kill_at_.reset();
  if (told_waiting_ && !ending_)
    throw KubectlError(
        KubectlFailure::connection,
        fmt::format("the cluster does not answer, and the run is left as it is; `reckon run --on "
                    "kubernetes --attach {}` goes on with it",
                    options_.run));
  for (std::size_t k = 0; k < members_.size(); ++k) {
    Member& m = members_[k];
    if (m.ended()) continue;
    if (!m.pod) {  // there never was one
      lose(int(k), {PodEnd::deleted, 137, "was never there"});
      continue;
    }
    PodLoss loss = loss_at(*m.pod);
    if (loss.end == PodEnd::deleted) loss.words = "did not end";
    m.forced = true;
    remove_by_force(kubectl_, m.pod->name);
    lose(int(k), std::move(loss));
  }
}

/// A pod whose node does not answer is being ended for ever, or runs for ever: nobody is there to
/// say otherwise.
void ClusterGang::look_at_nodes() {
  constexpr Seconds kBetweenLooks{2}, kSilence{15};
  if (since(last_look_) < kBetweenLooks) return;
  last_look_ = Clock::now();
  if (since(last_line_) > kSilence) silent_nodes_.look();  // who prints is there
  for (std::size_t k = 0; k < members_.size(); ++k) {
    const Member& m = members_[k];
    if (m.ended() || !m.pod || !(m.pod->deleting || silent_nodes_.lost(m.pod->node))) continue;
    PodLoss loss = loss_at(*m.pod);
    if (loss.end != PodEnd::node_lost) continue;
    remove_by_force(kubectl_, m.pod->name);
    lose(int(k), std::move(loss));
  }
}

void ClusterGang::look_at_waiting() {
  if (options_.stays && given_) return;  // the start has all that it needs
  for (std::size_t k = 0; k < members_.size(); ++k) {
    const Member& m = members_[k];
    if (m.ended() || (m.pod && m.pod->started)) continue;
    auto verdict = patience_.look_at(int(k), name_at(k), m.pod ? &*m.pod : nullptr, no_pod_);
    if (verdict) give_up(int(k), verdict->code, std::move(verdict->words));
  }
}

void ClusterGang::give_up(int place, int code, std::string words) {
  if (options_.independent) {
    // Its Job, which may start none again, makes no other.
    if (const auto& pod = members_[std::size_t(place)].pod; pod)
      kubectl_.attempt({"delete", "pod", pod->name, "--wait=false", "--ignore-not-found"});
    return lose(place, {PodEnd::deleted, code, std::move(words)});
  }
  if (hopeless_) return;
  hopeless_ = place;
  hopeless_code_ = code;
  hopeless_words_ = std::move(words);
}

}  // namespace reckon::kubernetes
