#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/catalog/catalog.h"
#include "sim/serving/serving.h"

// What a service should run on: the cheapest machines and number of replicas that hold the goal of
// a `serving:` block (p99(latency) <= 50ms) at its highest rate.
namespace reckon::planner {

struct ServingChoice {
  std::string machine, accelerator;  // machine: of an own one its pool; accelerator: "" on CPUs
  bool own = false;                  // the scenario's pool as it is
  int per_node = 0;                  // accelerators of a node
  int replicas = 0, nodes = 0;
  bool priced = true;        // else of machines on premises, whose price is not given
  double usd_per_hour = 0;   // of the nodes; 0 where it is not priced
  ServingForecast forecast;  // of so many replicas at the highest rate
};

struct ServingAnswer {
  std::string model, goal;
  double rate = 0;                      // requests a second, the highest of the day
  std::vector<ServingChoice> choices;   // cheapest first; none: nothing holds the goal
  int considered = 0;                   // machines with accelerators
  std::map<std::string, int> rejected;  // by reason
};

struct ServingQuestion {
  std::size_t keep = 5;                   // choices, each of another accelerator
  std::vector<std::string> accelerators;  // canonical; empty: any of the provider's
  std::optional<std::uint64_t> seed;      // the scenario's otherwise
};

/// The fewest of least..most for which `holds`, which holds for all above one that it holds for;
/// nullopt: for none of them. Asked few times near `least`.
std::optional<int> fewest_that_hold(int least, int most, const std::function<bool(int)>& holds);

/// Of the scenario's own pool and all machines of its provider and service in its region (with
/// accelerators where its pool has them, without where it has none), each tried with the scenario's
/// batch, routing and queue: fewest replicas (fewest_that_hold), each try simulated
/// (forecast_serving) under one seed. Latency falls as replicas are added, so the first number that
/// holds is the fewest. Fixed numbers: what the autoscaler saves by night is the simulation's to
/// say. A machine is not tried where even rate / capacity replicas, below which no queue is stable,
/// cost more than what is kept already. Machines on premises are as many as the pool has at most;
/// `plan.quota` is kept, and where nothing is trained `plan.budget`, for which the nodes run for
/// the period of the service. Times that were measured hold for the own pool alone. The scenario
/// has a serving block with a goal.
Expected<ServingAnswer> plan_serving(const ScenarioFile& file, const Catalog& catalog,
                                     const ServingQuestion& question = {});

}  // namespace reckon::planner
