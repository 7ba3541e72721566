#include <catch2/catch.hpp>

#include "sim/step/network/collective_cost.h"
#include "support/fabrics.h"
#include "support/strategy_plans.h"

// Closed forms and the solver, asked the same questions. SimGrid is asked in tests/sim/referee.

using namespace reckon;
using namespace reckon::test;

namespace {

StepEstimate estimated(const Plan& plan, const NetworkModel& network) {
  return estimate_step(plan, plan.jobs[0], network);
}

}  // namespace

TEST_CASE("closed forms and fluid agree to 1 % on every strategy without contention") {
  const auto fluid = make_fluid_network(), formulas = make_closed_form_network();
  for (const auto& [name, plan] : plans_of_all_strategies()) {
    CAPTURE(name);
    const StepEstimate f = estimated(plan, *fluid), c = estimated(plan, *formulas);
    CHECK(f.engine == "fluid");
    CHECK(c.engine == kClosedForms);
    REQUIRE(f.communication > Seconds{});
    CHECK(c.communication.count() == Approx(f.communication.count()).epsilon(0.01));
    CHECK(c.exposed_communication.count() ==
          Approx(f.exposed_communication.count()).epsilon(0.01).margin(1e-9));
    CHECK(c.step.count() == Approx(f.step.count()).epsilon(0.01));
    CHECK(c.sent_per_worker.v == Approx(f.sent_per_worker.v));
    CHECK(c.all_reduce == f.all_reduce);
  }
}

TEST_CASE("by default the solver times flows, and closed forms the collectives of layouts") {
  const auto fluid = make_fluid_network(), formulas = make_closed_form_network(),
             usual = make_default_network();
  for (const auto& [name, plan] : plans_of_all_strategies()) {
    CAPTURE(name);
    const bool served = plan.jobs[0].strategy.kind == StrategyKind::parameter_server;
    const StepEstimate e = estimated(plan, *usual),
                       same = estimated(plan, served ? *fluid : *formulas);
    CHECK(e.step == same.step);
    CHECK(e.engine == same.engine);
  }
}

TEST_CASE("nobody is named for a step that asks nothing of a network") {
  const Plan plan = make_round_plan(small_mlp(), StrategyKind::single);
  CHECK(estimated(plan, *make_fluid_network()).engine == kNoEngine);
  const Plan alone = strategy_plans::cut(StrategyKind::model_parallel, 1, 1, [](auto&) {});
  CHECK(estimated(alone, *make_closed_form_network()).engine == kNoEngine);
  CHECK(estimated(alone, *make_fluid_network()).engine == kNoEngine);
}

TEST_CASE("closed forms are below the solver where flows contend") {
  // Two servers whose NICs eight workers share, each at another point of its step.
  Plan plan = make_round_plan(small_mlp(), StrategyKind::parameter_server, 8, 1, 1);
  plan.jobs[0].strategy.servers->synchronous = false;
  const StepEstimate f = estimated(plan, *make_fluid_network()),
                     c = estimated(plan, *make_closed_form_network());
  CHECK(c.step < f.step);
}

TEST_CASE("collectives of groups on a slice take as long in both") {
  // Whole bytes for all chunks.
  const Bytes size{9.6e7 * 16};
  const auto fluid = make_fluid_network();
  const SimulatedCollectives flows(*fluid);
  const ClosedForms formulas;
  for (const int apart : {1, 2}) {
    for (const bool closed : {false, true}) {
      CAPTURE(apart, closed);
      Fabric f = torus_fabric(std::vector{4, 4}, closed, 10.0_GBps, Seconds{1e-6});
      for (TorusAxis& axis : f.axes) axis.apart = axis.chips > 1 ? apart : 1;
      const auto same = [](Seconds a, Seconds b) {
        CHECK(a.count() > 0);
        CHECK(a.count() == Approx(b.count()).epsilon(1e-7));
      };
      same(flows.all_gather(f, size), formulas.all_gather(f, size));
      same(flows.reduce_scatter(f, size), formulas.reduce_scatter(f, size));
      same(flows.all_to_all(f, size), formulas.all_to_all(f, size));
      same(flows.send(f, size), formulas.send(f, size));
      same(flows.ring_hop(f, size), formulas.ring_hop(f, size));
      same(flows.all_reduce(f, size, AllReduceKind::automatic).time,
           formulas.all_reduce(f, size, AllReduceKind::automatic).time);
    }
  }
}
