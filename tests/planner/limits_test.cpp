#include <catch2/catch.hpp>

#include <algorithm>
#include <array>

#include "planner/small_spaces.h"

// Limits on regions, and what may vary of checkpoints.
using namespace reckon;
using namespace reckon::test;

namespace {

const std::vector<Region>& shipped_regions() {
  static const std::vector<Region> kRegions = [] {
    const std::array layers{std::filesystem::path(RECKON_SOURCE_DIR "/catalogs")};
    return load_regions(layers).value();
  }();
  return kRegions;
}

constexpr const char* kAnywhere =
    "name: anywhere\n"
    "workload:\n"
    "  model: resnet50\n"
    "  dataset: imagenet\n"
    "  train: {epochs: 1}\n"
    "  batch_per_accelerator: 32\n"
    "  strategy: {kind: single}\n"
    "cluster:\n"
    "  provider: gcp\n"
    "  region: us-central1\n"
    "  pools: [{name: workers, machine: n1-standard-16, accelerator: {type: T4, count: 1}, nodes: "
    "1}]\n"
    "forecast: {replications: 12, seed: 3}\n"
    "plan:\n"
    "  vary: {provider: [gcp, aws], accelerator: [T4, V100-SXM2-16], nodes: 1..2, pricing: "
    "[on_demand]}\n";

Expected<planner::Question> question_with_regions(const std::string& text) {
  planner::Base base;
  base.text = text;
  base.name = "limits.yaml";
  base.regions = shipped_regions();
  return planner::make_question(std::move(base), shipped_catalog());
}

planner::Answer answer_with_regions(const std::string& text) {
  const auto question = question_with_regions(text);
  if (!question) throw std::runtime_error(format(question.error()));
  planner::PlannerOptions options;
  options.keep = 30;
  options.threads = 1;
  options.exact_up_to = 1000;
  const auto network = make_fluid_network();
  auto answer = planner::plan(*question, shipped_catalog(), *network, options);
  if (!answer) throw std::runtime_error(format(answer.error()));
  return std::move(*answer);
}

}  // namespace

TEST_CASE("every region that offers an accelerator is under some law") {
  for (const Location& location : shipped_catalog().locations) {
    if (location.region.empty() || location.provider == Provider{"selectel"}) continue;
    INFO(to_text(location.provider) << " " << location.region);
    const Region* region = find_region(shipped_regions(), location.provider, location.region);
    REQUIRE(region != nullptr);
    CHECK_FALSE(region->jurisdictions.empty());
  }
}

TEST_CASE("where data must reside, and how clean the power must be, no plan ignores") {
  // By time: of most European regions the catalog knows no price.
  const std::string text = std::string(kAnywhere) + "  objective: time\n";
  const planner::Answer free = answer_with_regions(text);
  const planner::Answer europe = answer_with_regions(text + "  residency: [EU]\n");
  const planner::Answer clean =
      answer_with_regions(text + "  residency: [EU]\n  carbon_free: 80%\n");
  REQUIRE_FALSE(free.plans.empty());
  REQUIRE_FALSE(europe.plans.empty());
  REQUIRE_FALSE(clean.plans.empty());
  const auto regions = [](const planner::Answer& answer) {
    std::vector<const Region*> out;
    for (const planner::RankedPlan& p : answer.plans)
      out.push_back(find_region(shipped_regions(), p.hardware.provider, p.offer.region));
    return out;
  };
  for (const Region* region : regions(europe))
    CHECK(std::ranges::count(region->jurisdictions, "EU") == 1);
  for (const Region* region : regions(clean)) {
    CHECK(region->provider == Provider{"gcp"});  // AWS publishes no share by region
    CHECK(region->carbon_free.value() >= 0.8);
  }
  // Less freedom is never better.
  CHECK(free.plans.front().result.score <= europe.plans.front().result.score);
  CHECK(europe.plans.front().result.score <= clean.plans.front().result.score);
}

