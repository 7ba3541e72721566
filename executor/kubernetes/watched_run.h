#pragma once
#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "executor/kubernetes/interruption_log.h"
#include "executor/kubernetes/known_records.h"
#include "executor/kubernetes/kubernetes_run.h"
#include "executor/kubernetes/pods/pod_metrics.h"
#include "executor/kubernetes/pods/pod_times.h"
#include "executor/kubernetes/pods/standing_pods.h"
#include "executor/launch/foreign_program.h"
#include "executor/launch/run_money.h"
#include "executor/train/stop_signal.h"
#include "sim/measurement/slow_ranks.h"

// A run that is watched. Internal to executor/kubernetes: watched_run.cpp makes its attempts and
// watches their pods, watched_run_records.cpp keeps what they say and what happens to them,
// watched_run_slow.cpp acts on ranks that are slow.
namespace reckon::kubernetes {

class WatchedRun {
 public:
  WatchedRun(const Plan& plan, const Forecast& forecast, const Kubectl& kubectl,
             const KubernetesRunOptions& options, const KubernetesObserver& observer,
             const std::function<StopRequest()>& stop);

  RunEnd run();

 private:
  /// Tries again for as long as it takes; a request to stop ends the waiting.
  template <class F>
  auto patient(F&& f) -> decltype(f()) {
    std::string told;
    return patiently(std::forward<F>(f), [&](const KubectlError& error, Seconds delay) {
      if (std::exchange(told, error.what()) != error.what())
        say(fmt::format("{}; it is tried again until then", error.what()));
      const auto until = std::chrono::steady_clock::now() + delay;
      while (std::chrono::steady_clock::now() < until) {
        if (stop_() == StopRequest::at_once) return false;
        show();
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
      return true;
    });
  }

  // ---- money, and parts of other plans (watched_run_parts.cpp)
  void count_money(const Plan& plan, const Forecast& forecast);
  void write_part();
  /// Records of earlier parts that only the cluster has.
  void take_up_parts();
  /// More than the budget would be spent by a start.
  bool starts_too_dear() const;
  RunEnd not_started();
  /// What the user asks, or the budget.
  StopRequest request();
  /// Why it was stopped, where that was not the user.
  void explain_stop(RunEnd& end);
  /// Is the attempt of a plan before this one?
  bool of_earlier_plan() const { return tracker_.attempt() < options_.state.plan_from; }
  /// It is known from an earlier plan's records how far that came; the rest is not of this plan.
  void take_earlier(const MeasurementRecord& record);
  std::string name_of(int rank) const;
  void note_end(const EndRecord& end, const SupervisedEnd& how);

  // ---- attempts (watched_run.cpp)
  void begin_attempt(std::int64_t attempt);
  /// From the logs of earlier attempts' pods, as far as the cluster has them still: of pods that
  /// ended by themselves.
  void read_earlier_attempts();
  /// Those of attempts before this one that an earlier launcher wrote into the cluster, and perhaps
  /// not into files that are here.
  void take_up_interruptions(std::int64_t before);
  void read_log(const PodView& pod);
  GangEnd run_attempt(std::int64_t attempt);
  /// Of pods that stay: the next start with those that are there, else of new ones.
  GangEnd run_standing(std::int64_t attempt);
  /// Of a start that could not be made, where it is not the first: its end, and no pod of it is
  /// left. Throws KubectlError, also where the run was deleted.
  std::optional<GangEnd> make_pods(std::int64_t attempt);
  void end_standing();
  void make_secret();
  void end_of_foreign(GangEnd& end);
  /// As the cluster has it. Throws KubectlError where the run was deleted.
  RunPhase phase();
  bool stopped_from_elsewhere();
  std::string hangs(Seconds heard);
  ClusterGangOptions gang(std::int64_t attempt) const;
  ClusterGangEvents gang_events(std::int64_t attempt);
  void show();
  void say(const std::string& text) const;

  // ---- ranks that are slow beyond their kind (watched_run_slow.cpp)
  /// Not all logs of a large job are read: says so.
  void tell_watched_ranks() const;
  /// Says which rank is slow, on which node; with KubernetesRunOptions::cordon_slow lets no new pod
  /// onto that node and ends the pod, which saves first.
  void look_for_slow(const StepRecord& step);
  void replace_node_of(const SlowRank& slow, const std::string& what);
  bool has_room_without(const std::string& node) const;
  void decide_on(const SlowRank& slow, const std::string& what, bool has_room);
  void end_pod_on(const std::string& node) const;

  // ---- records (watched_run_records.cpp)
  Seconds since_start(Time at) const;
  void on_output(int rank, Time at, std::string_view line);
  bool on_record(int rank, std::string_view line);
  void take(int rank, const MeasurementRecord& record);
  void on_start(const RunRecord& run);
  void settle(std::int64_t first_step);
  void hear(int rank, const ForeignProgram::Records& records);
  /// What a program does behind the last reading of its page is lost with it, so near its end, and
  /// when it is told to end, the page is read more often.
  void poll_metrics();
  void on_first_pod(const PodView& pod);
  /// False: it is known from an earlier watch.
  bool keep(const MeasurementRecord& record);
  void on_pods(const std::vector<PodProgress>& pods);
  /// Pods are workers and servers; a worker's has all its ranks.
  int first_rank_of(int pod) const;
  int pod_of_rank(int rank) const;  // of a rank that computes
  /// As far as it is known while the attempt breaks.
  KeptInterruption interruption(std::int64_t attempt, const GangEnd& end);
  /// Its pods are about to be ended: from then on nobody else could tell why.
  void on_break(std::int64_t attempt, const GangEnd& end);
  void on_interruption(std::int64_t attempt, const GangEnd& end, Seconds delay);
  /// Where it goes on is its own affair.
  void on_open_interruption(InterruptionRecord r, Seconds delay);
  void record_end(const SupervisedEnd& end);

  const Kubectl& kubectl_;
  const KubernetesRunOptions& options_;
  const KubernetesObserver& observer_;
  const std::function<StopRequest()>& stop_;  // of the user
  const std::function<StopRequest()> asked_ = [this] { return request(); };
  const Plan& plan_;
  const Seconds starts_;  // what a start is planned to take
  bool has_servers_, secret_made_;
  int workers_, ranks_of_worker_;
  std::vector<std::string> names_;       // by rank
  std::optional<SeatingRules> seating_;  // nullopt: pods end with an attempt
  std::vector<RankStatus> ranks_;        // by rank, then those that stand by
  KnownRecords known_;                   // by an earlier launcher, here
  RunFiles files_;
  RunClock clock_;
  PodTimes times_;
  RunTracker tracker_;
  std::optional<RunMoney> money_;  // nullopt: a price is unknown
  StepWatch steps_;                // of the attempt
  SlowRanks slow_ranks_;
  std::optional<std::int64_t> cordoned_in_;  // the attempt in which a node was cordoned last
  std::optional<ForeignProgram> foreign_;    // nullopt: reckon-worker
  OpenInterruption interruption_;
  InterruptionLog interruptions_;
  std::size_t taken_up_ = 0;  // so many of earlier launchers' are dealt with
  FruitlessStarts fruitless_;
  std::unique_ptr<StandingPods> standing_;  // nullptr: none yet, or pods end with an attempt
  std::unique_ptr<PodMetrics> metrics_;     // of the first rank
  bool first_is_ending_ = false;            // somebody ends its pod
  std::string metrics_trouble_;             // what was said of it
  // The newest that is known: now, and when the attempt began.
  std::optional<std::int64_t> checkpoint_, checkpoint_before_;
  std::chrono::steady_clock::time_point shown_{};
};

}  // namespace reckon::kubernetes
