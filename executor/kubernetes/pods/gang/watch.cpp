#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <utility>

#include "executor/comm/errors.h"
#include "executor/kubernetes/pods/gang/watched_gang.h"
#include "executor/train/stop_signal.h"
#include "sim/base/unit_text.h"

namespace reckon::kubernetes {

ClusterGang::ClusterGang(const Kubectl& kubectl, const ClusterGangOptions& options,
                         const ClusterGangEvents& events)
    : kubectl_(kubectl),
      options_(options),
      events_(events),
      rules_(options.seating),
      members_(options.names.size() + std::size_t(options.stays ? options.seating.spares : 0)),
      pods_(kubectl, path("pods"), selector_of(options.run, options.attempt), pod_events()),
      cluster_events_(kubectl, path("events"), "", event_events()),
      silent_nodes_(kubectl),
      patience_({.pending = options.pending_deadline, .image = options.image_deadline},
                [this](const std::string& text) { say(text); }) {
  rules_.wanted = int(options.names.size());
}

GangEnd ClusterGang::run(const std::function<StopRequest()>& stop) {
  while (!over()) {
    wait();
    pods_.poll();
    patience_.pass(pods_.answers());
    poll_events();
    look_for_successors();
    follow_logs();
    obey(stop ? stop() : StopRequest::none);
    if (options_.stays) seat();
    judge();
    if (options_.stays) look_for_growth();
    tell();
  }
  return result();
}

std::string ClusterGang::path(const char* kind) const {
  return fmt::format("/api/v1/namespaces/{}/{}", kubectl_.name_space(), kind);
}

bool ClusterGang::over() {
  if (options_.stays && (regroups_ || start_is_over())) return true;
  for (std::size_t k = 0; k < members_.size(); ++k)
    if (!is_over(k)) return false;
  if (all_ended_ == Clock::time_point{}) all_ended_ = Clock::now();
  const bool read =
      std::ranges::all_of(members_, [](const Member& m) { return !m.log || m.log->done(); });
  return read || since(all_ended_) > Seconds{15};
}

/// Until something happens, at most a tenth of a second.
void ClusterGang::wait() {
  constexpr int kTickMilliseconds = 100;
  std::vector<pollfd> polled;
  const auto add = [&](int descriptor) {
    if (descriptor >= 0) polled.push_back({descriptor, POLLIN, 0});
  };
  add(pods_.descriptor());
  for (const Member& m : members_)
    if (m.log) add(m.log->descriptor());
  ::poll(polled.data(), polled.size(), kTickMilliseconds);
}

void ClusterGang::say(const std::string& text) const {
  if (events_.message) events_.message(text);
}

PodProgress ClusterGang::progress_of(std::size_t place) const {
  const Member& m = members_[place];
  const std::string name = stands_by(place) ? "stands by" : name_at(place);
  if (!m.pod) return {name, m.ended() ? "gone" : "no pod yet", ""};
  const PodView& pod = *m.pod;
  std::string state = "starts";
  if (m.loss)
    state = m.loss->end == PodEnd::finished             ? "done"
            : m.by_us && m.loss->end == PodEnd::deleted ? "was ended"
                                                        : m.loss->words;
  else if (pod.deleting)
    state = "is being ended";
  else if (pod.node.empty())
    state = "waits for a node";
  else if (pod.started)
    state = "runs";
  else if (const StartTrouble trouble = start_trouble(pod); !trouble.words.empty())
    state = trouble.words;
  return {name, state, pod.node};
}

void ClusterGang::tell() {
  if (events_.tick) events_.tick();
  if (!events_.pods) return;
  std::vector<std::pair<int, std::size_t>> order;  // by rank, then who stands by
  for (std::size_t k = 0; k < members_.size(); ++k)
    order.emplace_back(stands_by(k) ? INT_MAX : rank_at(k), k);
  std::ranges::sort(order);
  std::vector<PodProgress> all;
  for (const auto& [rank, place] : order) all.push_back(progress_of(place));
  events_.pods(all);
}

GangEnd ClusterGang::result() const {
  GangEnd end;
  end.asked = asked_;
  end.ends.resize(options_.names.size());
  end.reasons.resize(options_.names.size());
  bool finished = true;
  for (std::size_t k = 0; k < members_.size(); ++k) {
    const Member& m = members_[k];
    const int rank = rank_at(k);
    if (rank < 0) continue;
    const int code = m.loss ? m.loss->code : kExitLostPeer;  // it waits for the next start
    end.ends[std::size_t(rank)] = code > 128 ? ProcessEnd{0, code - 128} : ProcessEnd{code, 0};
    end.reasons[std::size_t(rank)] = m.loss ? m.loss->words : "lost the others";
    finished = finished && code == 0;
  }
  end.regroups = regroups_ && !asked_;
  if (end.regroups) return end;
  if (finished && !hopeless_) return end;
  if (asked_) {
    if (const auto place = unsaved()) {
      blame_unsaved(end, *place);
      return end;
    }
    end.code = kExitStoppedOnRequest;
    end.reason = "stopped on request";
    return end;
  }
  blame_culprit(end);
  return end;
}

/// Who was asked to stop, and ended before it had saved; nullopt: nobody is known to. Who was still
/// starting had nothing to save, who lost another is not to blame, and of a program that is not
/// ours nobody knows.
std::optional<std::size_t> ClusterGang::unsaved() const {
  constexpr int kTerminated = 128 + SIGTERM;
  if (!trained_ || options_.foreign) return std::nullopt;
  for (std::size_t k = 0; k < members_.size(); ++k) {
    const Member& m = members_[k];
    if (rank_at(k) < 0 || !m.loss || !m.pod || !m.pod->started) continue;
    const int code = m.loss->code;
    const bool stopped =
        code == 0 || code == kExitStoppedOnRequest || code == kExitLostPeer || code == kTerminated;
    // What nobody saw end may have saved.
    const bool seen = m.pod->exit_code.has_value();
    if (m.forced || m.loss->end == PodEnd::node_lost || (seen && !stopped)) return k;
  }
  return std::nullopt;
}

void ClusterGang::blame_unsaved(GangEnd& end, std::size_t place) const {
  constexpr int kKilled = 128 + SIGKILL;
  const Member& m = members_[place];
  const std::string name = name_at(place);
  blame(end, m, name, options_.foreign);
  end.asked = !own_;
  end.culprit = rank_at(place);
  if (m.loss->end != PodEnd::deleted) return;
  if (at_once_)
    end.reason = "killed before it had saved, as it was asked to end at once";
  else if (m.forced || (own_ && end.code == kKilled))
    end.reason = fmt::format("{} did not stop within {}", name, format_duration(notice_));
  else if (end.code == kKilled)
    end.reason = name + " did not stop within its pod's grace period";
  else
    end.reason = name + ' ' + to_text(ProcessEnd{end.code, 0});
}

/// Some member is lost, or will not start, or all hang.
void ClusterGang::blame_culprit(GangEnd& end) const {
  if (!hang_.empty()) {
    constexpr int kKilled = 137;
    end.hung = true;
    end.code = kKilled;
    end.cause = Interruption::failure;
    end.reason = hang_;
    return;
  }
  std::optional<int> place = hopeless_ ? hopeless_ : culprit_of(members_, options_.foreign);
  const bool nobody_else = !place && left_;
  if (nobody_else) place = left_->place;
  const auto culprit = std::size_t(*place);
  if (!stands_by(culprit)) end.culprit = rank_at(culprit);
  const std::string name = name_at(culprit);
  if (nobody_else) {
    end.code = kExitLostPeer;
    end.reason = fmt::format("{} lost the others", name);
    return;
  }
  if (!hopeless_) return blame(end, members_[culprit], name, options_.foreign);
  end.code = hopeless_code_;
  end.reason = fmt::format("{} {}", name, hopeless_words_);
}

}  // namespace reckon::kubernetes
