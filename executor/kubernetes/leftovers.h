#pragma once
#include <optional>
#include <string>
#include <vector>

#include "executor/kubernetes/kubectl.h"
#include "executor/kubernetes/lease_rule.h"
#include "executor/kubernetes/pods/pod_view.h"
#include "sim/base/money.h"

// What runs have left in a cluster and nobody owns any more, with what it costs an hour.
namespace reckon::kubernetes {

/// What the cluster has of reckon's objects, as the API lists them; null: it may not be looked at.
struct LeftoverView {
  std::string name_space, run;  // that were looked at; "": all
  Json runs, jobs, pods, claims, leases, nodes;
  /// Pods of others on nodes that have pods of ours; null: they may not be looked at.
  Json other_pods;
  std::vector<std::string> not_seen;  // sentences
};
/// Of `name_space`, or of all ("") where the user may look at all; of `run` alone, or of all ("").
/// Throws KubectlError.
LeftoverView look_for_leftovers(const Kubectl& kubectl, const std::string& name_space,
                                const std::string& run);

/// A node annotation: the run, "NAMESPACE/NAME", for which reckon cordoned it.
inline constexpr const char* kCordonedBy = "reckon/cordoned-by";

struct Leftover {
  enum class Kind {
    jobs,   // of a run: its Jobs with their pods
    claim,  // a volume claim that was made for checkpoints
    node    // there for such pods alone, or cordoned by reckon
  } kind = Kind::jobs;
  std::string name_space, run, name;
  std::string why;  // "finished", "no launcher: ..."
  int jobs = 0, pods_running = 0, pods_waiting = 0, pods_ended = 0;  // of jobs
  std::vector<std::string> nodes;                                    // that its pods hold
  std::optional<Bytes> size;                                         // of a claim
  /// nullopt: not known. Of jobs: of those nodes that they alone hold.
  std::optional<HourlyRate> price;
};

struct Leftovers {
  std::vector<Leftover> items;
  HourlyRate total;        // each node once, and claims
  int unknown_prices = 0;  // nodes and claims that the total lacks
  std::vector<std::string> not_seen;
};
/// Pure: `now` is the time of day here, to which holders of leases are expected to be close.
Leftovers leftovers_of(const LeftoverView& view, Time now);

/// Who acts on a run, by its Lease (null: none), for people. A holder whose last renewal is longer
/// ago than two durations of its lease is taken to be gone: clocks of machines differ.
struct LauncherView {
  std::string identity;  // "": nobody holds it
  std::string renewed;
  bool lives = false;
};
std::optional<LauncherView> launcher_view(const Json& lease, Time now);

}  // namespace reckon::kubernetes
