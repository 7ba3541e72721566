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
#include "executor/launch/step_watch.h"

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
  bool over();
  void wait();
  void say(const std::string& text) const;
  PodProgress progress_of(std::size_t place) const;
  void tell();
  GangEnd result() const;
  void blame_culprit(GangEnd& end) const;
  std::optional<std::size_t> unsaved() const;
  void blame_unsaved(GangEnd& end, std::size_t place) const;

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
  void lose(int place, PodLoss loss);
  bool is_followed(std::size_t place) const;
  void follow_logs();
  void on_line(std::size_t place, std::string_view line);

  // starts.cpp: one start of pods that stay, from its begin to its end
  void begin_start(std::int64_t start);
  /// Of the pod at this place, now; -1: it stands by. Of other gangs places are ranks.
  int rank_at(std::size_t place) const;
  std::string name_at(std::size_t place) const;
  bool stands_by(std::size_t place) const { return rank_at(place) < 0; }
  /// It has ended, or nobody waits for it.
  bool is_over(std::size_t place) const;
  bool all_ranks_ended() const;
  void replace(Member& m);
  void read_progress(std::size_t place, std::string_view line);
  void look_for_growth();
  bool is_of_before(const PodView& view) const;
  bool start_is_over() const;
  void look_for_leavers();

  // orders.cpp: who has which rank in it, and what pods are told
  void seat();
  bool is_told(const Member& m) const;
  int ranks_of_order(const PodView& pod) const;
  bool take_up_start();
  bool completes(const std::vector<int>& missing);
  bool choose_ranks();
  bool give_orders();
  void give_order(Member& m, const HostPort& master);
  Member* with_rank(int rank);

  // hanging.cpp: steps that nobody hears of
  bool trains() const;
  bool hears() const;
  bool is_read() const;
  void look_for_hang();

  // ending.cpp: what is done about it
  void obey(StopRequest request);
  /// From the pods' being told to end until they are deleted by force.
  Clock::duration kill_after() const;
  void judge();
  void end_others();
  void tell_that_it_waits();
  bool is_ending() const { return last_try_ != Clock::time_point{}; }
  void tell_of_break() const;
  void kill_rest();
  void look_at_nodes();
  void look_at_waiting();
  void give_up(int place, int code, std::string words);

  const Kubectl& kubectl_;
  const ClusterGangOptions& options_;
  const ClusterGangEvents& events_;
  SeatingRules rules_;
  std::vector<Member> members_;  // by place
  ResourceWatch pods_, cluster_events_;
  SilentNodes silent_nodes_;
  StartPatience patience_;
  std::map<std::string, std::vector<EventView>> about_;  // by pod
  std::map<std::string, SeenNode> nodes_;
  std::map<std::string, std::map<std::string, Time>> made_;  // pods by their Jobs: by stem, name
  std::string no_pod_;                                       // why a Job makes none: a quota
  Clock::time_point all_ended_{}, last_try_{}, last_look_{}, last_line_ = Clock::now();
  std::optional<Clock::time_point> broken_, first_ended_, kill_at_;
  std::optional<int> hopeless_;  // place
  // Where pods stay: the start under way; who has left it, since when; pods that are no more.
  std::int64_t start_ = -1, start_before_ = -1;
  int ranks_ = 0;        // of the start
  bool given_ = false;   // it is known who has which rank
  bool noted_ = false;   // their Jobs have its number
  bool seated_ = false;  // all have their orders
  bool begun_ = false;   // they train
  bool grows_ = false;   // nobody was lost before it: the ranks train until they have their orders
  bool regroups_ = false;
  struct Left {
    int place = 0;
    Clock::time_point at;
  };
  std::optional<Left> left_;
  std::set<std::string> gone_;     // uids
  std::set<std::string> foreign_;  // orders that are none, as they were told
  Clock::time_point last_order_{};
  std::string hang_;  // why all hang; "": they do not
  ListenedTime listened_;
  Clock::time_point looked_for_hang_{};
  std::string hopeless_words_;
  int hopeless_code_ = 0, losses_ = 0;
  Seconds notice_ = options_.notice;  // of the request that came
  bool own_ = false;                  // it was StopRequest::own
  bool at_once_ = false;
  bool trained_ = false;  // somebody told of a step: there is something to save
  bool asked_ = false, ending_ = false, no_events_ = false, told_waiting_ = false;
};

}  // namespace reckon::kubernetes
