#include <catch2/catch.hpp>

#include <cmath>

#include "lives.h"
#include "sim/cluster/disruptions.h"

using namespace reckon;
using namespace reckon::test;
using namespace std::chrono_literals;

namespace {
// About the fit of [Kadupitiya et al. 2020] for n1-highcpu-16: A = 0.47, tau1 = 1 h, tau2 = 0.8 h,
// b = 24 h.
BathtubReclaim bathtub() {
  return {.a = 0.47, .tau1 = 1h, .tau2 = 0.8 * 1h, .b = 24h, .limit = 24h};
}

double mean_of_draws(const ReclaimLaw& law, int n, double& standard_error) {
  double sum = 0, squares = 0;
  for (int k = 0; k < n; ++k) {
    RandomStream stream(1, std::uint32_t(k), kReclaim, 0);
    const double x = to_seconds(law.draw(stream)).count();
    sum += x;
    squares += x * x;
  }
  const double mean = sum / n;
  standard_error = std::sqrt((squares / n - mean * mean) / n);
  return mean;
}
}  // namespace

TEST_CASE("reclaim ages follow their law by inverse transform") {
  // Half of all nodes are gone after ln 2 means; Weibull with shape 2: after scale sqrt(ln 2).
  CHECK(ReclaimLaw{ExponentialReclaim{8h}}.quantile(0.5).count() == Approx(8 * 3600 * std::log(2)));
  CHECK(ReclaimLaw{WeibullReclaim{2, 8h}}.quantile(0.5).count() ==
        Approx(8 * 3600 * std::sqrt(std::log(2))));
  CHECK(ReclaimLaw{WeibullReclaim{1, 8h}}.mean().count() == Approx(8 * 3600));
}

TEST_CASE("the bathtub's quantile is the inverse of its distribution") {
  const ReclaimLaw law{bathtub()};
  const auto cdf = [](double hours) {  // A (1 - exp(-t/tau1) + exp((t-b)/tau2))
    return 0.47 * (1 - std::exp(-hours) + std::exp((hours - 24) / 0.8));
  };
  for (const double u : {0.01, 0.2, 0.4, 0.469, 0.48, 0.7, 0.9}) {
    CHECK(cdf(law.quantile(u).count() / 3600) == Approx(u).epsilon(1e-6));
  }
}

TEST_CASE("no node outlives the 24 h limit, and those that reach it go there") {
  const ReclaimLaw law{bathtub()};
  // F(24 h) = 0.47 (1 - e^-24 + 1) = 0.94: 6 % of the nodes are taken by the limit.
  CHECK(law.quantile(0.9399999) < 24h);
  CHECK(law.quantile(0.9400001) == Seconds{24h});
  CHECK(law.quantile(0.999) == Seconds{24h});
}

