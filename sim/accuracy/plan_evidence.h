#pragma once
#include <optional>

#include "sim/accuracy/evidence/evidence.h"
#include "sim/scenario/plan.h"

// What evidence says of a plan's job.
namespace reckon {

/// Does evidence speak of the plan's workers? Not of processors, nor where a calibration has
/// measured them: what was measured on the user's own machines counts alone.
bool takes_evidence(const Plan& plan);

/// Sets what measured peaks say of the memory of the plan's only job (FrameworkRules::memory_mean,
/// memory_deviation), whoever measured its speed. Nothing where it runs on processors.
void set_memory_residual(Plan& plan, const Evidence& evidence);

/// set_memory_residual(), and the factor on the step's time (PlannedPool::efficiency.step_spread:
/// median, 5th and 95th percentile) of the plan's computing pools as what evidence says of the
/// plan's job, and Plan::evidence, without a trial. Before it the step model's is asked: factor 1.
/// Of several jobs each has its own (PlannedWorkload::residual); the pools, the framework and
/// Plan::evidence have the first one's, and that is returned. nullopt: no factor is set, as
/// evidence does not speak of it.
std::optional<Residual> set_residual(Plan& plan, const Evidence& evidence);
/// The same of a factor that is known, with its 5th and 95th percentile.
void set_step_factor(Plan& plan, double median, double low, double high);

/// Plan::evidence's trial, of 50 steps, after set_residual(): on one node, or on two where one
/// would say little. It solves the posterior anew (milliseconds): for what somebody reads.
void add_trial(Plan& plan, const Evidence& evidence);

}  // namespace reckon
