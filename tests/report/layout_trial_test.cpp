#include "report/run/layout_trial.h"

#include <catch2/catch.hpp>

namespace reckon {
namespace {

/// The scenario's own layout and two others; 0: not measured.
LayoutTrial trial_of(double own, double second, double third) {
  LayoutTrial trial{.scenario = "job",
                    .machine = "a machine (2 cores)",
                    .steps = 6,
                    .rows = {},
                    .command = "reckon run job.yaml"};
  const auto add = [&](std::string name, std::vector<std::string> changes, double mean) {
    LayoutRow row{.name = std::move(name), .changes = std::move(changes), .forecast = Seconds{1}};
    if (mean > 0)
      row.measured =
          TrialFit{.mean = Seconds{mean}, .low = Seconds{mean - 0.1}, .high = Seconds{mean + 0.1}};
    else
      row.reason = "6 steps are too few after the warm-up: --steps";
    trial.rows.push_back(std::move(row));
  };
  add("the scenario's own: single, batch 4", {}, own);
  add("sharded, ZeRO-1, batch 4", {"workload.strategy.zero_stage=1"}, second);
  add("sharded, ZeRO-2, batch 4", {"workload.strategy.zero_stage=2"}, third);
  sort_by_measured(trial);
  return trial;
}

std::string verdict(const LayoutTrial& trial) {
  const std::string text = layout_trial_table(trial);
  return text.substr(text.rfind("\n\n") + 2);
}

TEST_CASE("the fastest of all layouts is the fastest here") {
  CHECK(verdict(trial_of(2, 1, 3)) ==
        "  fastest here: sharded, ZeRO-1, batch 4, 2 times as fast as the next\n"
        "  reckon run job.yaml --set workload.strategy.zero_stage=1\n");
}

TEST_CASE("layouts that were not measured are counted beside the fastest of the others") {
  CHECK(verdict(trial_of(1, 0, 3)) ==
        "  1 of 3 layouts was not measured\n"
        "  fastest of the 2 measured: the scenario's own: single, batch 4, 3 times as fast as the "
        "next\n"
        "  reckon run job.yaml\n");
}

TEST_CASE("one layout that was measured is the fastest of none") {
  const LayoutTrial trial = trial_of(1, 0, 0);
  CHECK(trial.fastest() == nullptr);
  CHECK(verdict(trial) ==
        "  2 of 3 layouts were not measured\n"
        "  nothing to compare: only the scenario's own: single, batch 4 was measured\n");
  CHECK(layout_trial_json(trial).find("\"command_of_the_fastest\": null") != std::string::npos);
  CHECK(verdict(trial_of(0, 0, 0)) == "  no layout was measured\n");
}

}  // namespace
}  // namespace reckon