TEST_CASE("drawn ages have the mean that the law says") {
  for (const ReclaimSpec& spec : {ReclaimSpec{ExponentialReclaim{8h}},
                                  ReclaimSpec{WeibullReclaim{0.7, 8h}}, ReclaimSpec{bathtub()}}) {
    const ReclaimLaw law{spec};
    double error = 0;
    const double mean = mean_of_draws(law, 20'000, error);
    CHECK(std::abs(mean - law.mean().count()) < 4 * error);  // 4 standard errors: once in 16,000
  }
}

TEST_CASE("a provisioning delay has its fact's median and range") {
  const DelayLaw law{Fact<Seconds>{200s, 150s, 300s, SourceId::user}};
  std::vector<double> draws;
  for (std::uint32_t k = 0; k < 20'000; ++k) {
    RandomStream stream(1, k, kProvisioning, 0);
    draws.push_back(to_seconds(law.draw(stream)).count());
  }
  std::sort(draws.begin(), draws.end());
  // A quantile's standard error is sqrt(p (1-p) / n) / density: below 1 s here. high / low = 2 =
  // e^(3.29 sigma): the median is the fact's, the 95th percentile is 200 sqrt(2).
  CHECK(draws[10'000] == Approx(200).margin(3));
  CHECK(draws[19'000] == Approx(200 * std::sqrt(2)).margin(6));
  CHECK(draws[1'000] == Approx(200 / std::sqrt(2)).margin(4));
}

TEST_CASE("a trace's times are replayed, and again from its end on") {
  const std::vector<Seconds> times = {100s, 250s};
  const auto next = [&](SimDuration after, Seconds length) {
    return next_in_trace(times, length, SimTime{after}).time_since_epoch();
  };
  CHECK(next(0s, 1000s) == 100s);
  CHECK(next(100s - 1ns, 1000s) == 100s);
  CHECK(next(100s, 1000s) == 250s);  // later, not at once again
  CHECK(next(250s, 1000s) == 1100s);
  CHECK(next(2100s, 1000s) == 2250s);
  CHECK(next(250s, 0s) == SimTime::max().time_since_epoch());
}

TEST_CASE("each node of a spot pool goes at the times of its own list") {
  Case c = round_case(3);
  reclaim_at(c, {{}, {900s}, {300s, 700s}});
  c.options.record = true;
  const LifeResult life = c.run();
  std::vector<std::pair<int, double>> gone;
  for (const Mark& mark : life.timeline.marks) {
    if (mark.name == "reclaimed")
      gone.emplace_back(mark.node, to_seconds(mark.at.time_since_epoch()).count());
  }
  CHECK(gone == std::vector<std::pair<int, double>>{{2, 300}, {2, 700}, {1, 900}});
}

TEST_CASE(
    "maintenance with notice loses no work, and the node comes back without being provisioned "
    "again") {
  Case c = round_case(1);
  c.plan.maintenance = {
      .on = true, .every = Fact<Seconds>{200s}, .notice = 60s, .duration = Fact<Seconds>{50s}};
  checkpoints(c, 5000s, 10s, 5s);
  c.options.record = true;
  const LifeResult life = c.run();
  const auto events = count(life, Interruption::maintenance);
  REQUIRE(events >= 2);
  CHECK(badput(life, Badput::lost_work) == 0);
  // Each costs a save of 10 s, 50 s away and 5 s to restore.
  CHECK(finish_seconds(life) == 100 + 1000 + double(events) * (10 + 50 + 5));
  int provisioned = 0;
  for (const Span& span : life.timeline.spans) {
    provisioned += span.name == "provisioning";
    if (span.name == "maintenance") CHECK(span.end - span.begin == 50s);
  }
  CHECK(provisioned == 1);
  // A machine that is stopped for maintenance is not charged.
  CHECK(to_seconds(life.node_time[0]).count() == finish_seconds(life) - double(events) * 50);
}

TEST_CASE("maintenance whose notice is a nanosecond too short for a save loses work") {
  Case c = round_case(1);
  c.plan.maintenance = {
      .on = true, .every = Fact<Seconds>{200s}, .notice = 10s, .duration = Fact<Seconds>{50s}};
  checkpoints(c, 5000s, 10s, 5s);
  CHECK(badput(c.run(), Badput::lost_work) == 0);
  c.plan.maintenance.notice = to_seconds(10s - 1ns);
  CHECK(badput(c.run(), Badput::lost_work) > 0);
}

TEST_CASE("machines without accelerators migrate live") {
  Case c = round_case(1, 0);
  c.plan.maintenance = {.on = true, .every = Fact<Seconds>{100s}, .duration = Fact<Seconds>{50s}};
  CHECK(finish_seconds(c.run()) == 100 + 1000);
}

TEST_CASE(
    "a failed node is repaired, loses the work since the checkpoint and pulls the image again") {
  Case c = round_case(1, 2);
  c.plan.failures = {
      .on = true, .mtbf_per_accelerator = Fact<Seconds>{800s}, .repair = Fact<Seconds>{70s}};
  c.plan.job_start.image_pull = Fact<Seconds>{30s};
  checkpoints(c, 100s, 10s, 5s);
  c.options.record = true;
  const LifeResult life = c.run();
  const auto failures = count(life, Interruption::failure);
  REQUIRE(failures >= 2);
  CHECK(badput(life, Badput::lost_work) > 0);
  CHECK(badput(life, Badput::waiting) == Approx(2 * 70 * double(failures)));
  std::int64_t starts = 0;
  for (const Span& span : life.timeline.spans) starts += span.name == "initialize";
  CHECK(starts == failures + 1);
  CHECK(goodput(life) == Approx(2 * 1000));
}

TEST_CASE("the image is pulled where it is not there yet") {
  Case c = round_case(1);
  c.plan.maintenance = {
      .on = true, .every = Fact<Seconds>{200s}, .notice = 60s, .duration = Fact<Seconds>{50s}};
  c.plan.job_start.image_pull = Fact<Seconds>{30s};
  checkpoints(c, 5000s, 10s);
  const LifeResult life = c.run();
  REQUIRE(count(life, Interruption::maintenance) >= 1);
  CHECK(badput(life, Badput::initialization) == 30);  // the machine's disk outlives the maintenance
}

namespace {
/// First provisioning delay of every node of pool `name`, by slot.
std::vector<SimDuration> first_delays(const Case& c, std::size_t pool) {
  std::vector<SimDuration> delays(std::size_t(c.plan.pools[pool].nodes_initial));
  for (const Span& span : c.run().timeline.spans) {
    if (span.name != "provisioning" || span.pool != int(pool)) continue;
    SimDuration& delay = delays[std::size_t(span.node)];
    if (delay.count() == 0) delay = span.end - span.begin;
  }
  return delays;
}
}  // namespace

TEST_CASE("neither another node nor another pool changes what a node draws") {
  Case c = round_case(3);
  c.plan.pools[0].provisioning = Fact<Seconds>{200s, 150s, 300s, SourceId::user};
  c.options.record = true;
  const auto delays = first_delays(c, 0);
  CHECK(delays[0] != delays[1]);

  Case more = c;
  more.plan.pools[0].nodes_initial = 5;
  auto longer = first_delays(more, 0);
  longer.resize(3);
  CHECK(longer == delays);

  Case front = c;
  front.plan.pools.insert(front.plan.pools.begin(),
                          round_pool("evaluators", Role::evaluator, 2, 1));
  CHECK(first_delays(front, 1) == delays);
}
