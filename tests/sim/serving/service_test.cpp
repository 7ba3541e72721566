#include "sim/serving/service.h"

#include <catch2/catch.hpp>
#include <cmath>

using namespace reckon;
using namespace std::chrono_literals;

// Closed forms of queueing theory: [Kleinrock 1975, "Queueing Systems", volume 1], chapter 3
// (M/M/1, M/M/c) and 5 (M/G/1); [Cosmetatos 1975, "Approximate explicit formulae for the average
// queueing time in the processes (M/D/r) and (D/M/r)", Canadian J. Operational Research 13(3)].
// Each run has about a million requests, so that its mean lies within some 2 % of the expected one
// at a utilisation of 0.8.

namespace {

ServiceSetting one_replica(double rate, Seconds service) {
  ServiceSetting s;
  s.requests_per_second = {rate};
  s.batch_times = {service};
  s.queue_limit = 1'000'000;
  s.period = Seconds{1e6 / rate};
  s.warm_up = Seconds{1e4 / rate};
  return s;
}

ServiceSetting replicas(ServiceSetting s, int count, Routing routing) {
  s.replicas.initial = s.replicas.min = s.replicas.max = count;
  s.nodes_initial = s.nodes_min = s.nodes_max = count;
  s.routing = routing;
  return s;
}

/// Erlang's C: the share of requests that wait in M/M/c at an offered load of `a`.
double erlang_c(int c, double a) {
  double term = 1, sum = 1;
  for (int k = 1; k < c; ++k) sum += term *= a / k;
  term *= a / c;
  const double waits = term / (1 - a / c);
  return waits / (sum + waits);
}

}  // namespace

TEST_CASE("M/M/1: the time in the system is exponential with mean 1 / (mu - lambda)") {
  ServiceSetting s = one_replica(80, 10ms);
  s.law = BatchTimeLaw::exponential;
  const ServiceResult r = simulate_service(s, 1);
  CHECK(r.utilization() == Approx(0.8).epsilon(0.01));
  CHECK(r.latency.mean().count() == Approx(1.0 / (100 - 80)).epsilon(0.04));
  CHECK(r.latency.quantile(0.99).count() == Approx(-std::log(0.01) / 20).epsilon(0.06));
  CHECK(r.refused == 0);
  CHECK(r.served + r.waiting_end == r.arrived + r.waiting_begin);
}

TEST_CASE("M/D/1: requests wait rho S / (2 (1 - rho)) in the mean") {
  for (const double load : {0.3, 0.8}) {
    const ServiceResult r = simulate_service(one_replica(load * 100, 10ms), 2);
    const double wait = load * 0.010 / (2 * (1 - load));
    CHECK(r.latency.mean().count() - 0.010 == Approx(wait).epsilon(0.04));
  }
}

TEST_CASE("M/M/c: replicas that share a queue let a request wait C(c, a) / (c mu - lambda)") {
  ServiceSetting s = replicas(one_replica(320, 10ms), 4, Routing::shared_queue);
  s.law = BatchTimeLaw::exponential;
  const ServiceResult r = simulate_service(s, 3);
  const double wait = erlang_c(4, 3.2) / (400 - 320);
  CHECK(r.latency.mean().count() - 0.010 == Approx(wait).epsilon(0.05));
}

TEST_CASE("M/D/c: waiting is Cosmetatos' share of that of M/M/c") {
  const int c = 4;
  const double load = 0.8;
  const ServiceResult r =
      simulate_service(replicas(one_replica(320, 10ms), c, Routing::shared_queue), 4);
  const double exponential = erlang_c(c, c * load) / (400 - 320);
  const double share =
      0.5 * (1 + (1 - load) * (c - 1) * (std::sqrt(4 + 5.0 * c) - 2) / (16 * load * c));
  CHECK(r.latency.mean().count() - 0.010 == Approx(share * exponential).epsilon(0.05));
}

TEST_CASE("requests thrown at c replicas at random see c queues of M/D/1") {
  // Thinning a Poisson process gives Poisson processes [Kleinrock 1975, Sec. 2.4].
  const ServiceResult r = simulate_service(replicas(one_replica(320, 10ms), 4, Routing::random), 5);
  const double wait = 0.8 * 0.010 / (2 * 0.2);
  CHECK(r.latency.mean().count() - 0.010 == Approx(wait).epsilon(0.05));
}

TEST_CASE("knowing the queues helps: shared <= least_requests <= random") {
  const auto mean = [](Routing routing) {
    return simulate_service(replicas(one_replica(320, 10ms), 4, routing), 6).latency.mean();
  };
  CHECK(mean(Routing::shared_queue) < mean(Routing::least_requests));
  CHECK(mean(Routing::least_requests) < mean(Routing::random));
  CHECK(mean(Routing::round_robin) < mean(Routing::random));
}

