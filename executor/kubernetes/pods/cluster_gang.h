#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/kubernetes/pods/pod_loss.h"
#include "executor/kubernetes/pods/pod_view.h"
#include "executor/launch/gang.h"
#include "executor/launch/seating.h"

// All pods of one attempt of a job, from their Jobs' being there until the last has ended: what
// run_gang() is for processes of this machine.
namespace reckon::kubernetes {

struct ClusterGangOptions {
  std::string run;  // the job's name, without the attempt
  std::int64_t attempt = 0;
  std::vector<std::string> names;  // of the processes, by rank: "rank 0"
  /// Where pods stay: who has which rank. Of its sizes `wanted` is that of `names`.
  SeatingRules seating = {};
  /// The program is not ours: of its exit codes only 0 has a meaning, and that only where nobody
  /// was ending the pod.
  bool foreign = false;
  /// The job is over when rank 0 has ended with 0, as GangOptions::ends_with_first says.
  bool ends_with_first = false;
  /// No member waits for another: one that is lost, or finds no room or image in time, is one alone
  /// (its pod is deleted), and the others go on. GangEnd::reasons says how each ended.
  bool independent = false;
  /// Pods that are left when one is lost wait for the next start (StandingPods), and are not ended.
  bool stays = false;
  Seconds notice{30};  // from a request to stop until pods are killed
  /// Likewise of StopRequest::own, where that is longer: pods get it in place of their own grace
  /// period. Empty: they do not.
  std::function<Seconds()> own_notice = {};
  Seconds grace{10};              // from a pod's loss until the others are ended
  Seconds pending_deadline{900};  // StartPatience::Limits
  Seconds image_deadline{180};    // likewise
};

/// Of each pod a kubectl follows the log; of more pods than this the later ones' are not read.
inline constexpr std::size_t kMostLogs = 64;

/// How far one pod is.
struct PodProgress {
  std::string name;   // of the process: "rank 0", "stands by"
  std::string state;  // "waits for a node", "pulls its image", "runs", "ended"
  std::string node;
};

struct ClusterGangEvents {
  /// Printed when; a rank of -1: the pod stood by.
  std::function<void(int rank, Time at, std::string_view line)> output;
  std::function<void(const PodView&)> pod;  // one of the attempt's, whenever it changes
  std::function<void(const EventView&)> event;
  std::function<void(const std::string&)> message;
  /// By rank, then those that stand by; at ticks.
  std::function<void(const std::vector<PodProgress>&)> pods;
  /// The attempt is broken, and the others are about to be ended: who is to blame, as far as is
  /// known by then.
  std::function<void(const GangEnd&)> breaks;
  /// At ticks, while all ranks run: time in which every line that they print was heard. Why they
  /// hang, and are to be ended as after a loss; "": they do not. What it says holds once nothing is
  /// left to be read of their logs.
  std::function<std::string(Seconds heard)> hangs;
  std::function<void()> tick;  // ten times a second
};

/// A pod that was asked to stop and is known to have ended before it had saved is to blame for the
/// end, which is not GangEnd::asked where the request was an own one. GangEnd::code is 1 where
/// there is no room, 127 where there is no image. Throws KubectlError for what does not pass by
/// itself.
GangEnd watch_cluster_gang(const Kubectl& kubectl, const ClusterGangOptions& options,
                           const ClusterGangEvents& events,
                           const std::function<StopRequest()>& stop);

/// Ends the pods of an attempt that still run, by SIGTERM and the pods' grace period; those that
/// have ended stay, with their logs.
/// `grace`: in place of that period.
void end_attempt(const Kubectl& kubectl, const std::string& run, std::int64_t attempt,
                 std::optional<Seconds> grace = {});
/// Of a pod whose node does not answer, so that nobody says that it has ended.
void remove_by_force(const Kubectl& kubectl, const std::string& pod);

/// Labels by which the objects of a run are found, and of one attempt of it.
std::string selector_of(const std::string& run);
std::string selector_of(const std::string& run, std::int64_t attempt);

}  // namespace reckon::kubernetes
