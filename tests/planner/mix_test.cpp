#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "planner/plan_file.h"
#include "planner/search/bounds.h"
#include "planner/small_spaces.h"

// Gangs of which a part is spot, and fallbacks for spot nodes that cannot be had, as a freedom.
using namespace reckon;
using namespace reckon::test;

namespace {

struct MixedSpace {
  std::vector<std::string> accelerators, regions, pricing, bases, fallbacks;
  int nodes_low = 1, nodes_high = 3;
  std::string deadline, budget, objective;
  int quota = 0;
  bool shortage = true, own = false;
};

MixedSpace mixed_space(std::uint32_t which) {
  Dice dice(which);
  MixedSpace s;
  s.accelerators = dice.some<std::string>({"V100-SXM2-16", "T4"});
  s.regions = dice.some<std::string>({"us-central1", "us-west1"});
  s.pricing = dice.from(0, 1) == 1 ? std::vector<std::string>{"spot"}
                                   : std::vector<std::string>{"on_demand", "spot"};
  s.bases = dice.some<std::string>({"25% on_demand", "50% on_demand", "60% reserved"});
  s.fallbacks = dice.some<std::string>({"3min", "20min"});
  s.nodes_low = dice.from(1, 2);
  s.nodes_high = s.nodes_low + dice.from(0, 2);
  if (dice.from(0, 1) == 1) s.deadline = fmt::format("{}min@80%", dice.from(60, 300));
  if (dice.from(0, 2) == 2) s.budget = fmt::format("{} USD@80%", dice.from(2, 30));
  const std::vector<std::string> objectives{"cost", "time", "cost_time", "p95_cost", "p95_time"};
  s.objective = objectives[std::size_t(dice.from(0, 4))];
  if (dice.from(0, 3) == 3) s.quota = dice.from(1, 6);
  s.shortage = dice.from(0, 3) > 0;
  s.own = dice.from(0, 3) == 0;
  if (s.own) s.regions = {"us-central1"};
  if (s.own) s.accelerators = {"T4"};
  return s;
}

std::string mixed_text(const MixedSpace& s) {
  std::string text = fmt::format(
      "name: mixed\n"
      "workload:\n"
      "  model: {{layers: [{{input: 3x32x32}}, {{conv2d: 64, kernel: 3, padding: 1}}, "
      "{{global_average_pool: true}}, {{linear: 10}}, {{softmax_cross_entropy: true}}]}}\n"
      "  dataset: {{samples: 40M, bytes_per_sample: 3kB}}\n"
      "  train: {{epochs: 1}}\n"
      "  batch_per_accelerator: 256\n"
      "  strategy: {{kind: single}}\n"
      "  checkpoint: {{interval: 10min}}\n"
      "cluster:\n"
      "  provider: gcp\n"
      "  region: us-central1\n"
      "  pools: [{{name: workers, machine: n1-standard-8, accelerator: {{type: T4, count: 1}}, "
      "nodes: 1}}]\n"
      "prices: {{reserved: [{{machine: n1-standard-8, count: 1, price: 0.2 USD/h}}]}}\n"
      "disruptions: {{preemption: !exponential {{mean: 3h}}{}}}\n"
      "forecast: {{replications: 12, seed: 3}}\n"
      "plan:\n"
      "  vary: {{{}pricing: [{}], base: [{}], fallback: [{}], nodes: {}..{}}}\n"
      "  objective: {}\n",
      s.shortage ? ", shortage: {every: 2h, lasts: 1h}" : ", shortage: none",
      s.own ? ""
            : fmt::format("machine: n1-standard-8, accelerator: [{}], region: [{}], ",
                          fmt::join(s.accelerators, ", "), fmt::join(s.regions, ", ")),
      fmt::join(s.pricing, ", "), fmt::join(s.bases, ", "), fmt::join(s.fallbacks, ", "),
      s.nodes_low, s.nodes_high, s.objective);
  if (!s.deadline.empty()) text += fmt::format("  deadline: {}\n", s.deadline);
  if (!s.budget.empty()) text += fmt::format("  budget: {}\n", s.budget);
  if (s.quota > 0)
    text += fmt::format("  quota: {{gcp/{}/{}: {}}}\n", s.regions.front(), s.accelerators.front(),
                        s.quota);
  return text;
}

/// One way of buying so many nodes, as the pools of a scenario and the most nodes that they hold.
struct Bought {
  std::string pools;
  int most = 0;
};

/// Written apart from the planner: what the words of the question mean.
Bought bought(const std::string& node, int nodes, const std::string& pricing,
              const std::string& base, const std::string& fallback) {
  if (base.empty() && fallback.empty())
    return {fmt::format("{{name: workers, {}, nodes: {}, pricing: {}}}", node, nodes, pricing),
            nodes};
  int fixed = 0;
  if (!base.empty()) {
    const int percent = std::stoi(base.substr(0, 2));
    fixed = (percent * nodes + 99) / 100;
  }
  const int spot = nodes - fixed;
  if (spot == 0) return {};
  Bought out;
  out.most = fallback.empty() ? nodes : nodes + spot;
  std::string name = "workers";
  if (fixed > 0) {
    out.pools = fmt::format("{{name: workers, role: worker, {}, nodes: {}, pricing: {}}}, ", node,
                            fixed, base.substr(4));
    name = "workers-spot";
  }
  if (fallback.empty()) {
    out.pools +=
        fmt::format("{{name: {}, role: worker, {}, nodes: {}, pricing: spot}}", name, node, spot);
  } else {
    const std::string scaled =
        fmt::format("{}, nodes: {{initial: 0, min: 0, max: {}}}, autoscaling: true", node, spot);
    out.pools += fmt::format("{{name: {}, role: worker, {}, pricing: spot}}, ", name, scaled);
    out.pools += fmt::format(
        "{{name: {0}-fallback, role: worker, {1}, pricing: on_demand, fallback_for: {0}, after: "
        "{2}}}",
        name, scaled, fallback);
  }
  return out;
}

/// Least score of all combinations, each a scenario of its own; nullopt: none meets the limits.
std::optional<double> best_of_all(const MixedSpace& s, std::string& which) {
  const auto network = make_fluid_network();
  const planner::Question question = question_of(mixed_text(s), shipped_catalog());
  std::optional<double> best;
  const auto look_at = [&](const std::string& region, const std::string& accelerator, int count,
                           int nodes, const std::string& pricing, const std::string& base,
                           const std::string& fallback) {
    const Bought b =
        bought(fmt::format("machine: n1-standard-8, accelerator: {{type: {}, count: {}}}",
                           accelerator, count),
               nodes, pricing, base, fallback);
    if (b.most == 0) return;
    if (s.quota > 0 && region == s.regions.front() && accelerator == s.accelerators.front() &&
        b.most * count > s.quota)
      return;
    std::string kind = nodes > 1   ? fmt::format("multi_worker_mirrored, workers: {}", nodes)
                       : count > 1 ? "mirrored"
                                   : "single";
    const std::vector<std::string> overrides{
        fmt::format("cluster={{provider: gcp, region: {}, pools: [{}]}}", region, b.pools),
        fmt::format("workload.strategy={{kind: {}}}", kind)};
    const auto file = parse_scenario(mixed_text(s), "mixed.yaml", overrides);
    const auto plan = file ? make_plan(*file, shipped_catalog()) : tl::unexpected(Diagnostics{});
    if (!plan) return;
    ForecastOptions how;
    how.assumption_effects = false;
    how.threads = 1;
    const planner::Evaluated e = planner::judged(question, make_forecast(*plan, *network, how));
    if (!e.meets_all() || !std::isfinite(e.score) || (best && e.score >= *best)) return;
    best = e.score;
    which = overrides.front();
  };
  std::vector<std::string> bases = s.bases, fallbacks = s.fallbacks;
  bases.emplace_back();
  fallbacks.emplace_back();
  const std::vector<int> counts = s.own ? std::vector<int>{1} : std::vector<int>{1, 2, 4, 8};
  for (const std::string& region : s.regions)
    for (const std::string& accelerator : s.accelerators)
      for (const int count : counts)
        for (int nodes = s.nodes_low; nodes <= s.nodes_high; ++nodes)
          for (const std::string& pricing : s.pricing)
            for (const std::string& base : bases)
              for (const std::string& fallback : fallbacks) {
                const bool mixed = !base.empty() || !fallback.empty();
                if (mixed && pricing != "spot") continue;
                look_at(region, accelerator, count, nodes, pricing, base, fallback);
              }
  return best;
}

void check_against_all(std::uint32_t first, std::uint32_t last) {
  int none = 0, mixed = 0;
  for (std::uint32_t which = first; which < last; ++which) {
    const MixedSpace s = mixed_space(which);
    INFO("case " << which << "\n" << mixed_text(s));
    std::string which_is_best;
    const auto best = best_of_all(s, which_is_best);
    const planner::Answer answer = answer_of(mixed_text(s), shipped_catalog());
    REQUIRE(answer.plans.empty() == !best);
    none += best ? 0 : 1;
    if (!best) continue;
    INFO("best of all: " << which_is_best);
    INFO("the planner's: " << planner::to_text(answer.plans.front().result.changes.front()));
    CHECK(answer.plans.front().result.score == Approx(*best).epsilon(1e-12));
    const planner::Mix& mix = answer.plans.front().offer.mix;
    mixed += mix.share > 0 || mix.patience ? 1 : 0;
  }
  CHECK(none < int(last - first) / 2);
  CHECK(mixed > int(last - first) / 20);  // a mix is best at times
}

}  // namespace

