#include "report/explain/evidence.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "report/example_forecast.h"
#include "report/json_parts.h"

using namespace reckon;

namespace {

const auto kStepEvidence = test::example_evidence;

}  // namespace

TEST_CASE("nearest run and what a trial brings are told in four lines") {
  CHECK(
      evidence_section(kStepEvidence(), 100) ==
      "\nEvidence\n"
      "  comparable 2 published runs, 1 of this network on this accelerator\n"
      "  nearest    16 x A100-SXM4-80, bert_large in pytorch-ngc: 61.2 samples/s each (dle-0042)\n"
      "  step       1.08 times the step model's (0.9 .. 1.3, +-20 %)\n"
      "  a trial    50 steps of this job on 8 accelerators (6 min 40 s, about 3.50 USD) make it "
      "+-10 %\n");
  CHECK(evidence_section(std::nullopt, 100).empty());
}

TEST_CASE("where nothing is near, that is said, and no run is named") {
  StepEvidence none = kStepEvidence();
  none.runs.clear();
  none.of_this_job = 0;
  none.trial.reset();
  const std::string text = evidence_section(none, 100);
  CHECK(text.find("comparable no evidence near: +-20 %") != std::string::npos);
  CHECK(text.find("nearest") == std::string::npos);
  CHECK(text.find("trial") == std::string::npos);
  none.runs.push_back(kStepEvidence().runs.back());
  CHECK(evidence_sentences(none).find("none of this network on this accelerator") !=
        std::string::npos);
}

TEST_CASE("runs that are little alike are not near, and runs of one's own are named") {
  StepEvidence far = kStepEvidence();
  far.of_this_job = 0;
  far.runs.erase(far.runs.begin());  // of another network, 40 % alike
  CHECK(
      evidence_section(far, 100).find("comparable no evidence near: +-20 % (1 published run, none "
                                      "of this network on this accelerator)") != std::string::npos);
  StepEvidence own = kStepEvidence();
  own.runs.front().id = "mine";
  own.runs.front().source = "own";
  const std::string text = evidence_section(own, 100);
  CHECK(text.find("1 own run and 1 published run, 1 of this") != std::string::npos);
  CHECK(text.find("(own, mine)") != std::string::npos);
  CHECK(evidence_object(own, 9)["own"] == 1);
}

TEST_CASE("all runs are listed with their rate over the step model's") {
  const std::string table = evidence_table(kStepEvidence());
  CHECK(table.find("dle-0042  16 x A100-SXM4-80  bert_large  pytorch-ngc") != std::string::npos);
  CHECK(table.find("0.90   91 %") != std::string::npos);  // exp(-0.1)
  CHECK(table.find("1.28   40 %") != std::string::npos);
}

TEST_CASE("evidence in JSON has its range and the nearest runs") {
  const Json json = evidence_object(kStepEvidence(), 1);
  CHECK(json["step_factor"]["p95"] == 1.3);
  CHECK(json["comparable"] == 2);
  CHECK(json["of_this_job"] == 1);
  REQUIRE(json["nearest"].size() == 1);
  CHECK(json["nearest"][0]["id"] == "dle-0042");
  CHECK(json["trial"]["cost_usd"] == 3.5);
  CHECK(evidence_object(kStepEvidence(), 9)["nearest"][1]["stack"].is_null());
  CHECK(evidence_object(std::nullopt, 9).is_null());
}

TEST_CASE("the picture has a point a run, the range as a band, and names that are markup escaped") {
  const std::string svg = evidence_svg(kStepEvidence(), "a <job>");
  std::size_t circles = 0;
  for (std::size_t at = svg.find("<circle"); at != std::string::npos;
       at = svg.find("<circle", at + 1))
    ++circles;
  CHECK(circles == 2);
  CHECK(svg.find("a &lt;job&gt;") != std::string::npos);
  CHECK(svg.find("x&lt;&amp;&gt;") != std::string::npos);
  CHECK(svg.find("<job>") == std::string::npos);
}
