#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

#include "planner/planner.h"
#include "planner/small_spaces.h"

// The planner against a loop over everything, and what must not change its choice.
using namespace reckon;
using namespace reckon::test;

namespace {

std::optional<double> best_score(const planner::Answer& answer) {
  if (answer.plans.empty()) return std::nullopt;
  return answer.plans.front().result.score;
}

/// What the first plan is, without its price.
std::vector<std::string> choice(const planner::Answer& answer) {
  return answer.plans.empty() ? std::vector<std::string>{}
                              : planner::texts(answer.plans.front().result.changes);
}

Catalog with_prices_times(Catalog catalog, double factor) {
  for (Offering& o : catalog.offerings) {
    if (o.on_demand) o.on_demand->value = o.on_demand->value * factor;
    if (o.spot) o.spot->value = o.spot->value * factor;
  }
  for (auto& [key, number] : catalog.operations.numbers)
    if (key.find("management_usd_per_hour") != std::string::npos) number.value *= factor;
  return catalog;
}

}  // namespace

namespace {

/// Cases [first, last) equal the loop over everything.
void check_against_brute_force(std::uint32_t first, std::uint32_t last) {
  std::uint32_t none = 0, excluded = 0;
  for (std::uint32_t which = first; which < last; ++which) {
    const SmallSpace s = small_space(which);
    const planner::Answer answer = answer_of(small_text(s), shipped_catalog(), 1);
    const std::optional<double> best = brute_force(s, shipped_catalog());
    INFO("case " << which << "\n" << small_text(s));
    REQUIRE(answer.search.exact);
    REQUIRE(best_score(answer) == best);
    none += best ? 0 : 1;
    excluded += answer.search.proven_worse > 0 ? 1 : 0;
  }
  const std::uint32_t cases = last - first;
  CHECK(none > cases / 25);  // both answers occur,
  CHECK(none < cases * 4 / 5);
  CHECK(excluded > cases / 25);  // and bounds did exclude candidates
}

}  // namespace

TEST_CASE("the planner's best is the best of a loop over all candidates, on 100 small spaces") {
  check_against_brute_force(0, 100);
}
TEST_CASE("the planner's best is the best of a loop over all candidates, on 400 more", "[.long]") {
  check_against_brute_force(100, 500);
}

TEST_CASE("no bound lies above what it bounds") {
  int compared = 0;
  for (std::uint32_t which = 1000; which < 1040; ++which) {
    SmallSpace s = small_space(which);
    if (s.deadline.empty()) s.deadline = "3h@90%";
    if (s.budget.empty()) s.budget = "20 USD@50%";
    const planner::Question q = question_of(small_text(s), shipped_catalog());
    const auto network = make_fluid_network();
    const planner::Space space = planner::make_space(q, shipped_catalog(), *network, {3, 12, 1});
    planner::Evaluator evaluator({q, shipped_catalog(), *network, space, 3, 1});
    planner::Draws draws(3, 12);
    for (const planner::Evaluated& e : evaluator.evaluate(space.candidates, 12)) {
      INFO("case " << which << ", " << planner::to_text(e.changes.front()) << " "
                   << planner::to_text(e.changes.back()));
      REQUIRE(e.refused.empty());
      const planner::Site& site = space.site(e.candidate);
      draws.draw(site);
      const auto least = planner::least_factors(q, site, draws);
      const planner::Bounds b =
          planner::bounds_of(q, site, least, space.split(e.candidate), space.offer(e.candidate));
      CHECK(b.score <= e.score);
      CHECK(b.deadline <= e.late);
      CHECK(b.budget <= e.dear);
      if (!site.asynchronous) CHECK(b.score > 0);
      ++compared;
      // The step that ranked it is the step that was forecast.
      CHECK(space.split(e.candidate).step_seconds ==
            Approx(e.forecast.step.step.count()).epsilon(1e-12));
      CHECK(space.split(e.candidate).steps == e.forecast.steps);
    }
  }
  CHECK(compared > 100);
}

TEST_CASE("all prices doubled: the choice stays, and its cost doubles") {
  const SmallSpace s = every_place();
  const planner::Answer once = answer_of(small_text(s), shipped_catalog());
  const planner::Answer twice = answer_of(small_text(s), with_prices_times(shipped_catalog(), 2));
  REQUIRE_FALSE(once.plans.empty());
  CHECK(choice(once) == choice(twice));
  // To a nano-dollar an hour of each price that is rounded.
  CHECK(*best_score(twice) == Approx(2 * *best_score(once)).epsilon(1e-6));
}

TEST_CASE("the order of the catalog's rows changes nothing") {
  Catalog reversed = shipped_catalog();
  std::reverse(reversed.machines.begin(), reversed.machines.end());
  std::reverse(reversed.accelerators.begin(), reversed.accelerators.end());
  std::reverse(reversed.attachments.begin(), reversed.attachments.end());
  std::reverse(reversed.locations.begin(), reversed.locations.end());
  const SmallSpace s = every_place();
  const planner::Answer a = answer_of(small_text(s), shipped_catalog(), 20);
  const planner::Answer b = answer_of(small_text(s), reversed, 20);
  REQUIRE(a.plans.size() == b.plans.size());
  for (std::size_t k = 0; k < a.plans.size(); ++k)
    CHECK(planner::texts(a.plans[k].result.changes) == planner::texts(b.plans[k].result.changes));
  CHECK(a.rejected == b.rejected);
}

