#include "sim/forecast/forecast.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "sim/forecast/effects.h"
#include "sim/forecast/pace.h"
#include "support/plans.h"

using namespace reckon;
using namespace std::chrono_literals;

namespace {

/// Two workers on two nodes, nothing uncertain.
Plan certain_plan() {
  return test::make_round_plan(test::small_mlp(), StrategyKind::multi_worker_mirrored, 2);
}

/// Spot nodes that are reclaimed every 20 minutes in the mean, and numbers that nobody knows well.
Plan uncertain_plan() {
  Plan plan = certain_plan();
  PlannedPool& pool = plan.pools.front();
  pool.pricing = CapacityType::spot;
  pool.provisioning = Fact<Seconds>(100s, 50s, 300s, SourceId::user);
  pool.efficiency.matmul = Fact<double>(0.5, 0.4, 0.6, SourceId::user);
  plan.reclaim.law = ExponentialReclaim{20min};
  plan.reclaim.notice = 30s;
  plan.jobs.front().checkpoint.mode = CheckpointSpec::Mode::optimal;
  plan.jobs.front().checkpoint.save_overhead = Fact<Seconds>(1s);
  plan.jobs.front().total_samples *= 20;
  plan.jobs.front().steps *= 20;
  return plan;
}

Forecast forecast_of(const Plan& plan, int replications = 40, int threads = 2,
                     std::uint64_t seed = 1) {
  const auto network = make_fluid_network();
  ForecastOptions options;
  options.replications = replications;
  options.threads = threads;
  options.seed = seed;
  return make_forecast(plan, *network, options);
}

void check_same(const Quantiles& a, const Quantiles& b) {
  CHECK((a.mean == b.mean && a.p5 == b.p5 && a.p50 == b.p50 && a.p95 == b.p95));
}

void check_same(const Forecast& a, const Forecast& b) {
  check_same(a.time_seconds, b.time_seconds);
  REQUIRE((a.cost_usd && b.cost_usd));
  check_same(*a.cost_usd, *b.cost_usd);
  check_same(a.goodput, b.goodput);
  CHECK(a.badput == b.badput);
  CHECK(a.cost_breakdown_usd == b.cost_breakdown_usd);
  CHECK(a.node_hours == b.node_hours);
  CHECK(a.interruptions == b.interruptions);
  REQUIRE(a.assumptions.size() == b.assumptions.size());
  for (std::size_t k = 0; k < a.assumptions.size(); ++k) {
    CHECK(a.assumptions[k].what == b.assumptions[k].what);
    CHECK(a.assumptions[k].time_effect_seconds == b.assumptions[k].time_effect_seconds);
    CHECK(a.assumptions[k].cost_effect_usd == b.assumptions[k].cost_effect_usd);
  }
}

}  // namespace

TEST_CASE("where nothing is uncertain the forecast is one number: provisioning and steps") {
  const Plan plan = certain_plan();
  const Forecast f = forecast_of(plan, 5);
  CHECK(f.time_seconds.p5 == f.time_seconds.p95);
  const double training = f.step.step.count() * double(f.steps);
  CHECK(f.time_seconds.p50 >=
        training);  // nodes that exist from the start need no provisioning, others 100 s
  CHECK(f.time_seconds.p50 <= training + 100 + 20);
  CHECK(f.interruptions_total.p95 == 0);
  CHECK(f.unfinished_share == 0);
  CHECK(f.assumptions.empty());
}

TEST_CASE("one seed reproduces every digit on any number of threads") {
  const Plan plan = uncertain_plan();
  const Forecast one = forecast_of(plan, 150, 1);
  REQUIRE(one.time_seconds.p5 < one.time_seconds.p95);
  REQUIRE(one.interruptions_total.mean > 0);
  REQUIRE_FALSE(one.assumptions.empty());
  check_same(one, forecast_of(plan, 150, 2));
  check_same(one, forecast_of(plan, 150, 5));
}

TEST_CASE("another seed is another forecast") {
  CHECK(forecast_of(uncertain_plan(), 20, 2, 1).time_seconds.mean !=
        forecast_of(uncertain_plan(), 20, 2, 2).time_seconds.mean);
}