TEST_CASE("with mixes free the planner's best is the best of a loop over all, on 30 small spaces") {
  check_against_all(7000, 7030);
}
TEST_CASE("with mixes free the best is the best of a loop over all, on 150 more", "[.long]") {
  check_against_all(7030, 7180);
}

TEST_CASE("no bound of a mix lies above what it bounds") {
  int mixed = 0;
  for (std::uint32_t which = 8000; which < 8015; ++which) {
    MixedSpace s = mixed_space(which);
    if (s.deadline.empty()) s.deadline = "3h@90%";
    if (s.budget.empty()) s.budget = "20 USD@50%";
    const planner::Question q = question_of(mixed_text(s), shipped_catalog());
    const auto network = make_fluid_network();
    const planner::Space space = planner::make_space(q, shipped_catalog(), *network, {3, 12, 1});
    planner::Evaluator evaluator({q, shipped_catalog(), *network, space, 3, 1});
    planner::Draws draws(3, 12);
    for (const planner::Evaluated& e : evaluator.evaluate(space.candidates, 12)) {
      INFO("case " << which << ", " << planner::to_text(e.changes.front()) << " "
                   << planner::to_text(e.changes.back()));
      REQUIRE(e.refused.empty());
      const planner::Site& site = space.site(e.candidate);
      const planner::Offer& offer = space.offer(e.candidate);
      draws.draw(site);
      const planner::Bounds b = planner::bounds_of(q, site, planner::least_factors(q, site, draws),
                                                   space.split(e.candidate), offer);
      CHECK(b.score <= e.score);
      CHECK(b.deadline <= e.late);
      CHECK(b.budget <= e.dear);
      CHECK(b.score > 0);
      CHECK(space.split(e.candidate).step_seconds ==
            Approx(e.forecast.step.step.count()).epsilon(1e-12));
      CHECK(space.split(e.candidate).steps == e.forecast.steps);
      mixed += offer.mix.share > 0 || offer.mix.patience ? 1 : 0;
    }
  }
  CHECK(mixed > 100);
}

