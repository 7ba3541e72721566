#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "executor/kubernetes/pods/gang/watched_gang.h"
#include "executor/train/stop_signal.h"
#include "sim/base/unit_text.h"

namespace reckon::kubernetes {

ResourceWatch::Events ClusterGang::pod_events() {
  return {.changed = [this](const Json& pod) { on_pod(pod_view(pod), false); },
          .deleted = [this](const Json& pod) { on_pod(pod_view(pod), true); },
          .trouble = [this](const std::string& trouble) { on_trouble(trouble); }};
}

void ClusterGang::on_trouble(const std::string& trouble) {
  if (!trouble.empty()) {
    const bool login = failure_of(trouble) == KubectlFailure::login;
    say((login ? "the cluster wants a new login: " : "the cluster is away: ") + trouble);
    return;
  }
  say("the cluster answers again");
  // A connection that died with the network may wait for ever for the next line.
  for (const Member& m : members_)
    if (m.log) m.log->reconnect();
}

ResourceWatch::Events ClusterGang::event_events() {
  return {.changed = [this](const Json& event) { on_event(event_view(event)); },
          .deleted = {},
          .trouble = {}};
}

void ClusterGang::on_made(const EventView& event) {
  const std::string pod = event.message.substr(event.message.rfind(' ') + 1);
  if (event.at) made_[stem_of(pod)].emplace(pod, *event.at);
}

/// Its Job made another pod of its rank before it, which is no more: nobody watched. What is
/// older than the attempt by far is of a run of the same name that was deleted.
bool ClusterGang::is_successor(const PodView& pod) const {
  constexpr Seconds kAppliedWithin{30};
  const auto made = made_.find(stem_of(pod.name));
  if (made == made_.end() || !pod.created) return false;
  Time first = *pod.created;
  for (const Member& m : members_)
    if (m.pod && m.pod->created) first = std::min(first, *m.pod->created);
  return std::ranges::any_of(made->second, [&](const auto& other) {
    return other.first != pod.name && other.second <= *pod.created &&
           Seconds(first - other.second) < kAppliedWithin;
  });
}

/// Once for each: the others may get by without the first one, as may their program with a new
/// one; where they do not, it is to blame.
void ClusterGang::look_for_successors() {
  if (options_.stays) return;  // they are told by their orders: seat()
  for (std::size_t k = 0; k < members_.size(); ++k) {
    Member& m = members_[k];
    if (m.replaces || m.ended() || !m.pod || !is_successor(*m.pod)) continue;
    m.replaces = true;
    say(fmt::format("{} was deleted while nobody watched, and its Job made another", name_at(k)));
  }
}

/// Events say more about what happens; a user who may not read them does without.
void ClusterGang::poll_events() {
  if (no_events_) return;
  try {
    cluster_events_.poll();
  } catch (const KubectlError& error) {
    no_events_ = true;
    say(fmt::format("without events: {}", error.what()));
  }
}

void ClusterGang::on_event(const EventView& event) {
  const bool of_job = event.kind == "Job" && event.reason == "FailedCreate";
  if (of_job && event.name.starts_with(attempt_prefix())) no_pod_ = event.message;
  if (event.kind == "Job" && event.reason == "SuccessfulCreate" &&
      event.name.starts_with(attempt_prefix()))
    on_made(event);
  if (event.kind != "Pod" || !event.name.starts_with(options_.run + '-')) return;
  about_[event.name].push_back(event);
  if (events_.event) events_.event(event);
}

std::string ClusterGang::attempt_prefix() const {
  return fmt::format("{}-{}-", options_.run, options_.attempt);
}

void ClusterGang::on_pod(const PodView& view, bool deleted) {
  if (view.attempt != options_.attempt || view.rank < 0 ||
      std::size_t(view.rank) >= members_.size())
    return;
  Member& m = members_[std::size_t(view.rank)];
  if (options_.stays && is_of_before(view)) return;
  if (!view.order.problem.empty() && foreign_.insert(view.uid + view.order.problem).second)
    say(fmt::format("{}: {}", view.name, view.order.problem));
  if (m.pod && m.pod->uid != view.uid) {  // a Job's pod in place of a deleted one
    const bool lives = !deleted && !view.ended();
    if (lives || (m.next && m.next->uid == view.uid))
      m.next = lives ? std::optional(view) : std::nullopt;
    return;
  }
  // Somebody else ends it: its node may be gone by the time that it has ended.
  const bool told_to_end = view.deleting && !(m.pod && m.pod->deleting);
  if (told_to_end && !deleted && !is_ending() && !view.node.empty()) look_at_node(view.node);
  PodOrder order = view.order;  // what was just written may be newer than what was just read
  if (m.pod && m.pod->start() > view.start()) order = m.pod->order;
  m.pod = view;
  m.pod->order = std::move(order);
  if (events_.pod) events_.pod(view);
  if (!m.ended() && (view.ended() || deleted)) lose(view.rank, loss_at(view));
}

/// Its node says why a pod was taken away; who ended by itself needs no look.
bool ClusterGang::is_taken(const PodView& view) const {
  const bool by_itself =
      !options_.foreign && view.exit_code && *view.exit_code != kExitStoppedOnRequest;
  return !view.node.empty() && (view.deleting || !by_itself);
}

PodLoss ClusterGang::loss_at(PodView view) {
  // A program that is not ours ends well when it is told to end.
  if (options_.foreign && view.deleting && view.phase == "Succeeded") view.phase = "Failed";
  if (view.phase == "Succeeded") return {};
  const SeenNode seen = is_taken(view) ? look_at_node(view.node) : SeenNode{};
  const auto events = about_.find(view.name);
  const std::vector<EventView> none;
  return loss_of(view, events != about_.end() ? events->second : none, seen.node, seen.gone);
}

/// A node as it is now or was a moment ago, for the pods that it had; one that is gone as it was
/// last seen: its taints say why.
auto ClusterGang::look_at_node(const std::string& name) -> const SeenNode& {
  constexpr Seconds kMoment{2};
  SeenNode& seen = nodes_[name];
  if (seen.at && since(*seen.at) < kMoment) return seen;
  const KubectlResult r = kubectl_.attempt({"get", "node", name, "--output=json"}, {}, Seconds{10});
  const Json json = Json::parse(r.out, nullptr, false);
  if (r.good() && json.is_object()) seen.node = node_view(json);
  seen.gone = !r.good() && failure_of(r.err) == KubectlFailure::missing;
  seen.at = Clock::now();
  return seen;
}

void ClusterGang::lose(int place, PodLoss loss) {
  Member& m = members_[std::size_t(place)];
  if (stands_by(std::size_t(place)) && !is_ending() && !asked_ && !first_ended_) {
    say(fmt::format("{} {}", name_at(std::size_t(place)),
                    loss.end == PodEnd::finished ? "has ended" : loss.words));
    return replace(m);  // nobody's loss: its Job makes another
  }
  if (first_ended_) loss = {};  // the job is done, and the others wait for somebody who is gone
  m.loss = std::move(loss);
  m.by_us = is_ending();
  if (rank_at(std::size_t(place)) == 0 && options_.ends_with_first &&
      m.loss->end == PodEnd::finished && !broken_ && !asked_)
    first_ended_ = Clock::now();
  if (m.loss->end != PodEnd::finished) {
    m.order = losses_++;
    if (!broken_) broken_ = Clock::now();
  }
}

/// The first rank's is, whichever pod has it.
bool ClusterGang::is_followed(std::size_t place) const {
  return place < kMostLogs || place >= options_.names.size() || rank_at(place) == 0;
}

void ClusterGang::follow_logs() {
  for (std::size_t k = 0; k < members_.size(); ++k) {
    Member& m = members_[k];
    if (!m.pod || !(m.log || is_followed(k))) continue;
    if (!m.log && (m.pod->started || m.pod->exit_code))
      m.log = std::make_unique<PodLog>(kubectl_, m.pod->name,
                                       [this, k](std::string_view line) { on_line(k, line); });
    if (m.log) m.log->poll(m.ended());
  }
}

void ClusterGang::on_line(std::size_t place, std::string_view line) {
  last_line_ = Clock::now();
  if (options_.stays) read_progress(place, line);
  trained_ = trained_ || line.starts_with("{\"record\":\"step\"");
  Member& m = members_[place];
  const auto at = parse_time(m.log->last_time());
  if (!line.starts_with("{\"record\":")) m.last_words = line;
  // A pod of an older reckon-worker does not say its rank, and goes on in place alone.
  const bool own_place =
      !options_.stays || (m.log_rank < 0 && rules_.kind == RestartKind::in_place);
  if (events_.output)
    events_.output(own_place ? int(place) : m.log_rank,
                   at.value_or(std::chrono::system_clock::now()), line);
}

}  // namespace reckon::kubernetes
