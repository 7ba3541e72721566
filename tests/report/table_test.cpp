#include "report/table.h"

#include <limits>
#include <sstream>

#include "report/example_forecast.h"
#include "support/golden.h"

using namespace reckon;

TEST_CASE("the table of a forecast shows the answer with its range first") {
  const std::string table = forecast_table(test::example_forecast());
  test::check_golden("report/golden/forecast.txt", table);
  // 71,280 s is 19.8 h; 64,800 s and 86,400 s are 18 h and 24 h, in the same unit.
  CHECK(table.find("19.8 h (18.0 .. 24.0)") < table.find("248 USD (230 .. 301)"));
  CHECK(table.find("248 USD (230 .. 301)") < table.find("The step"));
}

TEST_CASE("no line of a table is wider than asked for or ends in a space") {
  std::istringstream lines(forecast_table(test::example_forecast(), 90));
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 90);
    CHECK((line.empty() || line.back() != ' '));
  }
}

TEST_CASE("a long assumption is broken into lines and keeps its effect beside the first") {
  Forecast f = test::example_forecast();
  f.assumptions[0].what =
      "achieved bandwidth of a very long chain of links between the accelerators of the pools "
      "master and workers";
  std::istringstream lines(forecast_table(f, 100));
  bool first = false;
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 100);
    first = first || (line.find("1. achieved bandwidth") != std::string::npos &&
                      line.ends_with("-61.25 USD"));
  }
  CHECK(first);
}

TEST_CASE("five assumptions are shown, the largest first, with their source") {
  const std::string table = forecast_table(test::example_forecast());
  CHECK(table.find("5 of 6 assumptions") != std::string::npos);
  CHECK(table.find("1. efficiency of convolutions") < table.find("2. mean time to reclaim"));
  CHECK(table.find("a fit, 14 measurements (2026-08-20)") != std::string::npos);
  CHECK(table.find("price of storage") == std::string::npos);
  CHECK(table.find("-5 h") != std::string::npos);  // -18,000 s
  CHECK(table.find("-61.25 USD") != std::string::npos);
}

TEST_CASE("an unknown price makes the cost unknown, not zero") {
  Forecast f = test::example_forecast();
  f.cost_usd.reset();
  f.cost_breakdown_usd = {};
  for (auto& a : f.assumptions) a.cost_effect_usd.reset();
  f.evidence->trial->cost.reset();
  const std::string table = forecast_table(f);
  CHECK(table.find("cost     unknown") != std::string::npos);
  CHECK(table.find("USD") == std::string::npos);
}

TEST_CASE("a quantile that reaches runs which never finished says never") {
  Forecast f = test::example_forecast();
  f.time_seconds.p95 = f.time_seconds.mean = std::numeric_limits<double>::infinity();
  CHECK(time_range(f.time_seconds) == "19.8 h (18.0 .. never)");
  f.time_seconds.p50 = f.time_seconds.p5 = std::numeric_limits<double>::infinity();
  CHECK(time_range(f.time_seconds) == "never");
}

TEST_CASE("a plan that does not fit is shown with its memory by part and no times") {
  Forecast f = test::example_forecast();
  f.feasible = false;
  f.memory.activations = 30.0_GB;
  test::check_golden("report/golden/infeasible.txt", forecast_table(f));
}

TEST_CASE("of several jobs the one that does not fit, and each interval, is named") {
  Forecast f = test::example_forecast();
  for (const char* name : {"a", "b", "c"}) {
    f.jobs.emplace_back().name = name;
    f.jobs.back().memory = f.memory;
    f.jobs.back().checkpoint_interval = f.checkpoint_interval;
  }
  CHECK(forecast_table(f).find("a checkpoint every 14 min of useful work)") != std::string::npos);
  f.jobs[1].checkpoint_interval = Seconds{0};
  CHECK(forecast_table(f).find("(mean of a run; Jobs a, c: a checkpoint every 14 min of useful "
                               "work; Job b: no checkpoints)") != std::string::npos);
  f.feasible = false;
  f.jobs[1].memory.activations = 20.0_GB;
  const std::string table = forecast_table(f);
  CHECK(table.find("job b does not fit into the memory") != std::string::npos);
  CHECK(table.find("18.6 GiB") != std::string::npos);
}

TEST_CASE("ranges pick one unit for all three numbers") {
  CHECK(time_range({0, 0.5, 1.5, 2.5}) == "1.50 s (0.50 .. 2.50)");
  CHECK(time_range({0, 1200, 1800, 2400}) == "30.0 min (20.0 .. 40.0)");
  CHECK(time_range({0, 86400 * 20, 86400 * 30.5, 86400 * 40}) == "30.5 d (20.0 .. 40.0)");
  CHECK(usd_range({0, 1234.4, 12345.6, 23456}) == "12,346 USD (1,234 .. 23,456)");
  CHECK(usd_range({0, 4.25, 4.5, 4.756}) == "4.50 USD (4.25 .. 4.76)");
  CHECK(percent_range({0, 0.85, 0.912, 0.95}) == "91.2 % (85.0 .. 95.0)");
}
