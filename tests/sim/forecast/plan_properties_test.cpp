#include <rapidcheck.h>

#include <array>
#include <catch2/catch.hpp>
#include <functional>

#include "sim/forecast/forecast.h"
#include "sim/forecast/pace.h"
#include "support/random_plans.h"
#include "support/scenario_text.h"
#include "support/shuffled_catalog.h"

// What holds for every plan, from the step to the bill.
using namespace reckon;
using namespace reckon::test;

namespace {

Forecast forecast_of_plan(const Plan& plan, int replications) {
  ForecastOptions options;
  options.replications = replications;
  options.threads = 1;
  options.assumption_effects = false;
  return make_forecast(plan, *make_fluid_network(), options);
}

/// A bandwidth of the plan, by name.
struct Knob {
  const char* name;
  std::function<void(Plan&, double)> widen;
};

void widen(Fact<BytesPerSecond>& bandwidth, double factor) {
  bandwidth.value = bandwidth.value * factor;
}

const std::vector<Knob>& knobs() {
  static const std::vector<Knob> kKnobs{
      {"links between accelerators",
       [](Plan& p, double f) {
         for (PlannedPool& pool : p.pools)
           if (pool.accelerator) widen(*pool.accelerator->peer_bandwidth, f);
       }},
      {"NICs",
       [](Plan& p, double f) {
         for (PlannedPool& pool : p.pools) widen(pool.machine.network, f);
       }},
      {"memory of accelerators",
       [](Plan& p, double f) {
         for (PlannedPool& pool : p.pools)
           if (pool.accelerator) widen(pool.accelerator->memory_bandwidth, f);
       }},
      {"memory of hosts",
       [](Plan& p, double f) {
         for (PlannedPool& pool : p.pools) widen(pool.cpu_memory_bandwidth_per_vcpu, f);
       }},
      {"bus",
       [](Plan& p, double f) {
         for (PlannedPool& pool : p.pools)
           if (pool.accelerator) widen(pool.accelerator->host_bandwidth, f);
       }},
      {"reading", [](Plan& p, double f) { widen(p.jobs[0].checkpoint.storage.read_per_node, f); }},
      {"writing", [](Plan& p, double f) { widen(p.jobs[0].checkpoint.storage.write_per_node, f); }},
  };
  return kKnobs;
}

/// Sums in another order differ in the last digits.
bool no_longer(Seconds with_more, Seconds before) {
  return with_more.count() <= before.count() * (1 + 1e-9);
}

}  // namespace

TEST_CASE("more bandwidth anywhere never makes a step, an evaluation or a checkpoint slower") {
  const auto network = make_fluid_network();
  CHECK(rc::check([&] {
    const Plan plan = any_plan();
    const Knob& knob = knobs()[std::size_t(any_between(0, int(knobs().size()) - 1))];
    Plan wider = plan;
    knob.widen(wider, any_size(1.01, 20));
    RC_TAG(knob.name);
    const JobPace a = make_pace(plan, *network).pace, b = make_pace(wider, *network).pace;
    RC_ASSERT(no_longer(b.step_by_workers.back(), a.step_by_workers.back()));
    RC_ASSERT(no_longer(b.evaluation, a.evaluation));
    RC_ASSERT(no_longer(b.checkpoint_save, a.checkpoint_save));
    RC_ASSERT(no_longer(b.checkpoint_restore, a.checkpoint_restore));
  }));
}

TEST_CASE("more bandwidth anywhere never makes a run longer or dearer") {
  CHECK(rc::check([] {
    Plan plan = any_priced_plan();
    plan.failures.on = false;  // a faster run meets other failures
    const Knob& knob = knobs()[std::size_t(any_between(0, int(knobs().size()) - 1))];
    Plan wider = plan;
    knob.widen(wider, any_size(1.01, 20));
    const Forecast a = forecast_of_plan(plan, 2), b = forecast_of_plan(wider, 2);
    RC_PRE(a.feasible);
    // Each step is rounded to a nanosecond of the clock.
    const double rounding = double(plan.jobs[0].steps) * 1e-9;
    RC_ASSERT(b.time_seconds.mean <= a.time_seconds.mean * (1 + 1e-9) + rounding);
    RC_ASSERT(b.cost_usd->mean <= a.cost_usd->mean * (1 + 1e-6) + 1e-3);
  }));
}

