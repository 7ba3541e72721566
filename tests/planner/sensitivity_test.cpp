#include "planner/sensitivity.h"

#include <catch2/catch.hpp>

#include <algorithm>

#include "planner/explained.h"

// Thresholds at which the choice flips, each verified by asking the planner again on both sides of
// it, with the number changed where it comes from: in the catalog or in the scenario.
using namespace reckon;
using namespace reckon::test;
using planner::Lever;

namespace {

planner::LeverFlips flips_of(const planner::Answer& answer, Lever lever) {
  for (const planner::LeverFlips& l : answer.sensitivity->levers)
    if (l.lever == lever) return l;
  return {};
}

Catalog with_region_price(Catalog catalog, const std::string& region, double factor) {
  for (Offering& o : catalog.offerings) {
    if (o.region != region || o.covers == Offering::Covers::storage) continue;
    if (o.on_demand) o.on_demand->value = o.on_demand->value * factor;
    if (o.spot) o.spot->value = o.spot->value * factor;
  }
  return catalog;
}

/// The prices of us-central1's n1-standard-8 for us-west2 too, where the catalog has none.
Catalog with_machine_in_the_west() {
  Catalog catalog = shipped_catalog();
  std::vector<Offering> west;
  for (const Offering& o : catalog.offerings)
    if (o.region == "us-central1" && o.item == "n1-standard-8") west.push_back(o);
  for (Offering& o : west) {
    o.region = "us-west2";
    catalog.offerings.push_back(o);
  }
  return catalog;
}

Catalog with_network(Catalog catalog, double factor) {
  for (Machine& m : catalog.machines) {
    m.network.value = m.network.value * factor;
    m.network.low = m.network.low * factor;
    m.network.high = m.network.high * factor;
  }
  return catalog;
}

}  // namespace

TEST_CASE("the price at which another region is cheaper is found, and holds in the catalog") {
  SmallSpace s = one_machine();
  s.regions = {"us-central1", "us-west2"};
  const std::string text = small_text(s);
  const Catalog catalog = with_machine_in_the_west();
  const planner::Answer answer = explained(text, catalog);
  const std::string region = answer.plans.front().offer.region;
  const auto flip = flips_of(answer, Lever::price_here).up;
  REQUIRE(flip);
  REQUIRE(flip->rival);
  CHECK(flip->rival->offer.region != region);
  CHECK(flip->holds < flip->factor);
  CHECK(flip->factor / flip->holds < 1.0051);  // where bisection ends
  const auto again = [&](double factor) {
    return sensitivity_choice(explained(text, with_region_price(catalog, region, factor)));
  };
  CHECK(again(flip->holds) == sensitivity_choice(answer));
  CHECK(again(flip->factor) == planner::texts(flip->rival->result.changes));
}

TEST_CASE("a plan that lags behind in the race is a rival when prices move") {
  // A large space: most of it is ranked only, and what is raced to the end is of one machine.
  const std::string text =
      "name: large\n"
      "workload: {model: gpt2_small, dataset: openwebtext, train: {tokens: 10B}, precision: bf16,\n"
      "           batch_per_accelerator: 8, strategy: {kind: mirrored}}\n"
      "cluster: {provider: gcp, region: us-central1,\n"
      "          pools: [{name: workers, machine: a2-highgpu-8g, nodes: 1}]}\n"
      "plan:\n"
      "  vary: {provider: [gcp, aws], accelerator: [A100-SXM4-40, H100-SXM5-80, L4], nodes: 1..4,\n"
      "         pricing: [on_demand, spot], strategy: any, global_batch: 1..512}\n"
      "  deadline: 12h@95%\n"
      "  budget: 100 USD@95%\n"
      "forecast: {replications: 100, seed: 1}\n";
  const auto asked = [&](const Catalog& catalog) {
    const planner::Question question = question_of(text, catalog);
    const auto network = make_fluid_network();
    planner::PlannerOptions options;
    options.threads = 1;
    auto answer = planner::plan(question, catalog, *network, options);
    if (!answer) throw std::runtime_error(format(answer.error()));
    planner::explain_choice(question, catalog, *network, options, *answer);
    return std::move(*answer);
  };
  const planner::Answer answer = asked(shipped_catalog());
  const planner::RankedPlan& chosen = answer.plans.front();
  const auto flip = flips_of(answer, Lever::price_everywhere).up;
  REQUIRE(flip);
  REQUIRE(flip->rival);
  const auto dearer = [&](double factor) {
    Catalog catalog = shipped_catalog();
    for (Offering& o : catalog.offerings) {
      if (o.provider != chosen.hardware.provider || o.item != chosen.hardware.machine) continue;
      if (o.spot) o.spot->value = o.spot->value * factor;
    }
    return catalog;
  };
  REQUIRE(chosen.offer.pricing == CapacityType::spot);
  const planner::Answer before = asked(dearer(flip->holds)), beyond = asked(dearer(flip->factor));
  CHECK(planner::same_hardware(before.plans.front().hardware, chosen.hardware));
  CHECK_FALSE(planner::same_hardware(beyond.plans.front().hardware, chosen.hardware));
  CHECK(sensitivity_choice(beyond) == planner::texts(flip->rival->result.changes));
}