TEST_CASE("the parts of a forecast add up to the whole") {
  const Forecast f = forecast_of(uncertain_plan());
  const double cost =
      std::accumulate(f.cost_breakdown_usd.begin(), f.cost_breakdown_usd.end(), 0.0);
  CHECK(cost == Approx(f.cost_usd->mean).epsilon(1e-12));
  const double badput = std::accumulate(f.badput.begin(), f.badput.end(), 0.0);
  CHECK(f.goodput.mean + badput == Approx(1).epsilon(1e-12));
  const double interruptions = std::accumulate(f.interruptions.begin(), f.interruptions.end(), 0.0);
  CHECK(interruptions == Approx(f.interruptions_total.mean).epsilon(1e-12));
}

TEST_CASE("two candidates with the same seed see the same luck") {
  const Plan plan = uncertain_plan();
  Plan dearer = plan;
  for (PlannedPool& pool : dearer.pools) pool.price.machine.nano_usd_per_hour *= 3;
  const Forecast a = forecast_of(plan);
  const Forecast b = forecast_of(dearer);
  check_same(a.time_seconds, b.time_seconds);  // digit for digit, although the plans differ
  CHECK(b.cost_usd->mean > a.cost_usd->mean);
}

TEST_CASE("scaling all prices scales the cost by as much") {
  const Plan plan = uncertain_plan();
  const double base = forecast_of(plan, 10).cost_usd->mean;
  CHECK(rc::check("linear in prices", [&] {
    const int k = *rc::gen::inRange(2, 50);
    Plan scaled = plan;
    for (PlannedPool& pool : scaled.pools) {
      pool.price.machine.nano_usd_per_hour *= k;
      pool.price.accelerators.nano_usd_per_hour *= k;
    }
    scaled.billing.management.nano_usd_per_hour *= k;
    scaled.storage_per_gb.nano_usd_per_hour *= k;
    const double cost = forecast_of(scaled, 10).cost_usd->mean;
    RC_ASSERT(std::abs(cost - k * base) <=
              1e-6 * cost);  // each bill line is rounded to a nano-dollar
  }));
}

TEST_CASE("an unknown price makes the cost unknown and leaves node hours known") {
  Plan plan = uncertain_plan();
  plan.pools.front().price.known = false;
  const Forecast f = forecast_of(plan, 10);
  CHECK_FALSE(f.cost_usd);
  REQUIRE(f.node_hours.size() == 1);
  CHECK(f.node_hours[0].second > 0);
  for (const AssumptionEffect& a : f.assumptions) CHECK_FALSE(a.cost_effect_usd);
}

TEST_CASE("a plan that does not fit in memory is refused with the numbers and never simulated") {
  Plan plan = certain_plan();
  for (PlannedPool& pool : plan.pools) pool.accelerator->memory = Fact<Bytes>{1.0_MB};
  const Forecast f = forecast_of(plan);
  CHECK_FALSE(f.feasible);
  CHECK(f.memory.required() > f.memory.available);
  CHECK(f.time_seconds.mean == 0);
  CHECK_FALSE(f.cost_usd);
}

TEST_CASE("a better efficiency makes the run shorter and cheaper, and its effect says so") {
  const Forecast f = forecast_of(uncertain_plan());
  REQUIRE_FALSE(f.assumptions.empty());
  for (std::size_t k = 1; k < f.assumptions.size(); ++k) {
    INFO(f.assumptions[k].what);
    CHECK(f.assumptions[k].time_effect_seconds != 0);
  }
  bool found = false;
  for (const AssumptionEffect& a : f.assumptions) {
    if (a.value != "50.0 % (40.0 % .. 60.0 %)") continue;
    found = true;
    CHECK(a.time_effect_seconds < 0);
    REQUIRE(a.cost_effect_usd);
    CHECK(*a.cost_effect_usd < 0);
  }
  CHECK(found);
}

TEST_CASE("an assumption's effects by part add up to its effect on time and money") {
  const Forecast f = forecast_of(uncertain_plan());
  REQUIRE_FALSE(f.assumptions.empty());
  for (const AssumptionEffect& a : f.assumptions) {
    INFO(a.key);
    double seconds = 0, usd = 0;
    for (const auto& [row, effect] : a.effects_seconds)
      if (!row.starts_with("step.")) seconds += effect;
    for (const auto& [part, effect] : a.effects_usd) usd += effect;
    CHECK(seconds == Approx(a.time_effect_seconds).margin(1e-6 * f.time_seconds.mean));
    CHECK(usd == Approx(*a.cost_effect_usd).margin(1e-6 * f.cost_usd->mean));
    CHECK(a.low < a.high);
    if (a.key.ends_with("efficiency.matmul")) {
      CHECK(a.median == 0.5);
      CHECK(a.effects_seconds.at("step.compute") < 0);
      CHECK(a.effects_seconds.count("step.update") == 0);
    }
    if (a.key.ends_with("provisioning")) CHECK(a.effects_seconds.at("provisioning") > 0);
  }
}