TEST_CASE("a machine that costs more and does the same changes no choice") {
  Catalog catalog = shipped_catalog();
  Machine twin = *catalog.find_machine(Provider{"gcp"}, "n1-standard-8");
  twin.name = "n1-twin-8";
  catalog.machines.push_back(twin);
  std::vector<Offering> dearer;
  for (Offering o : catalog.offerings) {
    if (o.item != "n1-standard-8") continue;
    o.item = twin.name;
    if (o.on_demand) o.on_demand->value = o.on_demand->value * 1.5;
    if (o.spot) o.spot->value = o.spot->value * 1.5;
    dearer.push_back(o);
  }
  REQUIRE_FALSE(dearer.empty());
  catalog.offerings.insert(catalog.offerings.end(), dearer.begin(), dearer.end());
  std::vector<AttachmentRule> rules;
  for (AttachmentRule r : catalog.attachments) {
    if (r.machine != "n1-standard-8") continue;
    r.machine = twin.name;
    rules.push_back(r);
  }
  catalog.attachments.insert(catalog.attachments.end(), rules.begin(), rules.end());
  SmallSpace s = every_place();
  s.machines.emplace_back("n1-standard-8");
  const planner::Answer without = answer_of(small_text(s), catalog);
  s.machines.back() = twin.name;
  const planner::Answer with = answer_of(small_text(s), catalog);
  CHECK(with.considered > without.considered);
  CHECK(choice(with) == choice(without));
}

TEST_CASE("a limit that gives way never makes the best plan worse") {
  for (const char* objective : {"cost", "time", "p95_cost"}) {
    SmallSpace s = every_place();
    s.objective = objective;
    double before = std::numeric_limits<double>::infinity();
    for (const int minutes : {25, 50, 200}) {
      s.deadline = fmt::format("{}min@90%", minutes);
      const double now = best_score(answer_of(small_text(s), shipped_catalog()))
                             .value_or(std::numeric_limits<double>::infinity());
      INFO(objective << " " << minutes);
      CHECK(now <= before);
      before = now;
    }
    CHECK(std::isfinite(before));
  }
}

TEST_CASE("prices that are no prices poison no ranking") {
  const SmallSpace s = every_place();
  const auto right = choice(answer_of(small_text(s), shipped_catalog()));
  REQUIRE_FALSE(right.empty());
  for (const double wrong : {std::numeric_limits<double>::quiet_NaN(), 0.0, -1.0,
                             std::numeric_limits<double>::infinity()}) {
    INFO(wrong);
    Catalog catalog = shipped_catalog();
    // Of the accelerator that is not chosen: it must not become the best by being worth nothing.
    const bool p100_chosen = right.front().find("P100") != std::string::npos;
    for (Offering& o : catalog.offerings)
      if (o.item == (p100_chosen ? "T4" : "P100-PCIE-16")) {
        if (o.on_demand) o.on_demand->value = UsdPerSecond{wrong};
        if (o.spot) o.spot->value = UsdPerSecond{wrong};
      }
    const planner::Answer answer = answer_of(small_text(s), catalog, 50);
    CHECK(choice(answer) == right);
    for (const planner::RankedPlan& p : answer.plans) CHECK(std::isfinite(p.result.score));
  }
}

TEST_CASE("where no plan fits, the relaxed limit makes one fit") {
  SmallSpace s = every_place();
  s.deadline = "2min@90%";
  const planner::Answer none = answer_of(small_text(s), shipped_catalog());
  REQUIRE(none.infeasible);
  REQUIRE_FALSE(none.infeasible->relaxations.empty());
  const planner::Relaxation& r = none.infeasible->relaxations.front();
  CHECK(r.limit == planner::LimitKind::deadline);
  CHECK(r.asked == 120);
  CHECK(r.needed > r.asked);
  s.deadline = fmt::format("{}s@90%", std::ceil(r.needed));
  CHECK_FALSE(answer_of(small_text(s), shipped_catalog()).plans.empty());
  s.deadline = fmt::format("{}s@90%", std::floor(r.needed * 0.99));
  CHECK(answer_of(small_text(s), shipped_catalog()).plans.empty());
}

TEST_CASE("the front has no plan that another is both faster and cheaper than") {
  const planner::Answer answer = answer_of(small_text(every_place()), shipped_catalog());
  REQUIRE(answer.front.size() >= 2);
  for (std::size_t k = 1; k < answer.front.size(); ++k) {
    const Forecast &a = answer.front[k - 1].result.forecast, &b = answer.front[k].result.forecast;
    CHECK(a.time_seconds.mean <= b.time_seconds.mean);
    CHECK(a.cost_usd->mean > b.cost_usd->mean);
  }
  // The cheapest of all is the front's last.
  CHECK(answer.front.back().result.score == *best_score(answer));
}

TEST_CASE("threads change no digit of the answer") {
  const auto network = make_fluid_network();
  const planner::Question q = question_of(small_text(every_place()), shipped_catalog());
  planner::PlannerOptions one, four;
  one.threads = 1;
  four.threads = 4;
  const auto a = planner::plan(q, shipped_catalog(), *network, one);
  const auto b = planner::plan(q, shipped_catalog(), *network, four);
  REQUIRE(a);
  REQUIRE(b);
  REQUIRE(a->plans.size() == b->plans.size());
  for (std::size_t k = 0; k < a->plans.size(); ++k) {
    CHECK(planner::texts(a->plans[k].result.changes) == planner::texts(b->plans[k].result.changes));
    CHECK(a->plans[k].result.score == b->plans[k].result.score);
  }
  CHECK(a->considered == b->considered);
}
