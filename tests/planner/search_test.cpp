#include <catch2/catch.hpp>

#include <cmath>

#include "planner/planner.h"
#include "planner/small_spaces.h"
#include "support/shipped_evidence.h"

// What ranks candidates before anything is simulated, and what a race says of itself.
using namespace reckon;
using namespace reckon::test;

TEST_CASE("interruptions stretch a life as Daly's whole formula says") {
  planner::Interruptions by;
  CHECK(planner::stretch_of(by, 1e6) == 1);  // never interrupted
  by = {.every = 1e6, .interval = 1000, .save = 10, .restart = 100};
  // To first order 1 + 10 / 1000 + (1000 / 2 + 100) / 1e6 = 1.0106; the rest is of second order.
  CHECK(planner::stretch_of(by, 1e7) == Approx(1.0106).epsilon(2e-5));
  by.every = 1000;
  // (1000 / 1000) e^0.1 (e^1.01 - 1) = 1.10517 x 1.74560
  CHECK(planner::stretch_of(by, 1e7) == Approx(1.92919).epsilon(1e-4));
  // Without saves all of the work has to be done in one go: (1000 / 3000) e^0.1 (e^3 - 1).
  by.interval = 0;
  CHECK(planner::stretch_of(by, 3000) == Approx(1.0 / 3 * 1.10517 * 19.0855).epsilon(1e-4));
  by.every = 1;  // never gets there
  CHECK(std::isinf(planner::stretch_of(by, 1e6)));
}

TEST_CASE("replications give way to the effort, and the answer says so") {
  SmallSpace s = small_space(7);
  s.deadline = s.budget = "";
  s.objective = "cost";
  std::string text = small_text(s);
  const std::string written = "forecast: {replications: 12, seed: 3}\n";
  text.erase(text.find(written), written.size());  // nobody says how many: 1,000
  const planner::Question q = question_of(text, shipped_catalog());
  const auto network = make_fluid_network();
  planner::PlannerOptions how;
  how.threads = 1;
  how.effort = 1e5;
  const auto little = planner::plan(q, shipped_catalog(), *network, how);
  REQUIRE(little);
  CHECK(little->replications_asked == 1000);
  CHECK(little->replications < 500);
  CHECK(little->replications >= 40);
  for (const planner::RankedPlan& p : little->plans)
    CHECK(p.result.forecast.replications == little->replications);
  how.replications = 500;  // who says the number gets it
  const auto all = planner::plan(q, shipped_catalog(), *network, how);
  REQUIRE(all);
  CHECK(all->replications == 500);
  const auto asked = [&](const std::string& more) {
    const auto answer =
        planner::plan(question_of(text + more, shipped_catalog()), shipped_catalog(), *network, [] {
          planner::PlannerOptions options;
          options.threads = 1;
          options.effort = 1;
          return options;
        }());
    REQUIRE(answer);
    return answer->replications;
  };
  CHECK(asked("forecast: {replications: 60}\n") == 60);  // so does who writes it in the file
  CHECK(asked("forecast: {seed: 4}\n") == 40);
  CHECK(asked("  deadline: 900h@95%\n") == 200);  // ten beyond the quantile
  CHECK(asked("  deadline: 900h@80%\n") == 50);
}

TEST_CASE("what a race calls certain holds under other draws") {
  const auto network = make_fluid_network();
  int certain = 0, held = 0;
  for (std::uint32_t which = 3000; which < 3036; ++which) {
    SmallSpace s = small_space(which);
    s.deadline = s.budget = "";
    s.objective = "cost";
    std::string text = small_text(s);
    const planner::Question q = question_of(text, shipped_catalog());
    planner::PlannerOptions how;
    how.threads = 1;
    how.exact_up_to = 0;
    how.replications = 60;
    const auto answer = planner::plan(q, shipped_catalog(), *network, how);
    REQUIRE(answer);
    const std::size_t last = std::min(answer->certain_ranks + 1, answer->plans.size());
    std::vector<double> again;
    for (std::size_t k = 0; k < last; ++k) {
      const auto file =
          parse_scenario(text, "small.yaml", planner::texts(answer->plans[k].result.changes));
      REQUIRE(file);
      ForecastOptions more;
      more.replications = 400;
      more.seed = 77;
      more.threads = 1;
      more.assumption_effects = false;
      again.push_back(planner::score(
          q.objective, make_forecast(make_plan(*file, shipped_catalog()).value(), *network, more)));
    }
    for (std::size_t k = 0; k + 1 < again.size(); ++k) {
      ++certain;
      held += again[k] <= again[k + 1] ? 1 : 0;
    }
  }
  REQUIRE(certain >= 10);
  // Certain at 95 %, each pair by itself.
  CHECK(held >= int(std::floor(0.95 * certain)));
}

