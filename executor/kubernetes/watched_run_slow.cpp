#include <fmt/format.h>

#include <algorithm>

#include "executor/kubernetes/leftovers.h"
#include "executor/kubernetes/pods/free_room.h"
#include "executor/kubernetes/watched_run.h"
#include "sim/cluster/job.h"
#include "sim/step/step.h"

// Ranks that are slow beyond their kind, and the nodes that they are on.
namespace reckon::kubernetes {

void WatchedRun::tell_watched_ranks() const {
  const int read = int(kMostLogs);
  if (foreign_ || workers_ <= read) return;
  say(fmt::format("the logs of {} of {} workers are read: {} of {} ranks are compared for slowness",
                  read, workers_, read * ranks_of_worker_, workers_ * ranks_of_worker_));
}

void WatchedRun::look_for_slow(const StepRecord& step) {
  // The log of a pod that stays has those of earlier attempts too.
  if (step.attempt != tracker_.attempt()) return;
  const bool together = plan_.only_job().strategy.synchronous();
  const double at = together ? double(step.step) : step.at.count();
  for (const SlowRank& slow : slow_ranks_.add(step.rank, at, own_time(step))) {
    const std::string& node = ranks_[std::size_t(pod_of_rank(slow.rank))].node;
    const std::string what =
        fmt::format("rank {} on node {} {}", slow.rank, node.empty() ? "?" : node, to_text(slow));
    say(fmt::format("slow: {}", what));
    if (options_.cordon_slow && !node.empty()) replace_node_of(slow, what);
  }
}

/// The pods of the next start have room without that node; those of this one are about to end.
bool WatchedRun::has_room_without(const std::string& node) const {
  const auto room = workers_with_room(kubectl_, options_.state.run, workers_, node);
  return room && *room >= workers_;
}

void WatchedRun::replace_node_of(const SlowRank& slow, const std::string& what) {
  // One an attempt: what is slow beside it is judged again on the nodes of the next.
  if (cordoned_in_ == tracker_.attempt()) return;
  const std::string node = ranks_[std::size_t(pod_of_rank(slow.rank))].node;
  const PlannedPool* pool = plan_.pool_with(Role::worker);
  const bool has_room = has_room_without(node);
  if (!has_room && (pool == nullptr || !pool->autoscaling))
    return say(fmt::format(
        "node {} is not cordoned: no other node is known to have room for its pod", node));
  cordoned_in_ = tracker_.attempt();
  try {  // before it is: another launcher of this attempt is to know
    note_cordon(kubectl_, options_.state.run, *cordoned_in_);
  } catch (const KubectlError& error) {
    return say(fmt::format("node {} is not cordoned: {}", node, error.what()));
  }
  const KubectlResult cordoned = kubectl_.attempt({"cordon", node}, {}, Seconds{30});
  if (!cordoned.good()) return say(fmt::format("node {} is not cordoned: {}", node, cordoned.err));
  // For `reckon status`, which tells of it until somebody takes the node back.
  kubectl_.attempt(
      {"annotate", "node", node, "--overwrite",
       fmt::format("{}={}/{}", kCordonedBy, kubectl_.name_space(), options_.state.run)},
      {}, Seconds{30});
  decide_on(slow, fmt::format("node {} cordoned and its pod replaced: {}", node, what), has_room);
  say(
      fmt::format("node {} is cordoned ('kubectl uncordon {}' takes it back), and its pod ends "
                  "behind a checkpoint",
                  node, node));
  end_pod_on(node);
}

void WatchedRun::decide_on(const SlowRank& slow, const std::string& what, bool has_room) {
  const RunStatus& now = tracker_.at(clock_.now());
  DecisionRecord decision;
  decision.attempt = now.attempt;
  decision.step = now.steps_done;
  decision.at = now.elapsed;
  decision.applied = true;
  decision.planned_digest =
      options_.digests.planned.empty() ? options_.digests.run : options_.digests.planned;
  decision.what = what;
  const PlannedWorkload& job = plan_.only_job();
  // Who takes steps of his own does not wait for the slowest: what that is worth is not known.
  if (observer_.decides && job.strategy.synchronous()) {
    const PlannedPool* pool = plan_.pool_with(Role::worker);
    const Seconds node = has_room || pool == nullptr ? Seconds{0} : pool->provisioning.value;
    const Seconds pause = checkpoint_save_time(plan_, job) +
                          to_seconds(retry_delay(options_.retry, 1)) + node + starts_;
    observer_.decides(decision, now,
                      ends_with_replacement(now.estimate, now.elapsed, now.spent, slow, pause));
  }
  keep(decision);
}

void WatchedRun::end_pod_on(const std::string& node) const {
  const std::int64_t objects = standing_ ? standing_->objects() : tracker_.attempt();
  const KubectlResult pods =
      kubectl_.attempt({"delete", "pod", "--selector", selector_of(options_.state.run, objects),
                        "--field-selector", "spec.nodeName=" + node, "--wait=false"},
                       {}, Seconds{60});
  if (!pods.good()) say(fmt::format("its pod is not deleted: {}", pods.err));
}

}  // namespace reckon::kubernetes
