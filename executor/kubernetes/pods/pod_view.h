#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/kubernetes/kubectl.h"
#include "executor/train/records/pod_orders.h"

// What the API server says of pods, events and nodes, as far as a run needs it: JSON in, structs
// out.
namespace reckon::kubernetes {

using Time = std::chrono::system_clock::time_point;

/// "2026-11-22T03:00:00Z", with or without a fraction; nullopt: no such time.
std::optional<Time> parse_time(const std::string& text);

struct PodView {
  std::string name, uid, node;
  std::string phase;  // Pending, Running, Succeeded, Failed, Unknown
  std::int64_t attempt = 0;
  /// Its place among the job's pods, by its Job; -1: it is not one of reckon's. Where pods take
  /// orders it has the rank that its order says, else that of its place.
  int rank = -1;
  PodOrder order;       // kStartAnnotation: the newest that it was given
  std::string address;  // "10.0.0.7", by a name where that is not known yet; "": neither is
  int port = 0;         // where its rank 0 would listen; 0: it names none
  std::optional<Time> created, scheduled, started, finished;  // the last two: of its container
  bool deleting = false;
  std::optional<int> exit_code;
  std::string ended_as, ended_message;   // of the container: Completed, Error, OOMKilled
  std::string waiting, waiting_message;  // why the container does not run yet: ErrImagePull
  std::string reason, message;           // of the pod: Evicted, NodeLost
  std::string unschedulable;             // the scheduler's words
  std::string disruption;                // why it is deleted (1.26): PreemptionByScheduler

  bool ended() const { return phase == "Succeeded" || phase == "Failed"; }
  /// The newest that it was told to take part in; -1: none.
  std::int64_t start() const { return order.order ? order.order->attempt : -1; }
  /// In that start; -1: none.
  int ordered_rank() const { return !order.order ? -1 : order.own_part ? rank : order.order->rank; }
};
PodView pod_view(const Json& pod);

struct EventView {
  std::string kind, name;  // of the object that it is about
  std::string reason, message;
  std::optional<Time> at;  // the last
};
EventView event_view(const Json& event);

struct NodeView {
  std::string name;
  bool ready = false;
  bool cordoned = false;            // nothing is placed there: it is being drained
  std::vector<std::string> taints;  // keys
  std::optional<Time> created;
};
NodeView node_view(const Json& node);

}  // namespace reckon::kubernetes
