#include "planner/plan_file.h"

#include <catch2/catch.hpp>

#include "planner/small_spaces.h"
#include "sim/scenario/yaml/document.h"

using namespace reckon;
using namespace reckon::test;

TEST_CASE(
    "a plan file is a scenario without freedom whose forecast is the plan's, digit for digit") {
  SmallSpace s;
  s.machines = {"n1-standard-8"};
  s.accelerators = {"T4", "P100-PCIE-16"};
  s.regions = {"us-central1"};
  s.pricing = {"spot", "on_demand"};
  s.objective = "cost";
  const std::string text = small_text(s);
  const planner::Answer answer = answer_of(text, shipped_catalog());
  REQUIRE_FALSE(answer.plans.empty());
  const planner::RankedPlan& best = answer.plans.front();
  const planner::Question question = question_of(text, shipped_catalog());
  const auto resolved = planner::resolve(question, best, shipped_catalog());
  REQUIRE(resolved);
  const auto written = planner::plan_file(question, best, *resolved, "0.1.0", "elsewhere");
  REQUIRE(written);
  const auto file = parse_scenario(*written, "plan.yaml");
  INFO(*written);
  REQUIRE(file);
  CHECK_FALSE(file->scenario.plan);
  // What a node costs stands in it with its source and date.
  const NodePrice& price = resolved->pools.front().price;
  const double usd =
      1e-9 * double(price.machine.nano_usd_per_hour + price.accelerators.nano_usd_per_hour);
  CHECK(written->find(fmt::format("# Price of a node of workers: {:g} USD/h", usd)) !=
        std::string::npos);
  CHECK(written->find("as of " + price.as_of) != std::string::npos);
  REQUIRE(file->scenario.planned);
  CHECK(file->scenario.planned->catalog_digest == shipped_catalog().digest);
  CHECK(file->scenario.planned->seed == 3);
  CHECK(file->scenario.name == "small");
  const auto plan = make_plan(*file, shipped_catalog());
  REQUIRE(plan);
  const Forecast again = make_forecast(*plan, *make_fluid_network());
  const Forecast& first = best.result.forecast;
  CHECK(again.times_seconds == first.times_seconds);
  CHECK(again.costs_usd == first.costs_usd);
  CHECK(again.seed == first.seed);
  CHECK(file->scenario.planned->forecast.at("time_seconds.mean") ==
        fmt::format("{}", first.time_seconds.mean));
}

TEST_CASE("files that the scenario names are found from where its plan stands") {
  std::string text = small_text(small_space(1));
  text += "disruptions: {preemption: !trace {file: traces/spot.csv}}\n";
  planner::Base base;
  base.text = text;
  base.name = "questions/small.yaml";
  auto question = planner::make_question(base, shipped_catalog());
  REQUIRE(question);
  planner::RankedPlan plan;
  plan.offer.region = "us-central1";
  plan.result.forecast.replications = 1;
  const auto written = planner::plan_file(*question, plan, Plan{}, "0.1.0", "plans");
  if (!written) FAIL(format(written.error()));
  INFO(*written);
  CHECK(written->find("../questions/traces/spot.csv") != std::string::npos);
}

TEST_CASE("a document that is written out reads as the same document") {
  const std::string text =
      "name: x\n"
      "workload: {model: {layers: [{input: 3x32x32}, {linear: 10, name: \"a: b # c\"}]}}\n"
      "disruptions: {preemption: !exponential {mean: 8h}, failures: none}\n"
      "jobs:\n"
      "  - name: one\n"
      "    deep: {list: [1, 2, [3, {four: null}]], long: "
      "[aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, "
      "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb]}\n"
      "  - {name: two, text: \"quotes \\\" and \\\\ and\\nlines\", empty: \"\", yes: \"- no "
      "list\"}\n";
  const auto first = parse_yaml(text, "a");
  REQUIRE(first);
  const std::string written = write_yaml(*first);
  INFO(written);
  const auto second = parse_yaml(written, "b");
  REQUIRE(second);
  const std::function<void(const YamlNode&, const YamlNode&)> same = [&](const YamlNode& a,
                                                                         const YamlNode& b) {
    CHECK(a.kind == b.kind);
    CHECK(a.text == b.text);
    CHECK(a.tag == b.tag);
    REQUIRE(a.entries.size() == b.entries.size());
    for (std::size_t k = 0; k < a.entries.size(); ++k) {
      CHECK(a.entries[k].key == b.entries[k].key);
      same(a.entries[k].value, b.entries[k].value);
    }
  };
  same(*first, *second);
}
