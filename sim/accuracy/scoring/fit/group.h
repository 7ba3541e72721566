#pragma once
#include <Eigen/Core>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "sim/accuracy/scoring/fit/fit.h"
#include "sim/scenario/plan.h"
#include "sim/step/network/network.h"
#include "sim/step/step_model.h"

// One row of the catalog being fitted. Included by fit*.cpp only: Eigen is heavy.
namespace reckon {

struct FitRun {
  Plan plan;  // its worker pool's efficiency is what the fit changes
  /// Of a model that is cut: the network, folded once, which takes longer than a step's estimate.
  std::shared_ptr<const ModelFold> fold;
  double log_measured = 0;  // ln(samples a second)
  std::string_view source;
  std::string_view stack;
  std::string_view model;
  PublishedRun published;
};
/// The step model's ln(samples a second) of the run with these efficiencies.
double log_rate(FitRun& run, const Efficiency& efficiency, const NetworkModel& network);

struct GroupFit {
  struct Stack {
    // Logarithms: of all its speeds, of its attention besides, of its host time over the row's.
    double factor = 0, attention = 0, host = 0;
    double factor_error = 0, attention_error = 0, host_error = 0;  // their standard errors
  };
  Eigen::VectorXd logs;    // the numbers' logarithms
  Eigen::VectorXd errors;  // their standard errors
  std::map<std::string_view, Stack> stacks;
};

/// Where the stacks of a row lie on the mean, by their errors, drawn to zero: what a stack is taken
/// for of which nothing is known but that it is one of them.
GroupFit::Stack middle_of(const GroupFit& fit);

/// Natural logarithms, in the order of kFittedNumbers.
using FitLogs = Eigen::Matrix<double, kFittedNumbers, 1>;
FitLogs logs_of(const Efficiency& e);
/// How far a row's numbers may lie from its prior: standard deviations of the logarithms.
const FitLogs& prior_spread();
/// `like` with these numbers; a stack's device is faster by a factor, its host slower.
Efficiency efficiency_of(const FitLogs& logs, const GroupFit::Stack& stack, Efficiency like);

/// Levenberg-Marquardt on the posterior. Runs of one source, stack and model share an error of 20
/// %, so that many of them do not outweigh those of others. Stacks' factors have mean 1 and a
/// spread of 25 %, their attention one of 40 % (fused or not, it is the program's), their host
/// times one of a factor of two. `near`: a fit to nearly the same runs, from which to start;
/// nullptr: from the prior, from one whose kernels are larger, because small kernels and a low peak
/// can pass for each other, and from one whose host is slow, because one that keeps up leaves no
/// trace.
GroupFit fit_group(std::span<FitRun* const> runs, const Efficiency& prior,
                   const NetworkModel& network, const GroupFit* near = nullptr);

}  // namespace reckon
