#include <catch2/catch.hpp>

#include "sim/serving/service.h"
#include "sim/serving/settings.h"

// Replicas that come and go, and the nodes that they are on.
using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

TEST_CASE("replicas follow a day's load and no node outlives its use") {
  ServiceSetting s;
  s.requests_per_second.assign(24, 10);
  for (std::size_t hour = 8; hour < 16; ++hour) s.requests_per_second[hour] = 200;
  s.batch_times = {20ms};  // 50 requests/s a replica: 1 by night, 200 / 50 / 0.5 = 8 by day
  s.replicas = {.initial = 1, .min = 1, .max = 12, .standby = 0, .target_utilization = 0.5};
  s.nodes_max = 6;
  s.replicas_per_node = 2;
  s.nodes_initial = s.nodes_min = 1;
  s.node_provisioning = 120s;
  s.node_scan = 10s;
  s.node_unneeded = 600s;
  s.replica_start = 10s;
  s.image_pull = 30s;
  s.routing = Routing::least_requests;
  s.period = 24h;
  const ServiceResult r = simulate_service(s, 13);
  CHECK(r.slices[4].ready == Approx(1).margin(0.01));
  CHECK(r.slices[12].ready == Approx(8).margin(1.1));
  CHECK(r.slices[22].ready == Approx(1).margin(0.01));
  CHECK(r.ready_most <= 12);
  // The morning finds one replica: it queues until the others are there.
  CHECK(r.slices[8].p99 > r.slices[12].p99);
  double node_hours = 0;
  for (const ServiceLease& lease : r.leases) node_hours += to_seconds(lease.time).count() / 3600;
  // One node for 24 h, three to five more for the eight hours of the day and a little.
  CHECK(node_hours >= 24 + 3 * 8);
  CHECK(node_hours <= 24 + 5 * 8.5);
}

TEST_CASE("a replica on standby takes requests at once, one that starts does not") {
  ServiceSetting s;
  s.requests_per_second.assign(24, 20);
  s.requests_per_second[1] = 90;
  s.batch_times = {20ms};
  s.replicas = {.initial = 1, .min = 1, .max = 4, .standby = 0, .target_utilization = 0.5};
  s.nodes_initial = s.nodes_min = s.nodes_max = 8;
  s.replica_start = 120s;
  s.period = 2h;
  s.slices = 2;
  const Seconds without = simulate_service(s, 14).slices[1].p99;
  s.replicas.standby = 4;
  const Seconds with = simulate_service(s, 14).slices[1].p99;
  CHECK(with < without / 2);
}

namespace {

/// One request a second of so many replicas with passes of 20 s: what drains does so for long.
ServiceSetting slow_replicas() {
  ServiceSetting s;
  s.requests_per_second.assign(24, 0.45);
  s.requests_per_second[1] = 0.05;
  s.requests_per_second[2] = 0.45;
  s.batch_times = {20s};
  s.replicas = {.initial = 10, .min = 1, .max = 10, .standby = 0, .target_utilization = 0.8};
  s.replicas.sync_period = 1s;
  s.replicas.downscale_stabilization = 0s;
  s.nodes_initial = s.nodes_min = s.nodes_max = 10;
  s.replica_start = 5s;
  s.period = 4h;
  return s;
}

}  // namespace

TEST_CASE("a replica that finds every node taken by one that drains gets its place") {
  // Each look of a second sends replicas away and calls others, while passes take 20 s.
  for (const Routing routing : {Routing::random, Routing::shared_queue}) {
    ServiceSetting s = slow_replicas();
    s.routing = routing;
    const ServiceResult r = simulate_service(s, 15);
    CHECK(r.leases.size() == 10);
    CHECK(r.ready_least < 10);
    CHECK(r.ready_most <= 10);
    CHECK(r.slices.back().ready > 5);  // they came back
    CHECK(r.served + r.refused + r.waiting_end == r.arrived + r.waiting_begin);
  }
}

TEST_CASE("replicas of a new node wait for the image that the first of them pulls") {
  // Four more at the first look, after 15 s: 100 s until their node comes, 200 s to pull, 10 s to
  // start.
  ServiceSetting s;
  s.requests_per_second = {40};
  s.batch_times = {1s};
  s.replicas = {.initial = 4, .min = 1, .max = 8, .standby = 0, .target_utilization = 0.5};
  s.replicas_per_node = 4;
  s.nodes_max = 2;
  s.node_provisioning = 100s;
  s.image_pull = 200s;
  s.replica_start = 10s;
  s.period = 340s;
  s.slices = 34;  // of 10 s
  const ServiceResult r = simulate_service(s, 16);
  CHECK(r.slices[31].ready == Approx(4));  // none at 125 s, as if the image were there
  CHECK(r.slices[33].ready == Approx(8));  // all at 325 s
}