TEST_CASE("an assumption that several jobs rest on has an effect on the step of each") {
  Plan plan = uncertain_plan();
  plan.jobs.front().name = "a";
  plan.jobs.push_back(plan.jobs.front());
  plan.jobs.back().name = "b";
  plan.jobs.back().strategy.layout.micro_batch *= 4;  // longer steps, fewer
  plan.jobs.back().global_batch *= 4;
  plan.jobs.back().steps /= 4;
  plan.jobs.push_back(plan.jobs.front());
  plan.jobs.back().name = "a-2";
  plan.jobs.back().same_as = 0;
  bool found = false;
  for (const AssumptionEffect& e : forecast_of(plan).assumptions) {
    CHECK(e.effects_seconds.count("step.compute") == 0);
    if (!e.key.ends_with("efficiency.matmul")) continue;
    found = true;
    CHECK(e.effects_seconds.at("jobs.b.step.compute") <
          1.5 * e.effects_seconds.at("jobs.a.step.compute"));
    CHECK(e.effects_seconds.at("jobs.a.step.compute") < 0);
    CHECK(e.effects_seconds.count("jobs.a-2.step.compute") == 0);
  }
  CHECK(found);
}

TEST_CASE("progress rises to one and is told by one thread at a time") {
  const auto network = make_fluid_network();
  ForecastOptions options;
  options.replications = 200;
  options.threads = 2;
  std::vector<double> told;
  options.progress = [&](double share) { told.push_back(share); };
  make_forecast(uncertain_plan(), *network, options);
  REQUIRE_FALSE(told.empty());
  CHECK(std::is_sorted(told.begin(), told.end()));
  CHECK(told.back() == Approx(1));
}

TEST_CASE("the recorded replication is the one of the forecast") {
  const Plan plan = uncertain_plan();
  const auto network = make_fluid_network();
  const LifeResult life = record_replication(plan, *network, 1, 0);
  CHECK_FALSE(life.timeline.spans.empty());
  CHECK(to_seconds(life.finish - SimTime{}).count() == forecast_of(plan, 1).time_seconds.mean);
}

TEST_CASE("the same unknown number of two pools is one assumption, drawn once") {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::parameter_server, 2, 1, 1);
  REQUIRE(plan.pools.size() == 2);
  for (PlannedPool& pool : plan.pools)
    pool.provisioning = Fact<Seconds>(100s, 50s, 300s, SourceId::user);
  auto assumptions = assumptions_of(plan);
  REQUIRE(assumptions.size() == 1);
  CHECK(assumptions[0].what == "provisioning of a node of pools workers, servers");
  assumptions[0].set(plan, 200);
  for (const PlannedPool& pool : plan.pools) CHECK(pool.provisioning.value == 200s);

  plan.pools[0].provisioning = Fact<Seconds>(100s, 50s, 400s, SourceId::user);  // another number
  plan.pools[1].provisioning = Fact<Seconds>(100s, 50s, 300s, SourceId::user);
  CHECK(assumptions_of(plan).size() == 2);
}

TEST_CASE("between solved numbers of asynchronous workers the pace is interpolated within 1 %") {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::parameter_server, 40, 1, 10);
  plan.jobs.front().strategy.servers->synchronous = false;
  plan.jobs.front().strategy.layout.micro_batch =
      8192;  // computing takes longer than the network does
  plan.jobs.front().global_batch = 8192 * 40;
  const auto network = make_fluid_network();
  const PacedJob paced = make_pace(plan, *network);
  const PlannedWorkload& job = plan.jobs.front();
  REQUIRE(paced.pace.step_by_workers.size() == 41);
  CHECK(paced.pace.step_by_workers.back() == paced.step.step);
  for (const int live : {1, 9, 16, 17, 18, 21, 24, 33, 38, 39}) {
    INFO(live << " live workers");
    const StepEstimate solved = estimate_step(plan, job, *network, live);
    const Seconds batch = Samples{double(job.global_batch)} / solved.samples_per_second;
    CHECK(paced.pace.step_by_workers[std::size_t(live)].count() ==
          Approx(batch.count()).epsilon(live <= 16 ? 1e-12 : 0.01));
  }
}