TEST_CASE(
    "limits that no region keeps: a name that is none is a mistake, a share too high an answer") {
  const auto wrong = question_with_regions(std::string(kAnywhere) + "  residency: [Europe]\n");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().front().what == "no region of the catalog is in 'Europe'");
  const planner::Answer none =
      answer_with_regions(std::string(kAnywhere) + "  residency: [SG]\n  carbon_free: 90%\n");
  CHECK(none.plans.empty());
  REQUIRE(none.infeasible);
  // No price is known in Singapore, nor where power is that clean: neither alone helps.
  CHECK(none.infeasible->reason == "only in regions that residency or carbon exclude");
  CHECK(none.infeasible->relaxations.empty());
  // By time no price is needed.
  const planner::Answer timed = answer_with_regions(
      std::string(kAnywhere) + "  objective: time\n  residency: [SG]\n  carbon_free: 90%\n");
  REQUIRE(timed.infeasible);
  const auto& ways = timed.infeasible->relaxations;
  const auto carbon =
      std::ranges::find(ways, planner::LimitKind::carbon, &planner::Relaxation::limit);
  REQUIRE(carbon != ways.end());
  CHECK(carbon->asked == 0.9);
  CHECK(carbon->plan.offer.region == "asia-southeast1");  // AWS publishes no share of its own
  CHECK(carbon->needed ==
        find_region(shipped_regions(), Provider{"gcp"}, "asia-southeast1")->carbon_free.value());
}

TEST_CASE("a free interval and storage of checkpoints give the best of all that are fixed") {
  const auto text_with = [](const std::string& vary, const std::string& checkpoint) {
    std::string text = kAnywhere;
    text.replace(text.find("provider: [gcp, aws]"), 20,
                 "machine: [n1-standard-8], region: [us-central1]" + vary);
    text.replace(text.find("[on_demand]"), 11, "[spot]");
    text.replace(text.find("train: {epochs: 1}"), 18, "train: {epochs: 20}");
    if (!checkpoint.empty())
      text.replace(text.find("  strategy:"), 0, "  checkpoint: " + checkpoint + "\n");
    return text;
  };
  double best = std::numeric_limits<double>::infinity();
  for (const char* interval : {"optimal", "4h", "30s"})
    for (const char* storage : {"gcs-standard", "pd-standard"})
      best = std::min(
          best, answer_with_regions(
                    text_with("", fmt::format("{{interval: {}, storage: {}}}", interval, storage)))
                    .plans.front()
                    .result.score);
  const planner::Answer free = answer_with_regions(
      text_with(", checkpoint_interval: [optimal, 4h, 30s], checkpoint_storage: [gcs-standard, "
                "pd-standard]",
                ""));
  REQUIRE_FALSE(free.plans.empty());
  REQUIRE(free.search.exact);
  CHECK(free.plans.front().result.score == best);
  CHECK(free.plans.front().hardware.save_interval.has_value());
  CHECK(free.plans.front().hardware.checkpoint_storage != "");
  CHECK_FALSE(question_with_regions(text_with(", checkpoint_storage: [floppy]", "")));
}

TEST_CASE("a plan over the limit on CO2 or energy, or of which nobody knows it, is refused") {
  planner::Question q;
  Forecast f;
  f.times_seconds = {1};
  f.time_seconds = {1, 1, 1, 1};
  f.costs_usd = {1};
  f.cost_usd = Quantiles{1, 1, 1, 1};
  CHECK(planner::judged(q, f).meets_all());
  q.co2_grams = 1000;
  CHECK_FALSE(planner::judged(q, f).meets_all());
  EnergyForecast e;
  e.joules = {3.6e6, 3e6, 3.5e6, 5e6};
  e.co2_grams = Quantiles{900, 700, 850, 1300};  // the mean counts
  f.energy = e;
  CHECK(planner::judged(q, f).meets_all());
  q.energy_joules = 3.5e6;
  CHECK_FALSE(planner::judged(q, f).meets_all());
  q.energy_joules = 4e6;
  CHECK(planner::judged(q, f).meets_all());
  q.co2_grams = 800;
  CHECK_FALSE(planner::judged(q, f).meets_all());
}