TEST_CASE("a replica that is gone serves nothing from the shared queue") {
  // Batches wait for an hour, so replicas that are taken away were once about to start one.
  ServiceSetting s = replicas(one_replica(20, 10ms), 4, Routing::shared_queue);
  s.batch_times.assign(100, 100ms);
  s.batch_wait = 2s;
  s.replicas.min = 1;
  s.period = 3600s;
  s.warm_up = 600s;
  const ServiceResult r = simulate_service(s, 18);
  CHECK(r.ready_most == 1);
  // One replica at 20 requests/s in batches of 2 s: busy 5 % of the time. With the deleted ones
  // among those that serve it would be less of it.
  CHECK(r.busy_seconds == Approx(double(r.batches) * 0.1).epsilon(0.01));
  CHECK(r.batch_mean() == Approx(41).epsilon(0.05));
  CHECK(r.latency.largest().count() <= 2.1 + 1e-9);
}

TEST_CASE("a node that is not ready when the period ends is not charged") {
  ServiceSetting s;
  s.requests_per_second = {100};
  s.batch_times = {1s};
  s.replicas = {.initial = 1, .min = 1, .max = 4, .standby = 0, .target_utilization = 0.5};
  s.nodes_max = 4;
  s.node_provisioning = 3600s;
  s.period = 1800s;
  CHECK(simulate_service(s, 21).leases.size() == 1);
  s.node_provisioning = 600s;
  CHECK(simulate_service(s, 21).leases.size() == 4);
}

namespace {

/// Two replicas, each on a spot node of its own, of which the first is taken back at 100 s; a new
/// node takes 60 s and a replica on it 10 s.
ServiceSetting on_spot(Seconds notice) {
  ServiceSetting s = replicas(one_replica(50, 10ms), 2, Routing::random);
  s.period = 300s;
  s.warm_up = 0s;
  s.slices = 300;
  s.arrivals = Arrivals::regular;
  s.node_provisioning = 60s;
  s.replica_start = 10s;
  s.reclaim = ReclaimRules{.law = TraceReclaim{}, .notice = notice, .trace = {{100s}, {}}};
  return s;
}

double ready_at(const ServiceResult& r, int second) { return r.slices[std::size_t(second)].ready; }

}  // namespace

TEST_CASE("a spot node's replica takes no more requests at the notice, and another comes") {
  const ServiceResult r = simulate_service(on_spot(30s), 1);
  CHECK(r.reclaims == 1);
  CHECK(r.lost == 0);  // 30 s are enough for what it had
  CHECK(r.refused == 0);
  CHECK(ready_at(r, 69) == 2);
  CHECK(ready_at(r, 71) == 1);
  // Its place is free when it goes at 100; the next node is there at 160, the replica at 170.
  CHECK(ready_at(r, 169) == 1);
  CHECK(ready_at(r, 171) == 2);
  CHECK(r.waiting_begin + r.arrived == r.served + r.refused + r.lost + r.waiting_end);
  REQUIRE(r.leases.size() == 3);
  CHECK(r.leases[0].reclaimed);
  CHECK(to_seconds(r.leases[0].time) == 100s);
  CHECK_FALSE(r.leases[1].reclaimed);
  CHECK_FALSE(r.leases[2].reclaimed);
}

TEST_CASE("a replica on standby takes the place of one whose spot node goes") {
  ServiceSetting s = on_spot(30s);
  s.replicas.standby = 1;
  s.nodes_initial = s.nodes_min = s.nodes_max = 3;
  s.reclaim->trace = {{100s}, {}, {}};
  const ServiceResult r = simulate_service(s, 1);
  CHECK(r.reclaims == 1);
  for (int second = 0; second < 300; ++second) CHECK(ready_at(r, second) == 2);
}

TEST_CASE("without a notice what a replica had is lost with its node") {
  ServiceSetting s = on_spot(0s);
  s.batch_times = {1500ms};  // both are overloaded: queues are full
  s.queue_limit = 20;
  for (const Routing routing : {Routing::random, Routing::shared_queue}) {
    s.routing = routing;
    const ServiceResult r = simulate_service(s, 1);
    CHECK(r.reclaims == 1);
    CHECK(r.lost == (routing == Routing::random ? 21 : 1));  // a shared queue is on no node
    CHECK(r.waiting_begin + r.arrived == r.served + r.refused + r.lost + r.waiting_end);
  }
}

TEST_CASE("spot nodes are taken back as often as their law says, whatever is made anew") {
  ServiceSetting s = replicas(one_replica(4, 10ms), 4, Routing::random);
  s.period = 100h;
  s.node_provisioning = 60s;
  s.reclaim = ReclaimRules{.law = ExponentialReclaim{1h}, .notice = 30s};
  const ServiceResult r = simulate_service(s, 1);
  // Four nodes, each a Poisson process of one an hour: 400 +- 20.
  CHECK(double(r.reclaims) == Approx(400).margin(80));
  CHECK(r.ready_least < 4);
  CHECK(r.waiting_begin + r.arrived == r.served + r.refused + r.lost + r.waiting_end);
}
