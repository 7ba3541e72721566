#include "executor/launch/progress_reader.h"

#include <catch2/catch.hpp>

#include "executor/launch/progress_readers.h"

using namespace reckon;
using test::reader_of;

TEST_CASE("numbers of steps are no steps, and steps behind them are") {
  const ProgressReader reader = reader_of({});
  for (const char* line :
       {"Gradient Accumulation steps = 1", "Total optimization steps = 500", "max steps: 500",
        "number of steps 500", "Warmup steps = 50", "num train steps = 9", "time per step 2"}) {
    const auto found = reader.line(line);
    CHECK((!found || !found->step));
  }
  CHECK(reader.line("max steps 500, step 12")->step == 12);
  CHECK(reader.line("total loss 0.5 step 12")->step == 12);
  CHECK(reader.line("log: step 12")->step == 12);
  CHECK(reader.line("12/100 [==>....] - 12ms/step")->bar == 100);
}

TEST_CASE("lines that are JSON objects are read by their keys") {
  const ProgressReader own = reader_of({{"json", "step=global_step, loss=train.loss"}});
  const auto line = own.line(R"({"global_step": 40, "train": {"loss": 0.25}, "lr": 1e-3})");
  REQUIRE(line);
  CHECK(line->step == 40);
  CHECK(line->loss == 0.25);
  CHECK(!own.line("step 41"));  // no object
  CHECK(!own.line(R"({"epoch": 3})"));
  CHECK(!own.line(R"({"global_step": )"));
  // As Python writes what is no number.
  const auto torn = own.line(R"({"global_step": 41, "train": {"loss": NaN}, "a": [-Infinity]})");
  REQUIRE(torn);
  CHECK(torn->step == 41);
  CHECK(!torn->loss);
  CHECK(own.line(R"({"text": "NaN \" Infinity", "global_step": 42, "x": Infinity})")->step == 42);
  const ProgressReader plain = reader_of({{"json", ""}, {"log", "at (?<step>[0-9]+)"}});
  CHECK(plain.line(R"({"step": "7", "samples_per_second": 12.5})")->samples_per_second == 12.5);
  CHECK(plain.line("at 9")->step == 9);
}

TEST_CASE("a page of metrics is read by the names of its series") {
  const ProgressReader reader =
      reader_of({{"prometheus", ":9090/train/metrics step=train_steps_total loss=train_loss"}});
  REQUIRE(reader.prometheus());
  CHECK(reader.prometheus()->port == 9090);
  CHECK(reader.prometheus()->path == "/train/metrics");
  const auto page = reader.page(
      "# HELP train_steps_total Steps.\n"
      "# TYPE train_steps_total counter\n"
      "train_steps_total{rank=\"0\"} 120\n"
      "train_steps_total{rank=\"1\", text=\"a } b\"} 118 1734567890\n"
      "train_loss 0.5\r\n"
      "train_loss_sum NaN\n");
  REQUIRE(page);
  CHECK(page->step == 120);
  CHECK(page->loss == 0.5);
  CHECK(!reader.page("other 1\n"));
  CHECK(!reader.page("train_steps_total{rank=\"0\n\n}\n train_steps_total\n"));
}

TEST_CASE("an expression that is none is refused with what is wrong") {
  ContainerMetrics metrics;
  metrics.log = "step (?<stepp>[0-9]+)";
  const auto reader = ProgressReader::from(metrics);
  REQUIRE(!reader);
  CHECK(reader.error().find("did you mean 'step'") != std::string::npos);
}
