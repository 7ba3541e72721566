#pragma once
#include <compare>
#include <map>
#include <string>

#include "sim/accuracy/scoring/fit/group.h"

// What rows of the fit learn from each other. Included by fit*.cpp only: Eigen is heavy.
namespace reckon {

/// What is fitted together: a row of the catalog, and in it a class of stacks ("": all in none).
struct GroupKey {
  std::string accelerator;
  Precision precision = Precision::fp32;
  std::string stacks;
  friend auto operator<=>(const GroupKey&, const GroupKey&) = default;
};

/// What the runs of one row say against its prior, in logarithms, and how surely.
struct Told {
  FitLogs shift, weight;  // weight: 1 / variance of the shift
  double year = 0;        // of its first accelerator
};
/// A fit lies between its prior and what its runs say by themselves, by their weights.
Told told_by(const GroupFit& fit, const FitLogs& prior, double year);

/// By how much priors of the other GPUs were wrong, on the mean (empirical Bayes [Efron 2010,
/// "Large-Scale Inference", chapter 1]), those of near years first (of a host, all alike); drawn
/// towards zero where few rows tell. What is the chip's by all rows, what is the programs' by those
/// of the heir's class; launches and host of a class by its accelerator's row of all other stacks
/// too; zero where there are none.
FitLogs inherited(const std::map<GroupKey, Told>& told, const GroupKey& heir, double year);

}  // namespace reckon