TEST_CASE("thresholds are the same whatever the number of threads") {
  SmallSpace s = one_machine();
  s.accelerators = {"T4", "V100-SXM2-16"};
  s.pricing = {"on_demand", "spot"};
  s.nodes_high = 2;
  const std::string text =
      small_text(s) + "disruptions: {preemption: !exponential {mean: 1h}, shortage: none}\n";
  const planner::Question question = question_of(text, shipped_catalog());
  const auto network = make_fluid_network();
  std::vector<std::vector<double>> found;
  for (const int threads : {1, 2, 5}) {
    planner::PlannerOptions options;
    options.threads = threads;
    options.exact_up_to = 1000;
    options.replications = 40;
    auto answer = planner::plan(question, shipped_catalog(), *network, options);
    REQUIRE(answer);
    planner::explain_choice(question, shipped_catalog(), *network, options, *answer);
    std::vector<double> factors;
    for (const planner::LeverFlips& l : answer->sensitivity->levers)
      for (const auto& flip : {l.up, l.down})
        for (const double x : {flip ? flip->factor : 0, flip ? flip->holds : 0,
                               flip && flip->rival ? flip->rival->result.score : 0})
          factors.push_back(x);
    found.push_back(std::move(factors));
  }
  CHECK(std::ranges::any_of(found.front(), [](double x) { return x > 0; }));
  CHECK(found[1] == found[0]);
  CHECK(found[2] == found[0]);
}

TEST_CASE("the rate of reclaims at which another plan is cheaper holds in the scenario") {
  SmallSpace s = one_machine();
  s.pricing = {"on_demand", "spot"};
  const auto text = [&](double hours) {
    return small_text(s) +
           fmt::format("disruptions: {{preemption: !exponential {{mean: {}h}}, shortage: none}}\n",
                       hours);
  };
  const double mean = 0.5;
  const planner::Answer answer = explained(text(mean));
  REQUIRE(answer.plans.front().offer.pricing == CapacityType::spot);
  const planner::LeverFlips flips = flips_of(answer, Lever::reclaims);
  REQUIRE(flips.up);
  CHECK_FALSE(flips.down);  // fewer reclaims never speak against spot
  CHECK(flips.up->factor > 1);
  REQUIRE(flips.up->rival);
  CHECK(sensitivity_choice(explained(text(mean / flips.up->holds))) == sensitivity_choice(answer));
  CHECK(sensitivity_choice(explained(text(mean / flips.up->factor))) ==
        planner::texts(flips.up->rival->result.changes));
}

TEST_CASE("the bandwidth between nodes at which another plan is faster holds in the catalog") {
  SmallSpace s = one_machine();
  s.nodes_high = 2;
  s.objective = "time";
  std::string text = small_text(s);
  // More weights, so that a step has something to send.
  const std::string was = "{linear: 10}";
  text.replace(text.find(was), was.size(), "{linear: 40000}, {linear: 10}");
  const planner::Answer answer = explained(text);
  REQUIRE(answer.plans.front().split.nodes == 2);
  const planner::LeverFlips flips = flips_of(answer, Lever::network);
  REQUIRE(flips.down);
  CHECK_FALSE(flips.up);
  CHECK(flips.down->factor < flips.down->holds);
  CHECK(sensitivity_choice(explained(text, with_network(shipped_catalog(), flips.down->holds))) ==
        sensitivity_choice(answer));
  REQUIRE(flips.down->rival);
  CHECK(sensitivity_choice(explained(text, with_network(shipped_catalog(), flips.down->factor))) ==
        planner::texts(flips.down->rival->result.changes));
}

