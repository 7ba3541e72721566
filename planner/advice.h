#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "planner/search/ranked.h"

// What is worth measuring before the money is spent, with its price.
//
// The forecasts of the plans share their draws: replication k of each has drawn every assumption a
// from the same stream, score z_a(k), and cost y_p(k) with plan p. What a measurement of the
// assumptions A would be worth is the expected value of partial perfect information
//   worth = min_p mean_k y_p(k) - mean_k min_p m_p(k),   m_p(k) = E[y_p | z_A(k)],
// m_p estimated by regression on z_a and z_a^2 for a in A [Strong, Oakley and Brennan 2014,
// "Estimating multiparameter partial expected value of perfect information from a probabilistic
// sensitivity analysis sample", Medical Decision Making 34(3):311-326], with
// terms left out that explain less than chance does at 1 %. Assumptions multiply times and costs,
// and where nodes are reclaimed often a few draws are many times the others: a line through y_p
// itself falls below zero between them, so it is log y_p that is regressed, and what comes back is
// scaled to the mean of y_p [the smearing estimate of Duan 1983, Journal of the American
// Statistical Association 78(383):605-610]. A plan that does not rest on A, or
// whose number is another's, keeps its mean: what is measured on one accelerator says nothing
// of another. It is an upper bound for a real measurement, which is never perfect.
namespace reckon::planner {

enum class MeasurementKind {
  trial,  // one worker, some steps: how fast the machine computes
  steps,  // the same where no accelerator holds the model: the plan's nodes, by a program of yours
  network,  // all-reduces between two nodes
  start,    // from the request for a node to a process that trains
  storage,  // a checkpoint saved and restored
  reclaims  // spot nodes watched
};
std::string_view to_text(MeasurementKind kind);

struct Measurement {
  MeasurementKind kind{};
  RankedPlan on;  // a plan on the machine that it is made on
  int nodes = 1;
  Seconds takes{};                    // from the first billed second, whole minutes
  std::optional<Usd> costs;           // of the nodes for that long; nullopt: a price is unknown
  std::vector<std::string> reveals;   // assumptions, as the forecast calls them
  double worth = 0;                   // USD; with objective time: seconds
  double share = 0;                   // of the draws in which it changes the choice
  double saves = 0;                   // mean of these draws; share x saves = worth
  std::optional<RankedPlan> instead;  // what is then chosen most often
};

/// Worth most first; those that never change the choice are left out, as are objectives that are no
/// mean of one quantity (cost_time, p95). `alternatives` are those of the answer; only those that
/// meet all limits count. Fewer than 100 replications: nothing, a regression would say chance.
std::vector<Measurement> worth_measuring(const Question& question, const Catalog& catalog,
                                         const NetworkModel& network, const RankedPlan& chosen,
                                         const std::vector<RankedPlan>& rivals);
bool can_be_worth(Objective objective);

/// The values with all that columns do not explain taken away: their projection on the constant and
/// on those columns, in the given order, that explain more than chance does at 1 % (F test, one
/// degree of freedom). All of one length.
std::vector<double> explained_by(const std::vector<double>& values,
                                 std::vector<std::vector<double>> columns);
/// The same for times and costs, by their logarithms where all are above zero: above zero too, and
/// of the same mean.
std::vector<double> expected_given(const std::vector<double>& amounts,
                                   std::vector<std::vector<double>> columns);

}  // namespace reckon::planner
