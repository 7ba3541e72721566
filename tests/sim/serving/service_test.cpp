#include "sim/serving/service.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/serving/settings.h"

using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

// Closed forms of queueing theory: [Kleinrock 1975, "Queueing Systems", volume 1], chapter 3
// (M/M/1, M/M/c) and 5 (M/G/1); [Cosmetatos 1975, "Approximate explicit formulae for the average
// queueing time in the processes (M/D/r) and (D/M/r)", Canadian J. Operational Research 13(3)].
// Each run has about a million requests, so that its mean lies within some 2 % of the expected one
// at a utilisation of 0.8.

namespace {

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

TEST_CASE("latencies are counted to half a percent") {
  LatencyHistogram h;
  for (int k = 1; k <= 10'000; ++k) h.add(Seconds{k * 1e-4});
  CHECK(h.quantile(0.5).count() == Approx(0.5).epsilon(0.005));
  CHECK(h.quantile(0.99).count() == Approx(0.99).epsilon(0.005));
  CHECK(h.quantile(1.0).count() == Approx(1.0).epsilon(0.005));
  CHECK(h.mean().count() == Approx(0.50005).epsilon(1e-9));
  CHECK(LatencyHistogram().quantile(0.5).count() == 0);
}
