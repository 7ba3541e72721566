#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

#include "sim/accuracy/predict.h"
#include "sim/accuracy/tables/others_residuals.h"
#include "sim/accuracy/tables/run_schedule.h"
#include "sim/accuracy/tables/tables.h"
#include "support/shipped_catalog.h"

using namespace reckon;

namespace {

const std::string kRunCostsHeader =
    "id,source,year,framework,hardware,machine,machines,accelerators,accelerator,usd_per_hour,"
    "model,model_text,dataset,epochs,batch,hours,usd,notes\n";

}  // namespace

TEST_CASE("a printed batch is a number, a list of parts, or not there") {
  const auto blank = schedule_of("", 10, 256);
  REQUIRE(blank);
  CHECK(blank->parts.front().global_batch == 256);
  CHECK(blank->parts.front().epochs == 10);
  CHECK(schedule_of("512", 10, 256)->parts.front().global_batch == 512);
  // Parts of 6 and 24 epochs; the run had 15.
  const auto parts = schedule_of(
      R"([{"batch_size": 8192, "epochs": 6}, {"batch_size": 16384, "epochs": 24}])", 15, 256);
  REQUIRE(parts);
  CHECK(parts->parts[0].epochs == Approx(3));
  CHECK(parts->parts[1].epochs == Approx(12));
  // Ends at 14, 27 and 28 of 28 epochs: 14, 13 and 1.
  const auto ends = schedule_of(R"([{"batch_size": 128, "epochs": 14},
      {"batch_size": 112, "epochs": 27}, {"batch_size": 64, "epochs": 28}])",
                                28, 256);
  REQUIRE(ends);
  CHECK(ends->parts[1].epochs == Approx(13));
  CHECK(ends->parts[2].epochs == Approx(1));
  for (const char* bad : {"many", "[]", "[1]", R"([{"batch_size": 0, "epochs": 1}])",
                          R"([{"batch_size": "8", "epochs": 1}])", "{", "0.5"})
    CHECK_FALSE(schedule_of(bad, 10, 256));
}

TEST_CASE("a row is moved by the other rows of its network and by all others once") {
  const std::vector<RowResidual> rows{{"1", "a", std::log(2.0)},
                                      {"2", "a", std::log(8.0)},
                                      {"3", "b", std::log(0.5)},
                                      {"4", "c", std::log(4.0)}};
  // Row 1: row 2 says 8, the median of 0.5 and 4 is their geometric mean, sqrt 2.
  CHECK(factor_of_others(rows, 0) == Approx(std::sqrt(8 * std::sqrt(2.0))));
  // Row 4: nobody ran its network; the median of 2, 8 and 0.5.
  CHECK(factor_of_others(rows, 3) == Approx(2));
  CHECK(factor_of_others(std::span(rows).first(1), 0) == 1);
  // What a row itself measured does not move it.
  auto other = rows;
  other[0].log_ratio = 5;
  CHECK(factor_of_others(other, 0) == factor_of_others(rows, 0));
}

TEST_CASE("hours and dollars of a whole run follow from epochs, rate and price") {
  const std::string text =
      kRunCostsHeader +
      "1,dawn,2017,TensorFlow v1.2,1 K80,p2.xlarge,1,1,K80,0.9,resnet50,,imagenet,10,64,100,90,\n";
  TextPool pool;
  const auto table = score_run_costs("c.csv", text, pool, test::shipped_catalog());
  REQUIRE(table);
  REQUIRE(table->scored.runs.size() == 2);
  RunConfiguration run;
  run.accelerator = "K80";
  run.accelerators = run.nodes = run.accelerators_per_node = 1;
  run.model = "resnet50";
  run.precision = "fp32";
  run.intra_node_link = run.recompute = "unknown";
  run.strategy = "single";
  run.stack = "tf1";
  run.batch_per_accelerator = 64;
  run.global_batch = 64;
  Predictor predict(test::shipped_catalog());
  const Predicted& p = predict(run);
  REQUIRE(p);
  const double hours = 10 * 1281167 / p->rate.v / 3600;
  CHECK(table->scored.runs[0].predicted == Approx(hours));
  CHECK(table->scored.runs[0].measured == 100);
  CHECK(table->scored.runs[1].predicted == Approx(0.9 * hours));
  CHECK(table->scored.runs[1].measured == 90);
}

TEST_CASE(
    "wrong cells of a run's costs are told with file, line and column, unknown ones counted") {
  const std::string text =
      kRunCostsHeader +
      "1,d,2017,TensorFlow,x,y,1,1,K80,0.9,resnet50,,imagenet,none,64,100,90,\n"
      "2,d,2017,TensorFlow,x,y,1,1,K80,0.9,resnet50,,imagenet,10,[3],100,90,\n"
      "3,d,2017,TensorFlow,x,y,1,0,,0.9,resnet50,,imagenet,10,64,100,90,\n"
      "4,d,2017,TensorFlow,x,y,1,1,K8000,0.9,resnet50,,imagenet,10,64,100,90,\n";
  TextPool pool;
  const auto table = score_run_costs("c.csv", text, pool, test::shipped_catalog());
  REQUIRE(table);
  CHECK(table->scored.runs.empty());
  REQUIRE(table->counts.problems.size() == 2);
  CHECK(format(table->counts.problems[0]) ==
        "c.csv:2:56: error: row skipped: epochs is not a number above zero");
  CHECK(table->counts.problems[1].at.line == 3);
  CHECK(table->counts.problems[1].what.find("batch is a number or a list") != std::string::npos);
  CHECK(table->scored.skipped.count("trained on CPUs") == 1);
  CHECK(table->scored.skipped.count("unknown accelerator K8000") == 1);
  CHECK_FALSE(score_run_costs("c.csv", "id,hours\n", pool, test::shipped_catalog()));
}
