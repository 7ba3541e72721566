#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/measurement/trial.h"

// The answer of `reckon trial --layouts`. Values in, text out.
namespace reckon {

/// A layout that was forecast, and run for some steps.
struct LayoutRow {
  std::string name;                  // "model_parallel, data 2 x tensor 1 x pipeline 2, ..."
  std::vector<std::string> changes;  // of the scenario, as words of --set; empty: it is its own
  Seconds forecast{};                // of a step, before the run
  std::optional<TrialFit> measured;
  std::string reason;  // why it was not measured; else empty
};

struct LayoutTrial {
  std::string scenario, machine;
  std::int64_t steps = 0;  // of each
  std::vector<LayoutRow> rows;
  std::string command;  // that runs the scenario for real, without the changes

  /// The row whose mean step is the shortest; nullptr: no two were measured.
  const LayoutRow* fastest() const;
};

/// Fastest first, those that were not measured last.
void sort_by_measured(LayoutTrial& trial);

std::string layout_trial_table(const LayoutTrial& trial);
std::string layout_trial_json(const LayoutTrial& trial);

}  // namespace reckon
