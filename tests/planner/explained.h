#pragma once
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "planner/advice.h"
#include "planner/planner.h"
#include "planner/sensitivity.h"
#include "planner/small_spaces.h"

// The planner's answer with what would change it and what to measure first.
namespace reckon::test {

inline SmallSpace one_machine() {
  SmallSpace s;
  s.machines = {"n1-standard-8"};
  s.accelerators = {"T4"};
  s.regions = {"us-central1"};
  s.pricing = {"on_demand"};
  s.nodes_high = 1;
  s.objective = "cost";
  return s;
}

inline planner::Answer explained(const std::string& text,
                                 const Catalog& catalog = shipped_catalog(),
                                 int replications = 12) {
  const planner::Question question = question_of(text, catalog);
  const auto network = make_fluid_network();
  planner::PlannerOptions options;
  options.threads = 1;
  options.exact_up_to = 1000;
  options.replications = replications;
  auto answer = planner::plan(question, catalog, *network, options);
  if (!answer) throw std::runtime_error(format(answer.error()));
  planner::explain_choice(question, catalog, *network, options, *answer);
  return std::move(*answer);
}

inline std::vector<std::string> sensitivity_choice(const planner::Answer& answer) {
  return planner::texts(answer.plans.front().result.changes);
}

}  // namespace reckon::test
