#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/serving/latency.h"
#include "sim/serving/replica_autoscaler.h"

// The life of a service, request by request: arrivals, queues with dynamic batching, replicas that
// come and go, the nodes under them. It knows no model and no price (serving.h does).
namespace reckon {

/// fixed: a forward pass does the same work each time. exponential: only to hold the queue against
/// closed forms.
enum class BatchTimeLaw { fixed, exponential };

struct ServiceSetting {
  std::vector<double> requests_per_second;  // one, or 24 by the hour of the day
  Seconds starts_at{};                      // time of day of the first second
  Arrivals arrivals = Arrivals::poisson;
  /// Of a batch of 1, 2, ... `batch_times.size()` requests, which is the largest; each above 0.
  std::vector<Seconds> batch_times;
  BatchTimeLaw law = BatchTimeLaw::fixed;
  /// A batch starts when a replica is free and either as many requests as the largest batch wait or
  /// the first of them has waited so long.
  Seconds batch_wait{};
  /// Of each request before and behind its queue; in its latency, and in no replica's way.
  Seconds outside{};
  Routing routing = Routing::random;
  int queue_limit = 1000;  // waiting at a replica (shared_queue: per replica); others are refused
  ReplicaRules replicas;
  // Nodes: a replica starts on a node with room; one that no node has room for waits for a new one.
  int replicas_per_node = 1;
  int nodes_initial = 1, nodes_min = 1, nodes_max = 1;
  Seconds node_provisioning{}, node_scan{}, node_unneeded{};
  /// Spot nodes: when the provider takes one back, counted from when it became ready. At its notice
  /// the node's replicas take no more requests, and others are made for them; what they still had
  /// when it goes is lost. nullopt: no node is taken away.
  std::optional<ReclaimRules> reclaim;
  Seconds replica_start{};  // of a replica on a node that has the image
  Seconds image_pull{};     // before it, once a node: by the first replica that is placed there
  Seconds period{};
  Seconds warm_up{};  // at the first rate, before the period; its requests are not counted
  int slices = 24;    // equal parts of the period for the timeline
};

/// A node in the period, from its request (or the period's begin) to its deletion (or the end).
struct ServiceLease {
  SimTime from{};
  SimDuration time{};
  int slot = 0;            // the lowest that was free: those of a reservation are filled first
  bool reclaimed = false;  // ended by the provider
};

struct ServiceSlice {
  Seconds from{}, length{};
  std::uint64_t arrived = 0;
  double ready = 0;         // a count: replicas that take requests, mean
  double utilization = 0;   // of them: busy share
  std::uint64_t timed = 0;  // latencies; 0: the quantiles below say nothing
  Seconds p50{}, p99{};
};

struct ServiceResult {
  /// Of requests that arrived in the period, also where the answer came after it.
  LatencyHistogram latency;
  std::uint64_t arrived = 0, refused = 0;  // in the period
  /// Answered in the period, whenever they came: what its cost pays for.
  std::uint64_t served = 0;
  std::uint64_t batches = 0;   // done in the period
  std::uint64_t reclaims = 0;  // nodes that the provider reclaimed in the period
  std::uint64_t lost = 0;      // with them, in the period: begun or waiting, and never answered
  /// In a queue or a batch when the period began and when it ended:
  ///   waiting_begin + arrived = served + refused + lost + waiting_end
  std::uint64_t waiting_begin = 0, waiting_end = 0;
  double ready_seconds = 0;             // of replicas that take requests
  double busy_seconds = 0;              // of all, also of those that only finish what they have
  int ready_least = 0, ready_most = 0;  // replicas that take requests
  std::vector<ServiceLease> leases;
  std::vector<ServiceSlice> slices;

  /// 0..1: replicas that take no more requests may still work, which does not count beyond 1.
  double utilization() const {
    return ready_seconds > 0 ? std::min(1.0, busy_seconds / ready_seconds) : 0;
  }
  /// Requests a batch.
  double batch_mean() const { return batches > 0 ? double(served) / double(batches) : 0; }
};

/// One seed, one life; the clock is whole nanoseconds and ties are served in order.
ServiceResult simulate_service(const ServiceSetting& setting, std::uint64_t seed);

}  // namespace reckon
