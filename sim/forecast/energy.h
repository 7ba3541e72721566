#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/life/life.h"
#include "sim/forecast/quantiles.h"
#include "sim/scenario/plan.h"
#include "sim/step/step.h"

// Electricity of a run and the CO2 of its grid.
namespace reckon {

struct EnergyForecast {
  Quantiles joules;                    // at the data centre's meter
  std::optional<Quantiles> co2_grams;  // nullopt: the region's grid is not known
  double watts = 0;                    // mean of a node of the workers' pool, at its plug
  double pue = 1;  // power usage effectiveness: the data centre's power over its machines'
  std::optional<double> grams_per_kwh;
  std::string grid_source;
};

/// All steps of one job.
struct JobSteps {
  double accelerator_steps = 0;  // accelerators times steps
  StepEstimate step;
};
/// Of the jobs' accelerator time in steps: in which they compute; 0..1.
double computing_share(const std::vector<JobSteps>& jobs);

/// In each life, with W an accelerator's printed power, i and b its shares while it waits and while
/// a step computes, s the share of a step in which it does, and the times that the life has:
///
///   PUE x (sum over pools: node time x (vCPUs w_v + memory w_m + accelerators W i)
///          + accelerator time of steps x s x W (b - i))
///
/// Steps that were lost count as those that were kept. i, b, w_v and PUE are drawn from their
/// ranges in every replication. nullopt: the power of an accelerator is not printed. CO2 is that of
/// the grid, hour for hour: certificates that a provider buys change none of it. Left out: network
/// and storage, and what making the machines took.
/// `computing`: s, computing_share().
std::optional<EnergyForecast> energy_of(const Plan& plan, double computing, std::uint64_t seed,
                                        const std::vector<LifeResult>& lives);

}  // namespace reckon