TEST_CASE("pruning by bounds changes no answer") {
  for (std::uint32_t which = 4000; which < 4010; ++which) {
    planner::Question q = question_of(small_text(small_space(which)), shipped_catalog());
    if (which % 2 == 1) q.base.evidence = &shipped_evidence();
    const auto network = make_fluid_network();
    planner::PlannerOptions how;
    how.threads = 1;
    how.exact_up_to = 1000;
    how.keep = 1;
    const auto with = planner::plan(q, shipped_catalog(), *network, how);
    how.prune = false;
    const auto without = planner::plan(q, shipped_catalog(), *network, how);
    REQUIRE(with);
    REQUIRE(without);
    INFO("case " << which);
    REQUIRE(with->plans.size() == without->plans.size());
    if (!with->plans.empty())
      CHECK(with->plans.front().result.score == without->plans.front().result.score);
    CHECK(without->lives >= with->lives);
    CHECK(without->search.proven_worse == 0);
  }
}

namespace {

/// ResNet-50 on nodes of one to 64 with T4s: those with few vCPUs wait for their input.
std::string fed_by_few_vcpus(std::string_view limits) {
  return fmt::format(
      "name: fed\n"
      "workload: {{model: resnet50, dataset: imagenet, train: {{epochs: 90}}, "
      "batch_per_accelerator: 1, strategy: {{kind: single}}}}\n"
      "cluster: {{provider: gcp, region: us-central1, pools: [{{name: workers, machine: "
      "n1-standard-8, accelerator: {{type: T4, count: 1}}, nodes: 1}}]}}\n"
      "plan:\n"
      "  vary: {{provider: [gcp], machine: [n1-highcpu-2, n1-highcpu-16], nodes: "
      "1..64, pricing: [on_demand, spot], strategy: any, global_batch: 1..8192}}\n"
      "  objective: cost\n"
      "{}",
      limits);
}

}  // namespace

TEST_CASE("the quick look times a step as the forecast does, whatever waits for input") {
  // Splits that cut the model and such that do not.
  std::string text = fed_by_few_vcpus("");
  const std::string any = "strategy: any";
  text.replace(text.find(any), any.size(), "strategy: [single, sharded]");
  planner::Question q = question_of(text, shipped_catalog());
  const bool with_evidence = GENERATE(false, true);
  if (with_evidence) q.base.evidence = &shipped_evidence();
  const auto network = make_default_network();
  planner::PlannerOptions how;
  how.threads = 1;
  how.keep = 1000;
  how.replications = 20;
  const auto answer = planner::plan(q, shipped_catalog(), *network, how);
  REQUIRE(answer);
  int cut = 0, fed_slowly = 0;
  for (const planner::RankedPlan& p : answer->plans) {
    const StepEstimate& step = p.result.forecast.step;
    INFO(p.result.changes.size() << " changes, " << p.split.nodes << " nodes");
    CHECK(p.split.step_seconds == Approx(step.step.count()).epsilon(1e-9));
    cut += p.split.kind == StrategyKind::sharded ? 1 : 0;
    fed_slowly += step.exposed_input.count() > 0 ? 1 : 0;
    CHECK((p.split.residual_half_width > 0) == with_evidence);
  }
  CHECK(cut > 0);
  INFO(fed_slowly);
}

TEST_CASE("under limits that hardly anything meets, what keeps farthest from them is found") {
  const auto network = make_fluid_network();
  const auto planned = [&](std::string_view limits) {
    planner::PlannerOptions how;
    how.threads = 1;
    how.replications = 40;
    how.exact_up_to = 0;
    auto answer = planner::plan(question_of(fed_by_few_vcpus(limits), shipped_catalog()),
                                shipped_catalog(), *network, how);
    REQUIRE(answer);
    return std::move(*answer);
  };
  // The cheapest within two days, then a budget a tenth above what it needs at 90 %.
  const planner::Answer free = planned("  deadline: 48h@95%\n");
  REQUIRE_FALSE(free.plans.empty());
  const double needed = quantile(free.plans.front().result.forecast.costs_usd, 0.9);
  const planner::Answer tight =
      planned(fmt::format("  deadline: 48h@95%\n  budget: {:.2f} USD@90%\n", 1.1 * needed));
  REQUIRE_FALSE(tight.plans.empty());
  CHECK(tight.plans.front().result.score <= 1.02 * free.plans.front().result.score);
}
