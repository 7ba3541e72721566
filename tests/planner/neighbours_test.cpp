#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "planner/planner.h"
#include "planner/small_spaces.h"
#include "sim/forecast/explain/explain.h"

// A plan that claims the optimum against every single change that a reader could try by hand, each
// forecast as `simulate` and `compare` do, and against what `explain` proposes.
using namespace reckon;
using namespace reckon::test;

namespace {

struct Choice {
  std::string machine, accelerator;
  int count = 1;
  std::string region, pricing;
  int nodes = 1;
};

Choice choice_of(const planner::RankedPlan& plan) {
  return {plan.hardware.machine,
          plan.hardware.accelerator,
          plan.hardware.per_node,
          plan.offer.region,
          std::string(to_text(plan.offer.pricing)),
          plan.split.nodes};
}

/// Those that differ from it in one thing, within the space.
std::vector<std::pair<std::string, Choice>> single_changes(const SmallSpace& s,
                                                           const Choice& best) {
  std::vector<std::pair<std::string, Choice>> out;
  const auto each = [&](const char* what, auto Choice::*member, const auto& values) {
    for (const auto& value : values) {
      Choice other = best;
      other.*member = value;
      if (other.*member != best.*member) out.emplace_back(what, other);
    }
  };
  each("machine", &Choice::machine, s.machines);
  each("accelerator", &Choice::accelerator, s.accelerators);
  each("count", &Choice::count, std::vector{1, 2, 4, 8});
  each("region", &Choice::region, s.regions);
  each("pricing", &Choice::pricing, s.pricing);
  std::vector<int> nodes;
  for (int n = s.nodes_low; n <= s.nodes_high; ++n) nodes.push_back(n);
  each("nodes", &Choice::nodes, nodes);
  return out;
}

/// nullopt: it is no plan, or the quota forbids it.
std::optional<Plan> plan_of(const SmallSpace& s, const Choice& c) {
  if (s.quota > 0 && c.region == s.regions.front() && c.accelerator == s.accelerators.front() &&
      c.nodes * c.count > s.quota)
    return std::nullopt;
  const char* kind = c.nodes > 1 ? "multi_worker_mirrored" : c.count > 1 ? "mirrored" : "single";
  const std::vector<std::string> overrides{
      fmt::format("cluster={{provider: gcp, region: {}, pools: [{{name: workers, machine: {}, "
                  "accelerator: {{type: {}, count: {}}}, nodes: {}, pricing: {}}}]}}",
                  c.region, c.machine, c.accelerator, c.count, c.nodes, c.pricing),
      fmt::format("workload.strategy={{kind: {}}}", kind)};
  const auto file = parse_scenario(small_text(s), "small.yaml", overrides);
  auto plan = file ? make_plan(*file, shipped_catalog()) : tl::unexpected(Diagnostics{});
  if (!plan) return std::nullopt;
  return std::move(*plan);
}

void check_neighbours(std::uint32_t first, std::uint32_t last) {
  const auto network = make_fluid_network();
  int claims = 0, tried = 0, proposed = 0;
  for (std::uint32_t which = first; which < last; ++which) {
    const SmallSpace s = small_space(which);
    const planner::Answer answer = answer_of(small_text(s), shipped_catalog(), 1);
    if (answer.plans.empty()) continue;
    const bool claims_it = answer.search.exact;
    REQUIRE(claims_it);  // spaces as small as these are searched exhaustively: no regret
    ++claims;
    const planner::Question question = question_of(small_text(s), shipped_catalog());
    const double best = answer.plans.front().result.score;
    const Choice choice = choice_of(answer.plans.front());
    const auto look_at = [&](const std::string& what, const Plan& plan) {
      ForecastOptions how;
      how.assumption_effects = false;
      how.threads = 1;
      const planner::Evaluated e = planner::judged(question, make_forecast(plan, *network, how));
      INFO("case " << which << ", change of " << what << "\n" << small_text(s));
      if (e.meets_all()) REQUIRE(e.score >= best);
      ++tried;
    };
    for (const auto& [what, other] : single_changes(s, choice))
      if (const auto plan = plan_of(s, other)) look_at(what, *plan);
    // What explain proposes of the space: numbers of workers.
    const auto plan = plan_of(s, choice);
    REQUIRE(plan);
    for (const reckon::Change& change : explain(*plan, *network).what_would_help) {
      if (change.plan_option != "--nodes") continue;
      const int workers = std::stoi(change.what);
      if (workers < s.nodes_low || workers > s.nodes_high) continue;
      Choice other = choice;
      other.nodes = workers;
      if (const auto changed = plan_of(s, other)) look_at(change.what, *changed), ++proposed;
    }
  }
  CHECK(claims > int(last - first) / 5);
  CHECK(tried > 3 * claims);
  CHECK(proposed > 0);
}

}  // namespace

TEST_CASE("no single change beats a plan that claims the optimum, on 40 generated scenarios") {
  check_neighbours(2000, 2040);
}
TEST_CASE("no single change beats a plan that claims the optimum, on 200 more", "[.long]") {
  check_neighbours(2040, 2240);
}

TEST_CASE("an answer says which space it searched, and what was held fixed") {
  SmallSpace s = small_space(3);
  s.machines = {"n1-standard-8", "n1-standard-16"};
  s.accelerators = {"T4", "V100-SXM2-16"};
  s.regions = {"us-central1", "us-west1"};
  s.pricing = {"on_demand", "spot"};
  s.nodes_low = 1, s.nodes_high = 2;
  const planner::Answer answer = answer_of(small_text(s), shipped_catalog(), 1);
  const std::set<std::string> searched(answer.searched.begin(), answer.searched.end());
  const std::set<std::string> held(answer.held.begin(), answer.held.end());
  for (const char* key : {"machine", "accelerator", "region", "pricing", "nodes"}) {
    CHECK(searched.contains(key));
    CHECK_FALSE(held.contains(key));
  }
  for (const char* key : {"zone", "strategy", "precision", "recompute", "layout", "global_batch",
                          "checkpoint_interval", "checkpoint_storage"}) {
    INFO(key);
    CHECK(held.contains(key));
    CHECK_FALSE(searched.contains(key));
  }
}