TEST_CASE("between all spot and all on demand a deadline makes mixes the cheapest") {
  MixedSpace s;
  s.accelerators = {"T4"};
  s.regions = {"us-central1"};
  s.pricing = {"on_demand", "spot"};
  s.bases = {"50% on_demand"};
  s.fallbacks = {"10min"};
  s.nodes_low = s.nodes_high = 2;
  s.objective = "cost";
  std::string text = mixed_text(s);
  const auto change = [&](const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
  };
  change("replications: 12", "replications: 200");
  change("samples: 40M", "samples: 400M");
  change("accelerator: [T4]", "accelerator: [V100-SXM2-16]");
  change("prices: {reserved: [{machine: n1-standard-8, count: 1, price: 0.2 USD/h}]}\n", "");
  const auto best_with = [&](double seconds) {
    return answer_of(text + fmt::format("  deadline: {:.0f}s@95%\n", seconds), shipped_catalog());
  };
  const planner::Answer any = best_with(1e7);
  REQUIRE_FALSE(any.plans.empty());
  CHECK(any.plans.front().offer.pricing == CapacityType::spot);
  std::set<std::string> chosen;
  const double late = any.plans.front().result.late;
  for (const double share : {0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65, 0.6}) {
    const planner::Answer a = best_with(share * late);
    if (a.plans.empty()) break;
    const planner::RankedPlan& p = a.plans.front();
    chosen.insert(planner::bought_text(p.offer, p.split.nodes));
  }
  INFO(fmt::format("{}", fmt::join(chosen, "; ")));
  CHECK(std::ranges::any_of(chosen, [](const std::string& words) {
    return words.find("on_demand") != std::string::npos && words != "on_demand";
  }));
}

