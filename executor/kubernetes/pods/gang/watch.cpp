#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "executor/comm/errors.h"
#include "executor/kubernetes/pods/gang/watched_gang.h"
#include "executor/train/stop_signal.h"

namespace reckon::kubernetes {

ClusterGang::ClusterGang(const Kubectl& kubectl, const ClusterGangOptions& options,
                         const ClusterGangEvents& events)
    : kubectl_(kubectl),
      options_(options),
      events_(events),
      members_(options.names.size()),
      pods_(kubectl, path("pods"), selector_of(options.run, options.attempt), pod_events()),
      cluster_events_(kubectl, path("events"), "", event_events()),
      silent_nodes_(kubectl),
      patience_({.pending = options.pending_deadline, .image = options.image_deadline},
                [this](const std::string& text) { say(text); }) {}

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
    tell();
  }
  return result();
}

std::string ClusterGang::path(const char* kind) const {
  return fmt::format("/api/v1/namespaces/{}/{}", kubectl_.name_space(), kind);
}

bool ClusterGang::over() const {
  if (options_.stays && start_is_over()) return true;
  const bool all = std::ranges::all_of(members_, &Member::ended);
  if (!all) return false;
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

PodProgress ClusterGang::progress_of(const Member& m) {
  if (!m.pod) return {m.ended() ? "gone" : "no pod yet", ""};
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
  return {state, pod.node};
}

void ClusterGang::tell() {
  if (events_.tick) events_.tick();
  if (!events_.pods) return;
  std::vector<PodProgress> all;
  for (const Member& m : members_) all.push_back(progress_of(m));
  events_.pods(all);
}

GangEnd ClusterGang::result() const {
  GangEnd end;
  end.asked = asked_;
  for (const Member& m : members_) {
    const int code = m.loss ? m.loss->code : kExitLostPeer;  // it waits for the next start
    end.ends.push_back(code > 128 ? ProcessEnd{0, code - 128} : ProcessEnd{code, 0});
    end.reasons.push_back(m.loss ? m.loss->words : "lost the others");
  }
  const bool finished =
      std::ranges::all_of(members_, [](const Member& m) { return m.loss && m.loss->code == 0; });
  if (finished && !hopeless_) return end;
  if (asked_) {  // whoever was still starting had nothing to save
    end.code = kExitStoppedOnRequest;
    end.reason = "stopped on request";
    return end;
  }
  blame_culprit(end);
  return end;
}

/// Some member is lost, or will not start.
void ClusterGang::blame_culprit(GangEnd& end) const {
  end.culprit = hopeless_ ? hopeless_ : culprit_of(members_, options_.foreign);
  const bool nobody_else = !end.culprit && left_;
  if (nobody_else) end.culprit = left_->rank;
  const std::string& name = options_.names[std::size_t(*end.culprit)];
  if (nobody_else) {
    end.code = kExitLostPeer;
    end.reason = fmt::format("{} lost the others", name);
    return;
  }
  if (!hopeless_) return blame(end, members_[std::size_t(*end.culprit)], name, options_.foreign);
  end.code = hopeless_code_;
  end.reason = fmt::format("{} {}", name, hopeless_words_);
}

}  // namespace reckon::kubernetes
