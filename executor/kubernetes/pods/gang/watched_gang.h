#pragma once
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "executor/kubernetes/pods/cluster_gang.h"
#include "executor/kubernetes/pods/gang_member.h"
#include "executor/kubernetes/pods/silent_nodes.h"
#include "executor/kubernetes/resource_watch.h"
#include "executor/kubernetes/start_patience.h"

// The watch of one attempt's pods, of which watch_cluster_gang() is the front.
namespace reckon::kubernetes {

class ClusterGang {
 public:
  ClusterGang(const Kubectl& kubectl, const ClusterGangOptions& options,
              const ClusterGangEvents& events);
  GangEnd run(const std::function<StopRequest()>& stop);

  // starts.cpp: where pods stay
  /// The next start of the job with the pods that are there, and new ones for those that are lost.
  GangEnd run_start(std::int64_t start, const std::function<StopRequest()>& stop);
  /// All pods may be there again: nobody's Job is done.
  bool can_go_on() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Member = GangMember;
  struct SeenNode {
    std::optional<NodeView> node;
    bool gone = false;
    std::optional<Clock::time_point> at;  // when it was looked at
  };

  static Seconds since(Clock::time_point moment) { return Clock::now() - moment; }

  // watch.cpp: the loop, what is told, how it ended
  std::string path(const char* kind) const;
  bool over() const;
  void wait();
  void say(const std::string& text) const;
  static PodProgress progress_of(const Member& m);
  void tell();
  GangEnd result() const;
  void blame_culprit(GangEnd& end) const;

  // changes.cpp: what the cluster says of pods, nodes and events
  ResourceWatch::Events pod_events();
  void on_trouble(const std::string& trouble);
  ResourceWatch::Events event_events();
  /// What is behind the last hyphen differs between the pods that a Job makes for one rank:
  /// "job-0-worker-2-x7k2p".
  static std::string stem_of(const std::string& pod) { return pod.substr(0, pod.rfind('-') + 1); }
  void on_made(const EventView& event);
  bool is_successor(const PodView& pod) const;
  void look_for_successors();
  void poll_events();
  void on_event(const EventView& event);
  std::string attempt_prefix() const;
  void on_pod(const PodView& view, bool deleted);
  bool is_taken(const PodView& view) const;
  PodLoss loss_at(PodView view);
  const SeenNode& look_at_node(const std::string& name);
  void lose(int rank, PodLoss loss);
  void follow_logs();
  void on_line(std::size_t rank, std::string_view line);

  // starts.cpp
  void begin_start(std::int64_t start);
  void seat();
  bool give_order();
  bool is_of_before(const PodView& view) const;
  bool start_is_over() const;
  void look_for_leavers();

  // ending.cpp: what is done about it
  void obey(StopRequest request);
  void judge();
  void end_others();
  void tell_that_it_waits();
  bool is_ending() const { return last_try_ != Clock::time_point{}; }
  void tell_of_break() const;
  void kill_rest();
  void look_at_nodes();
  void remove_by_force(const std::string& pod) const;
  void look_at_waiting();
  void give_up(int rank, int code, std::string words);

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
  // Where pods stay: the start under way; who has left it, since when; pods that are no more.
  std::int64_t start_ = -1;
  bool seated_ = false;
  struct Left {
    int rank = 0;
    Clock::time_point at;
  };
  std::optional<Left> left_;
  std::set<std::string> gone_;  // uids
  Clock::time_point last_order_{};
  std::string hopeless_words_;
  int hopeless_code_ = 0, losses_ = 0;
  bool asked_ = false, ending_ = false, no_events_ = false, told_waiting_ = false;
};

}  // namespace reckon::kubernetes