TEST_CASE("the plan file of a mix is its plan, digit for digit") {
  MixedSpace s;
  s.accelerators = {"T4"};
  s.regions = {"us-central1"};
  s.pricing = {"spot"};
  s.bases = {"50% on_demand", "30% reserved"};
  s.fallbacks = {"3min"};
  s.nodes_low = s.nodes_high = 3;
  s.objective = "cost";
  const std::string text = mixed_text(s);
  const planner::Answer answer = answer_of(text, shipped_catalog(), 40);
  const planner::Question question = question_of(text, shipped_catalog());
  std::set<std::string> seen;
  for (const planner::RankedPlan& p : answer.plans) {
    const auto resolved = planner::resolve(question, p, shipped_catalog());
    REQUIRE(resolved);
    const auto written = planner::plan_file(question, p, *resolved, "0.1.0", ".");
    REQUIRE(written);
    INFO(*written);
    const std::string words = planner::bought_text(p.offer, p.split.nodes);
    seen.insert(words);
    CHECK(written->find(words) != std::string::npos);
    const auto file = parse_scenario(*written, "plan.yaml");
    REQUIRE(file);
    const auto plan = make_plan(*file, shipped_catalog());
    REQUIRE(plan);
    const Forecast again = make_forecast(*plan, *make_fluid_network());
    CHECK(again.times_seconds == p.result.forecast.times_seconds);
    CHECK(again.costs_usd == p.result.forecast.costs_usd);
  }
  CHECK(seen == std::set<std::string>{
                    "spot", "3 spot, on_demand fallback after 3min", "2 on_demand + 1 spot",
                    "2 on_demand + 1 spot, on_demand fallback after 3min", "1 reserved + 2 spot",
                    "1 reserved + 2 spot, on_demand fallback after 3min"});
}

TEST_CASE("mixes that cannot be planned are refused by name") {
  const auto refused = [](const std::string& from, const std::string& to) {
    MixedSpace s = mixed_space(1);
    std::string text = mixed_text(s);
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    text.replace(at, from.size(), to);
    planner::Base base;
    base.text = text;
    base.name = "mixed.yaml";
    const auto question = planner::make_question(base, shipped_catalog());
    REQUIRE_FALSE(question);
    return question.error().front().what;
  };
  CHECK(refused("base: [", "base: [120% on_demand, ").find("is no share of the nodes") !=
        std::string::npos);
  CHECK(refused("base: [", "base: [20% spot, ").find("is no share of the nodes") !=
        std::string::npos);
  CHECK(refused("fallback: [", "fallback: [soon, ").find("fallback") != std::string::npos);
  CHECK(refused("provider: gcp\n", "provider: gcp\n  service: gce\n") ==
        "service gce does not autoscale node pools, so no pool can be the fallback of another");
}