TEST_CASE("a server of whole batches: everything that waits is served at once in D") {
  // Arrivals in one pass are answered by the next. A pass is followed by an idle time of mean
  // 1/lambda where nothing came in it, with probability exp(-lambda D) (renewal reward):
  //   busy = D / (D + exp(-lambda D) / lambda)
  // and, since Poisson arrivals see time averages, a request that comes in a pass waits D/2 in the
  // mean: E[T] = D + busy D / 2.
  const double rate = 150, d = 0.010;
  ServiceSetting s = one_replica(rate, 10ms);
  s.batch_times.assign(1000, 10ms);
  const ServiceResult r = simulate_service(s, 7);
  const double busy = d / (d + std::exp(-rate * d) / rate);
  CHECK(r.utilization() == Approx(busy).epsilon(0.01));
  CHECK(r.latency.mean().count() == Approx(d + busy * d / 2).epsilon(0.01));
  CHECK(r.batch_mean() == Approx(rate * d / busy).epsilon(0.01));
}

TEST_CASE("an overloaded server answers full batches for ever and refuses the rest") {
  ServiceSetting s = one_replica(2000, 10ms);
  s.batch_times.assign(8, 10ms);
  s.queue_limit = 100;
  const ServiceResult r = simulate_service(s, 8);
  CHECK(double(r.served) / s.period.count() == Approx(800).epsilon(0.01));
  CHECK(double(r.refused) / double(r.arrived) == Approx(0.6).epsilon(0.01));
  CHECK(r.utilization() == Approx(1).epsilon(0.001));
  CHECK(r.served + r.refused + r.waiting_end == r.arrived + r.waiting_begin);
}

TEST_CASE("a batch waits for others, and no longer than it was told") {
  // One request each 10 ms, 25 ms of patience: three share a pass and wait 25, 15 and 5 ms.
  ServiceSetting s = one_replica(100, 1ms);
  s.arrivals = Arrivals::regular;
  s.batch_times.assign(16, 1ms);
  s.batch_wait = 25ms;
  s.period = 300s;
  s.warm_up = 30s;
  const ServiceResult r = simulate_service(s, 9);
  CHECK(r.batch_mean() == Approx(3).epsilon(0.001));
  CHECK(r.latency.mean().count() == Approx(0.016).epsilon(0.001));
  CHECK(r.latency.largest().count() == Approx(0.026).epsilon(0.001));
}

TEST_CASE("a batch that is full does not wait") {
  ServiceSetting s = one_replica(100, 1ms);
  s.arrivals = Arrivals::regular;
  s.batch_times.assign(2, 1ms);
  s.batch_wait = 1h;
  s.period = 300s;
  const ServiceResult r = simulate_service(s, 10);  // the last one has nobody to share with
  CHECK(r.latency.quantile(0.99).count() == Approx(0.011).epsilon(0.01));
}

TEST_CASE("one seed, one life") {
  ServiceSetting s = replicas(one_replica(320, 10ms), 4, Routing::least_requests);
  s.period = 60s;
  CHECK(simulate_service(s, 11).latency.mean() == simulate_service(s, 11).latency.mean());
  CHECK(simulate_service(s, 11).latency.mean() != simulate_service(s, 12).latency.mean());
}

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

TEST_CASE("what is answered after the period does not count as answered in it") {
  ServiceSetting s = one_replica(200, 10ms);  // twice what it can do
  s.period = 100s;
  s.warm_up = 0s;
  const ServiceResult r = simulate_service(s, 17);
  CHECK(double(r.served) / 100 == Approx(100).epsilon(0.01));
  CHECK(r.waiting_begin == 0);
  CHECK(double(r.waiting_end) == Approx(double(r.arrived) / 2).epsilon(0.02));
  // Latencies are those of all that arrived.
  CHECK(r.latency.count() == r.arrived);
  CHECK(r.utilization() <= 1);
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

TEST_CASE("a shared queue costs the same with ten thousand replicas as with ten") {
  ServiceSetting s = replicas(one_replica(2000, 10ms), 10'000, Routing::shared_queue);
  s.batch_times.assign(8, 10ms);
  s.batch_wait = 3ms;
  s.period = 100s;
  s.warm_up = 0s;
  const ServiceResult r = simulate_service(s, 19);  // 200,000 requests; no walk over the replicas
  CHECK(r.refused == 0);
  CHECK(r.latency.largest().count() <= 0.013 + 1e-9);
}

TEST_CASE("evenly spaced requests that are rarer than the hours of a day still come") {
  ServiceSetting s = one_replica(1, 1ms);
  s.requests_per_second.assign(24, 1.0 / 10'800);  // one each three hours
  s.arrivals = Arrivals::regular;
  s.period = 24h;
  s.warm_up = 0s;
  CHECK(simulate_service(s, 20).arrived == 7);  // 3, 6, ... 21 h
  // Half of the gap in one hour, the other half in another.
  s.requests_per_second.assign(24, 0);
  s.requests_per_second[5] = 0.5 / 3600;
  s.requests_per_second[7] = 0.6 / 3600;
  s.period = 9h;
  CHECK(simulate_service(s, 20).arrived == 1);
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

TEST_CASE("latencies are counted to half a percent") {
  LatencyHistogram h;
  for (int k = 1; k <= 10'000; ++k) h.add(Seconds{k * 1e-4});
  CHECK(h.quantile(0.5).count() == Approx(0.5).epsilon(0.005));
  CHECK(h.quantile(0.99).count() == Approx(0.99).epsilon(0.005));
  CHECK(h.quantile(1.0).count() == Approx(1.0).epsilon(0.005));
  CHECK(h.mean().count() == Approx(0.50005).epsilon(1e-9));
  CHECK(LatencyHistogram().quantile(0.5).count() == 0);
}