TEST_CASE("the cost is linear in every price, and in all of them together") {
  CHECK(rc::check([] {
    const Plan plan = any_priced_plan();
    const int factor = any_between(2, 20);
    const auto times = [factor](HourlyRate& rate) { rate.nano_usd_per_hour *= factor; };
    const int replications = 3;
    const Forecast base = forecast_of_plan(plan, replications);
    RC_PRE(base.feasible);
    Plan all = plan;
    double sum_of_parts = 0;  // what each price alone adds, when it is multiplied
    const auto add = [&](auto part) {
      Plan one = plan;
      times(part(one));
      times(part(all));
      sum_of_parts += forecast_of_plan(one, replications).cost_usd->mean - base.cost_usd->mean;
    };
    for (std::size_t i = 0; i < plan.pools.size(); ++i) {
      add([i](Plan& p) -> HourlyRate& { return p.pools[i].price.machine; });
      add([i](Plan& p) -> HourlyRate& { return p.pools[i].price.accelerators; });
    }
    add([](Plan& p) -> HourlyRate& { return p.billing.management; });
    add([](Plan& p) -> HourlyRate& { return p.storage_per_gb; });
    const Forecast together = forecast_of_plan(all, replications);
    const double scale = together.cost_usd->mean;  // each line of a bill is rounded
    RC_ASSERT(std::abs(scale - factor * base.cost_usd->mean) <= 1e-6 * scale + 1e-6);
    RC_ASSERT(std::abs(base.cost_usd->mean + sum_of_parts - scale) <= 1e-6 * scale + 1e-6);
    RC_ASSERT(together.time_seconds.mean == base.time_seconds.mean);  // time has no price
  }));
}

TEST_CASE("one accelerator has nobody to talk to, whatever the strategy is called") {
  const auto network = make_fluid_network();
  CHECK(rc::check([&] {
    constexpr std::array kKinds{StrategyKind::single, StrategyKind::mirrored,
                                StrategyKind::multi_worker_mirrored};
    Plan plan = make_round_plan(any_model(), kKinds[std::size_t(any_between(0, 2))]);
    any_hardware(plan.pools[0]);
    any_input(plan.jobs[0]);
    const StepEstimate step = estimate_step(plan, plan.jobs[0], *network);
    RC_ASSERT(step.communication == Seconds{});
    // What is left when equal times are taken from each other, far below a nanosecond.
    RC_ASSERT(step.exposed_communication.count() < 1e-15);
    RC_ASSERT(step.sent_per_worker == Bytes{});
    RC_ASSERT(step.bottleneck != Bottleneck::communication);
  }));
}

TEST_CASE("a catalog with its rows in another order gives the same forecasts to the last digit") {
  const std::filesystem::path shipped = RECKON_SOURCE_DIR "/catalogs";
  const ShuffledCatalog shuffled(shipped, 20261121);
  REQUIRE(shuffled.moved());
  const auto catalog = load_catalog(std::array{shuffled.directory()});
  REQUIRE(catalog.has_value());
  for (const char* name : {"gke-p100-autoscaling", "ai-platform-t4", "tpu-v2-8", "aws-p4d-spot",
                           "azure-nd-a100", "on-premises"}) {
    INFO(name);
    const auto file = read_scenario(std::filesystem::path(RECKON_SOURCE_DIR) / "scenarios" /
                                    (std::string(name) + ".yaml"));
    REQUIRE(file.has_value());
    const auto plan = make_plan(*file, *catalog), original = shipped_plan(name);
    if (!plan) FAIL(format(plan.error()));
    REQUIRE(original.has_value());
    CHECK(plan->catalog_digest == original->catalog_digest);
    CHECK(plan->warnings == original->warnings);
    ForecastOptions options;
    options.replications = 8;
    const Forecast a = make_forecast(*plan, *make_fluid_network(), options);
    const Forecast b = make_forecast(*original, *make_fluid_network(), options);
    CHECK(a.times_seconds == b.times_seconds);
    CHECK(a.costs_usd == b.costs_usd);
    REQUIRE(a.assumptions.size() == b.assumptions.size());
    for (std::size_t i = 0; i < a.assumptions.size(); ++i) {
      CHECK(a.assumptions[i].what == b.assumptions[i].what);
      CHECK(a.assumptions[i].time_effect_seconds == b.assumptions[i].time_effect_seconds);
    }
  }
}
