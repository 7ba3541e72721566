#include "executor/kubernetes/pods/cluster_gang.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "executor/kubernetes/pods/gang_member.h"
#include "executor/kubernetes/pods/silent_nodes.h"
#include "executor/kubernetes/resource_watch.h"
#include "executor/kubernetes/start_patience.h"
#include "executor/train/stop_signal.h"
#include "sim/base/unit_text.h"

namespace reckon::kubernetes {
namespace {

using Clock = std::chrono::steady_clock;
using Member = GangMember;

/// Of each pod a kubectl follows the log; of more pods than this the later ones' are not read.
constexpr std::size_t kMostLogs = 64;

struct SeenNode {
  std::optional<NodeView> node;
  bool gone = false;
  std::optional<Clock::time_point> at;  // when it was looked at
};

Seconds since(Clock::time_point moment) { return Clock::now() - moment; }

class ClusterGang {
 public:
  ClusterGang(const Kubectl& kubectl, const ClusterGangOptions& options,
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

  GangEnd run(const std::function<StopRequest()>& stop) {
    while (!over()) {
      wait();
      pods_.poll();
      patience_.pass(pods_.answers());
      poll_events();
      look_for_successors();
      follow_logs();
      obey(stop ? stop() : StopRequest::none);
      judge();
      tell();
    }
    return result();
  }

 private:
  std::string path(const char* kind) const {
    return fmt::format("/api/v1/namespaces/{}/{}", kubectl_.name_space(), kind);
  }

  ResourceWatch::Events pod_events() {
    return {.changed = [this](const Json& pod) { on_pod(pod_view(pod), false); },
            .deleted = [this](const Json& pod) { on_pod(pod_view(pod), true); },
            .trouble = [this](const std::string& trouble) { on_trouble(trouble); }};
  }

  void on_trouble(const std::string& trouble) {
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
  ResourceWatch::Events event_events() {
    return {.changed = [this](const Json& event) { on_event(event_view(event)); },
            .deleted = {},
            .trouble = {}};
  }

  /// What is behind the last hyphen differs between the pods that a Job makes for one rank:
  /// "job-0-worker-2-x7k2p".
  static std::string stem_of(const std::string& pod) { return pod.substr(0, pod.rfind('-') + 1); }

  void on_made(const EventView& event) {
    const std::string pod = event.message.substr(event.message.rfind(' ') + 1);
    if (event.at) made_[stem_of(pod)].emplace(pod, *event.at);
  }

  /// Its Job made another pod of its rank before it, which is no more: nobody watched. What is
  /// older than the attempt by far is of a run of the same name that was deleted.
  bool is_successor(const PodView& pod) const {
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
  void look_for_successors() {
    for (std::size_t k = 0; k < members_.size(); ++k) {
      Member& m = members_[k];
      if (m.replaces || m.ended() || !m.pod || !is_successor(*m.pod)) continue;
      m.replaces = true;
      say(fmt::format("{} was deleted while nobody watched, and its Job made another",
                      options_.names[k]));
    }
  }

  bool over() const {
    const bool all = std::ranges::all_of(members_, &Member::ended);
    if (!all) return false;
    const bool read =
        std::ranges::all_of(members_, [](const Member& m) { return !m.log || m.log->done(); });
    return read || since(all_ended_) > Seconds{15};
  }

  /// Until something happens, at most a tenth of a second.
  void wait() {
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

  /// Events say more about what happens; a user who may not read them does without.
  void poll_events() {
    if (no_events_) return;
    try {
      cluster_events_.poll();
    } catch (const KubectlError& error) {
      no_events_ = true;
      say(fmt::format("without events: {}", error.what()));
    }
  }

  void on_event(const EventView& event) {
    const bool of_job = event.kind == "Job" && event.reason == "FailedCreate";
    if (of_job && event.name.starts_with(attempt_prefix())) no_pod_ = event.message;
    if (event.kind == "Job" && event.reason == "SuccessfulCreate" &&
        event.name.starts_with(attempt_prefix()))
      on_made(event);
    if (event.kind != "Pod" || !event.name.starts_with(options_.run + '-')) return;
    about_[event.name].push_back(event);
    if (events_.event) events_.event(event);
  }

  std::string attempt_prefix() const {
    return fmt::format("{}-{}-", options_.run, options_.attempt);
  }

  void on_pod(const PodView& view, bool deleted) {
    if (view.attempt != options_.attempt || view.rank < 0 ||
        std::size_t(view.rank) >= members_.size())
      return;
    Member& m = members_[std::size_t(view.rank)];
    if (m.pod && m.pod->uid != view.uid) return;  // a Job's pod in place of a deleted one
    // Somebody else ends it: its node may be gone by the time that it has ended.
    const bool told_to_end = view.deleting && !(m.pod && m.pod->deleting);
    if (told_to_end && !deleted && !is_ending() && !view.node.empty()) look_at_node(view.node);
    m.pod = view;
    if (events_.pod) events_.pod(view);
    if (!m.ended() && (view.ended() || deleted)) lose(view.rank, loss_at(view));
  }

  /// Its node says why a pod was taken away; who ended by itself needs no look.
  bool is_taken(const PodView& view) const {
    const bool by_itself =
        !options_.foreign && view.exit_code && *view.exit_code != kExitStoppedOnRequest;
    return !view.node.empty() && (view.deleting || !by_itself);
  }

  PodLoss loss_at(PodView view) {
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
  const SeenNode& look_at_node(const std::string& name) {
    constexpr Seconds kMoment{2};
    SeenNode& seen = nodes_[name];
    if (seen.at && since(*seen.at) < kMoment) return seen;
    const KubectlResult r =
        kubectl_.attempt({"get", "node", name, "--output=json"}, {}, Seconds{10});
    const Json json = Json::parse(r.out, nullptr, false);
    if (r.good() && json.is_object()) seen.node = node_view(json);
    seen.gone = !r.good() && failure_of(r.err) == KubectlFailure::missing;
    seen.at = Clock::now();
    return seen;
  }

  void lose(int rank, PodLoss loss) {
    Member& m = members_[std::size_t(rank)];
    if (first_ended_) loss = {};  // the job is done, and the others wait for somebody who is gone
    m.loss = std::move(loss);
    m.by_us = is_ending();
    if (rank == 0 && options_.ends_with_first && m.loss->end == PodEnd::finished && !broken_ &&
        !asked_)
      first_ended_ = Clock::now();
    if (m.loss->end != PodEnd::finished) {
      m.order = losses_++;
      if (!broken_) broken_ = Clock::now();
    }
    if (std::ranges::all_of(members_, &Member::ended)) all_ended_ = Clock::now();
  }

  void follow_logs() {
    for (std::size_t k = 0; k < std::min(members_.size(), kMostLogs); ++k) {
      Member& m = members_[k];
      if (!m.pod) continue;
      if (!m.log && (m.pod->started || m.pod->exit_code))
        m.log = std::make_unique<PodLog>(kubectl_, m.pod->name,
                                         [this, k](std::string_view line) { on_line(k, line); });
      if (m.log) m.log->poll(m.ended());
    }
  }

  void on_line(std::size_t rank, std::string_view line) {
    last_line_ = Clock::now();
    const auto at = parse_time(members_[rank].log->last_time());
    if (!line.starts_with("{\"record\":")) members_[rank].last_words = line;
    if (events_.output)
      events_.output(int(rank), at.value_or(std::chrono::system_clock::now()), line);
  }

  void obey(StopRequest request) {
    if (request == StopRequest::none) return;
    asked_ = true;
    if (request == StopRequest::at_once) kill_at_ = Clock::now();
  }

  // ---- what is to be done

  void judge() {
    const bool breaks = broken_ && !options_.independent;
    if (!breaks && !asked_ && !first_ended_) look_at_waiting();
    if (!ending_) look_at_nodes();
    const auto passed = [&](const std::optional<Clock::time_point>& moment) {
      return moment && since(*moment) > options_.grace;
    };
    if (asked_ || hopeless_ || (breaks && passed(broken_)) || passed(first_ended_)) end_others();
    if (kill_at_ && Clock::now() >= *kill_at_) kill_rest();
  }

  /// Ends what still runs; what does not end by itself is killed.
  void end_others() {
    constexpr Seconds kBetweenTries{2};
    if (ending_ || since(last_try_) < kBetweenTries) return;
    tell_of_break();
    last_try_ = Clock::now();
    try {
      end_attempt(kubectl_, options_.run, options_.attempt);
    } catch (const KubectlError& error) {
      if (!passes(error.failure())) throw;
      tell_that_it_waits();
      return;
    }
    ending_ = true;
    constexpr Seconds kMargin{10};  // the cluster's own delays around the pods' grace period
    kill_at_ =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.notice + kMargin);
  }

  void tell_that_it_waits() {
    if (!asked_ || told_waiting_) return;
    told_waiting_ = true;
    say("the run is stopped when the cluster answers again; asked once more, this command ends and "
        "leaves it running");
  }

  bool is_ending() const { return last_try_ != Clock::time_point{}; }

  /// Once, and before anything is done about it.
  void tell_of_break() const {
    if (is_ending() || !broken_ || asked_ || hopeless_ || options_.independent || !events_.breaks)
      return;
    GangEnd end;
    blame_culprit(end);
    events_.breaks(end);
  }

  /// Pods that do not end are on nodes that do not answer, or stand still.
  void kill_rest() {
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
      remove_by_force(m.pod->name);
      lose(int(k), std::move(loss));
    }
  }

  /// A pod whose node does not answer is being ended for ever, or runs for ever: nobody is there to
  /// say otherwise.
  void look_at_nodes() {
    constexpr Seconds kBetweenLooks{2}, kSilence{15};
    if (since(last_look_) < kBetweenLooks) return;
    last_look_ = Clock::now();
    if (since(last_line_) > kSilence) silent_nodes_.look();  // who prints is there
    for (std::size_t k = 0; k < members_.size(); ++k) {
      const Member& m = members_[k];
      if (m.ended() || !m.pod || !(m.pod->deleting || silent_nodes_.lost(m.pod->node))) continue;
      PodLoss loss = loss_at(*m.pod);
      if (loss.end != PodEnd::node_lost) continue;
      remove_by_force(m.pod->name);
      lose(int(k), std::move(loss));
    }
  }

  void remove_by_force(const std::string& pod) const {
    kubectl_.attempt({"delete", "pod", pod, "--force", "--grace-period=0", "--wait=false",
                      "--ignore-not-found"});
  }

  void look_at_waiting() {
    for (std::size_t k = 0; k < members_.size(); ++k) {
      const Member& m = members_[k];
      if (m.ended() || (m.pod && m.pod->started)) continue;
      auto verdict =
          patience_.look_at(int(k), options_.names[k], m.pod ? &*m.pod : nullptr, no_pod_);
      if (verdict) give_up(int(k), verdict->code, std::move(verdict->words));
    }
  }

  void give_up(int rank, int code, std::string words) {
    if (options_.independent) {
      // Its Job, which may start none again, makes no other.
      if (const auto& pod = members_[std::size_t(rank)].pod; pod)
        kubectl_.attempt({"delete", "pod", pod->name, "--wait=false", "--ignore-not-found"});
      return lose(rank, {PodEnd::deleted, code, std::move(words)});
    }
    if (hopeless_) return;
    hopeless_ = rank;
    hopeless_code_ = code;
    hopeless_words_ = std::move(words);
  }

  // ---- what is told

  void say(const std::string& text) const {
    if (events_.message) events_.message(text);
  }

  static PodProgress progress_of(const Member& m) {
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

  void tell() {
    if (events_.tick) events_.tick();
    if (!events_.pods) return;
    std::vector<PodProgress> all;
    for (const Member& m : members_) all.push_back(progress_of(m));
    events_.pods(all);
  }

  // ---- how it ended

  GangEnd result() const {
    GangEnd end;
    end.asked = asked_;
    for (const Member& m : members_) {
      const int code = m.loss->code;
      end.ends.push_back(code > 128 ? ProcessEnd{0, code - 128} : ProcessEnd{code, 0});
      end.reasons.push_back(m.loss->words);
    }
    const bool finished =
        std::ranges::all_of(members_, [](const Member& m) { return m.loss->code == 0; });
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
  void blame_culprit(GangEnd& end) const {
    end.culprit = hopeless_ ? hopeless_ : culprit_of(members_, options_.foreign);
    const std::string& name = options_.names[std::size_t(*end.culprit)];
    if (!hopeless_) return blame(end, members_[std::size_t(*end.culprit)], name, options_.foreign);
    end.code = hopeless_code_;
    end.reason = fmt::format("{} {}", name, hopeless_words_);
  }

  const Kubectl& kubectl_;
  const ClusterGangOptions& options_;
  const ClusterGangEvents& events_;
  std::vector<Member> members_;
  ResourceWatch pods_, cluster_events_;
  SilentNodes silent_nodes_;
  StartPatience patience_;
  std::map<std::string, std::vector<EventView>> about_;  // by pod
  std::map<std::string, SeenNode> nodes_;
  std::map<std::string, std::map<std::string, Time>> made_;  // pods by their Jobs: by stem, name
  std::string no_pod_;                                       // why a Job makes none: a quota
  Clock::time_point all_ended_{}, last_try_{}, last_look_{}, last_line_ = Clock::now();
  std::optional<Clock::time_point> broken_, first_ended_, kill_at_;
  std::optional<int> hopeless_;
  std::string hopeless_words_;
  int hopeless_code_ = 0, losses_ = 0;
  bool asked_ = false, ending_ = false, no_events_ = false, told_waiting_ = false;
};

}  // namespace

std::string selector_of(const std::string& run) {
  return fmt::format("app.kubernetes.io/name=reckon,app.kubernetes.io/instance={}", run);
}
std::string selector_of(const std::string& run, std::int64_t attempt) {
  return fmt::format("{},reckon/attempt={}", selector_of(run), attempt);
}

void end_attempt(const Kubectl& kubectl, const std::string& run, std::int64_t attempt) {
  const Json jobs = kubectl.json({"get", "jobs", "--selector", selector_of(run, attempt)});
  if (jobs.at("items").empty()) return;
  // A Job that wants no pods ends those that run and keeps those that have ended.
  kubectl.run(
      {"patch", "--filename", "-", "--type", "merge", "--patch", R"({"spec":{"parallelism":0}})"},
      jobs.dump(), kManyObjects);
}

GangEnd watch_cluster_gang(const Kubectl& kubectl, const ClusterGangOptions& options,
                           const ClusterGangEvents& events,
                           const std::function<StopRequest()>& stop) {
  return ClusterGang(kubectl, options, events).run(stop);
}

}  // namespace reckon::kubernetes