TEST_CASE("a deadline that the choice misses when a number moves is named") {
  SmallSpace s = one_machine();
  s.pricing = {"spot"};
  const std::string law = "disruptions: {preemption: !exponential {mean: 1h}, shortage: none}\n";
  const double p90 =
      quantile(explained(small_text(s) + law).plans.front().result.forecast.times_seconds, 0.9);
  s.deadline = fmt::format("{:.1f}min@90%", p90 / 60 * 1.1);
  const planner::Answer answer = explained(small_text(s) + law);
  const auto up = flips_of(answer, Lever::reclaims).up;
  REQUIRE(up);
  CHECK(up->limit == "deadline");
}

TEST_CASE("one that misses a limit itself does not take the place of the choice") {
  SmallSpace s = one_machine();
  s.pricing = {"on_demand"};
  s.quota = 1;  // one accelerator
  const std::string law = "disruptions: {preemption: !exponential {mean: 0.5h}, shortage: none}\n";
  const planner::Answer alone = explained(small_text(s));
  const Forecast& bought = alone.plans.front().result.forecast;
  s.pricing = {"on_demand", "spot"};
  s.deadline = fmt::format("{:.3f}min", bought.time_seconds.mean / 60 * 1.02);
  s.budget = fmt::format("{:.3f} USD", bought.cost_usd->mean * 1.2);
  const planner::Answer answer = explained(small_text(s) + law);
  REQUIRE(answer.plans.front().offer.pricing == CapacityType::on_demand);
  // Spot is cheaper and late: with a dearer choice, which misses the budget, both miss a limit.
  REQUIRE(std::ranges::any_of(answer.rivals, [&](const planner::RankedPlan& r) {
    return !r.result.meets_all() && r.result.score < answer.plans.front().result.score;
  }));
  const auto up = flips_of(answer, Lever::price_here).up;
  REQUIRE(up);
  CHECK(up->limit == "budget");
  CHECK(up->factor > 1.2);  // a part of the cost is no price of nodes
  for (const planner::LeverFlips& l : answer.sensitivity->levers)
    for (const auto& flip : {l.up, l.down})
      if (flip && flip->rival) CHECK(flip->rival->result.meets_all());
}

TEST_CASE("a plan that is better beyond chance is no tie") {
  SmallSpace s = one_machine();
  s.machines = {"n1-standard-8", "n1-standard-16"};
  s.quota = 1;  // one T4 in either: as fast, and dearer
  const planner::Question question = question_of(small_text(s), shipped_catalog());
  const planner::Answer answer = explained(small_text(s));
  REQUIRE(answer.plans.size() > 1);
  REQUIRE(answer.certain_ranks + 1 >= answer.plans.size());
  const auto network = make_fluid_network();
  const planner::Sensitivity found =
      planner::sensitivity(question, shipped_catalog(), *network, answer.plans.back(),
                           {{answer.plans.front()}, {}}, {.replications = 8, .threads = 1});
  CHECK(found.ties.empty());
  REQUIRE(found.better.size() == 1);
  CHECK(planner::texts(found.better.front().result.changes) == sensitivity_choice(answer));
  CHECK(found.better.front().result.forecast.replications == answer.replications);
}

TEST_CASE("all prices doubled leave every threshold where it is") {
  SmallSpace s = one_machine();
  s.accelerators = {"T4", "V100-SXM2-16"};
  s.pricing = {"on_demand", "spot"};
  Catalog doubled = shipped_catalog();
  for (Offering& o : doubled.offerings) {
    if (o.on_demand) o.on_demand->value = o.on_demand->value * 2;
    if (o.spot) o.spot->value = o.spot->value * 2;
  }
  for (auto& [key, number] : doubled.operations.numbers)
    if (key.find("management_usd_per_hour") != std::string::npos) number.value *= 2;
  const planner::Answer once = explained(small_text(s));
  const planner::Answer twice = explained(small_text(s), doubled);
  REQUIRE(once.sensitivity->levers.size() == twice.sensitivity->levers.size());
  REQUIRE_FALSE(once.sensitivity->levers.empty());
  for (std::size_t l = 0; l < once.sensitivity->levers.size(); ++l)
    for (const auto side : {&planner::LeverFlips::up, &planner::LeverFlips::down}) {
      const auto& a = once.sensitivity->levers[l].*side;
      const auto& b = twice.sensitivity->levers[l].*side;
      REQUIRE(a.has_value() == b.has_value());
      if (a) CHECK(a->factor == Approx(b->factor).epsilon(0.006));
    }
}