TEST_CASE("a step that may run out of memory is forecast, and said to be tight with its risk") {
  Plan plan = test::make_round_plan(test::small_mlp(), StrategyKind::single);
  plan.framework.reserve = Fact<Bytes>{0.5_GiB};
  plan.framework.memory_deviation = 0.1;
  const MemoryEstimate m = estimate_memory(plan, plan.jobs[0]);
  plan.pools[0].accelerator->memory.value = m.required();
  const Forecast tight = forecast_of(plan, 4);
  CHECK(tight.feasible);
  REQUIRE(tight.warnings.size() == 1);
  CHECK(tight.warnings[0].find("memory is tight: ") == 0);
  CHECK(tight.warnings[0].find("P(out of memory) 50 %") != std::string::npos);
  // ln 2 is seven deviations.
  plan.pools[0].accelerator->memory.value = m.reserve + 2 * m.tensors();
  CHECK(forecast_of(plan, 4).warnings.empty());
  // ln(1 / 0.8) is 2.2, above the 1.64 of 95 %.
  plan.pools[0].accelerator->memory.value = m.reserve + 0.8 * m.tensors();
  CHECK_FALSE(forecast_of(plan, 4).feasible);
}

TEST_CASE("a forecast is extrapolated where no measurement is behind the accelerator's speed") {
  Plan plan = certain_plan();
  plan.sources = {{"user", "", ""},
                  {"general-knowledge", "no document", ""},
                  {"fitted", "published runs", "2026-11-21"}};
  Fact<double>& matmul = plan.pools.front().efficiency.matmul;
  CHECK_FALSE(forecast_of(plan, 4).extrapolated);  // the user says so
  matmul.source = SourceId{1};
  CHECK(forecast_of(plan, 4).extrapolated);
  matmul.source = SourceId{2};  // an architecture's row, as all that are fitted
  CHECK_FALSE(forecast_of(plan, 4).extrapolated);
}

TEST_CASE("runs that are given up make the time unknown, and the forecast says how many and why") {
  Plan plan = uncertain_plan();
  plan.retry.backoff_limit = 0;
  plan.retry.counts_disruptions = true;  // the first reclaim ends the job
  const Forecast f = forecast_of(plan, 40);
  REQUIRE(f.unfinished_share > 0.05);
  CHECK(std::isinf(f.time_seconds.p95));
  CHECK_FALSE(f.unfinished_reason.empty());
  REQUIRE_FALSE(f.warnings.empty());
  CHECK(f.warnings.back().find("of 40 replications never finished") != std::string::npos);
  REQUIRE(f.cost_usd);
  CHECK(std::isfinite(f.cost_usd->p95));  // what was spent until then
}

TEST_CASE("each of several jobs is drawn from its own range of step times") {
  Plan plan = certain_plan();
  plan.jobs.push_back(plan.jobs.front());
  plan.jobs[1].name = "later";
  plan.jobs[0].residual = JobResidual{.step_spread = Fact<double>(1, 0.9, 1.2, SourceId::user)};
  plan.jobs[1].residual = JobResidual{.step_spread = Fact<double>(2, 1.5, 3, SourceId::user)};
  const Plan first = plan_of_job(plan, 0), second = plan_of_job(plan, 1);
  CHECK(first.pool_with(Role::worker)->efficiency.step_spread.value == 1);
  CHECK(second.pool_with(Role::worker)->efficiency.step_spread.value == 2);
  CHECK_FALSE(second.only_job().residual);
  plan.pools = first.pools;  // as set_residual() leaves them

  plan.jobs[1].submit = Seconds{1e6};  // when the first has ended, so that neither waits
  const Forecast together = forecast_of(plan, 64);
  const Forecast of_first = forecast_of(first, 64), of_second = forecast_of(second, 64);
  CHECK(together.jobs[1].step.step == of_second.step.step);
  CHECK(together.jobs[1].step.step.count() ==
        Approx(2 * together.jobs[0].step.step.count()).epsilon(1e-12));
  // The same score of the same assumption, on each job's own range.
  const auto spread = [](const Quantiles& q) { return q.p95 - q.p5; };
  CHECK(spread(together.jobs[0].time_seconds) == Approx(spread(of_first.time_seconds)));
  CHECK(spread(together.jobs[1].time_seconds) == Approx(spread(of_second.time_seconds)));
  CHECK(spread(of_second.time_seconds) > 3 * spread(of_first.time_seconds));
}
