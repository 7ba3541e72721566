#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "planner/search/candidates.h"
#include "planner/search/evaluate.h"
#include "planner/small_spaces.h"

// Plans of training to an accuracy: no batch beyond the published runs, and the evaluations of the
// epochs that the plan's own batch needs.
using namespace reckon;
using namespace reckon::test;

namespace {

std::string text_with(const std::string& nodes, const std::string& vary) {
  return "name: target\n"
         "workload:\n"
         "  model: resnet50_v1_5\n"
         "  dataset: imagenet\n"
         "  train: {to_accuracy: 75.9%}\n"
         "  evaluation: {every_epochs: 4}\n"
         "  precision: fp16\n"
         "  batch_per_accelerator: 256\n"
         "  strategy: {kind: multi_worker_mirrored}\n"
         "cluster:\n"
         "  provider: gcp\n"
         "  region: us-central1\n"
         "  pools: [{name: workers, machine: a2-ultragpu-8g, nodes: 1}]\n"
         "forecast: {replications: 12, seed: 3}\n"
         "plan:\n"
         "  vary: {nodes: " +
         nodes + vary + "}\n  objective: time\n";
}

}  // namespace

namespace {

planner::Space space_of(const std::string& text) {
  const auto network = make_fluid_network();
  const planner::Question question = question_of(text, shipped_catalog());
  return planner::make_space(question, shipped_catalog(), *network, {.replications = 12});
}

Convergence law() { return shipped_catalog().convergence_of("resnet50_v1_5", "imagenet").at(0); }

constexpr const char* kBeyond = "more samples a step than any published run to the accuracy";

}  // namespace

TEST_CASE("plans whose steps are larger than any published run's are counted, not extrapolated") {
  // One node makes steps of 2,048 images.
  const std::int64_t most = law().largest_batch / 2048;
  const planner::Space space = space_of(text_with(fmt::format("{}..{}", most - 1, most + 3), ""));
  REQUIRE(space.rejected.contains(kBeyond));
  CHECK(space.rejected.at(kBeyond) == 3);
  REQUIRE(space.sites.size() == 1);
  CHECK(space.sites.front().splits.size() == 2);
}

TEST_CASE("a batch that is free stops at the largest of the published runs") {
  std::string text = text_with("64..64", ", global_batch: 1..65536");
  const auto replace = [&](std::string_view from, std::string_view to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("resnet50_v1_5", "rnnt");
  replace("imagenet", "librispeech");
  replace("75.9%", "94.2%");
  const planner::Space space = space_of(text);
  const std::int64_t most =
      shipped_catalog().convergence_of("rnnt", "librispeech").at(0).largest_batch;
  CHECK_FALSE(space.rejected.contains(kBeyond));
  REQUIRE(space.sites.size() == 1);
  REQUIRE_FALSE(space.sites.front().splits.empty());
  for (const planner::Split& split : space.sites.front().splits) {
    CHECK(split.layout.global_batch() <= most);
    CHECK(split.layout.global_batch() > most / 2);
  }
}

TEST_CASE("a candidate is as long, and evaluates as often, as the scenario that it stands for") {
  const auto network = make_fluid_network();
  const planner::Question question = question_of(text_with("1..16", ""), shipped_catalog());
  const planner::Space space =
      planner::make_space(question, shipped_catalog(), *network, {.replications = 12});
  REQUIRE(space.candidates.size() >= 16);
  for (const planner::Candidate& c : space.candidates) {
    const auto planned = planner::plan_of(question, shipped_catalog(), space, c);
    REQUIRE(planned);
    const PlannedWorkload& read = planned->jobs.front();
    CHECK(space.split(c).steps == read.steps);
    planner::HardwarePlan on(question, space.site(c).hardware, shipped_catalog());
    REQUIRE(on.make().empty());
    REQUIRE(on.take(space.split(c)).empty());
    CHECK(on.job().evaluations == read.evaluations);
    CHECK(on.job().total_samples == read.total_samples);
  }
}

TEST_CASE("no bound of training to an accuracy lies above its value in any replication") {
  const std::string text = text_with("1..3", ", pricing: [on_demand, spot]") +
                           "  deadline: 9h@50%\n  budget: 900 USD@50%\n";
  const planner::Question question = question_of(text, shipped_catalog());
  const auto network = make_fluid_network();
  int bounded = 0;
  double least = 1e300, most = 0;  // bound of the samples' time against that at the medians
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    // One replication: every statistic is of it alone.
    const planner::Space space =
        planner::make_space(question, shipped_catalog(), *network, {seed, 1, 1});
    planner::Evaluator evaluator({question, shipped_catalog(), *network, space, seed, 1});
    planner::Draws draws(seed, 1);
    REQUIRE(space.candidates.size() >= 6);
    for (const planner::Evaluated& e : evaluator.evaluate(space.candidates, 1)) {
      INFO("seed " << seed << ", " << planner::to_text(e.changes.front()) << " "
                   << planner::to_text(e.changes.back()));
      REQUIRE(e.refused.empty());
      const planner::Site& site = space.site(e.candidate);
      const planner::Split& split = space.split(e.candidate);
      draws.draw(site);
      const planner::Bounds bounds =
          planner::bounds_of(question, site, planner::least_factors(question, site, draws), split,
                             space.offer(e.candidate));
      CHECK(bounds.score <= e.score);
      CHECK(bounds.deadline <= e.late);
      CHECK(bounds.budget <= e.dear);
      // 0: something that may be nothing at all was drawn low, which bounds nothing.
      const double drawn = bounds.deadline / (double(split.steps) * split.step_seconds);
      if (drawn <= 0) continue;
      ++bounded;
      least = std::min(least, drawn);
      most = std::max(most, drawn);
    }
  }
  CHECK(bounded > 36);  // of 72 and more
  // The draws do move the bounds.
  CHECK(most > 1.1 * least);
}
