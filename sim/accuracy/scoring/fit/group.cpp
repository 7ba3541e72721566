#include "sim/accuracy/scoring/fit/group.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/accuracy/evidence/descent.h"
#include "sim/step/compute.h"
#include "sim/step/step.h"

namespace reckon {
namespace {

constexpr double kNoise = 0.10;             // of a run that the model should explain
constexpr double kShared = 0.10;            // of all runs of one source, stack and model together
constexpr double kHuberOfRuns = 2;          // in units of it
constexpr double kSpreadOfStack = 0.25;     // of ln of its speed, one standard deviation
constexpr double kHostSpreadOfStack = 0.7;  // likewise of its host time around the row's
constexpr double kAttentionSpreadOfStack = 0.4;  // likewise of its attention
constexpr Eigen::Index kColumnsOfStack = 3;      // factor, host, attention
// Standard deviations of the natural logarithms around the prior: fractions of peak and what a
// device needs between two kernels are known to a third or so, the sizes of kernels and the time of
// a host to a factor.
const FitLogs kPriorSpread = (FitLogs() << 0.4, 0.4, 0.6, 0.25, 2.0, 0.35, 0.7, 0.3).finished();

struct Posterior {
  std::span<FitRun* const> runs;
  FitLogs prior;
  Efficiency like;
  const NetworkModel& network;
  std::map<std::string_view, Eigen::Index> columns;  // the first of each stack
  std::vector<std::vector<Eigen::Index>> clusters;   // runs of one source, stack and model

  Eigen::Index size() const {
    return static_cast<Eigen::Index>(kFittedNumbers) +
           kColumnsOfStack * static_cast<Eigen::Index>(columns.size());
  }

  /// A stack's host time is spread around the row's. Benchmark submissions replay captured graphs
  /// (CUDA graphs) or compiled ones: theirs is around what is known of a host that keeps up.
  double host_offset(std::string_view stack, double row_host) const {
    return stack.ends_with("mlperf") ? prior[kHostNumber] - row_host : 0;
  }
  GroupFit::Stack stack_at(std::string_view stack, Eigen::Index column,
                           const Eigen::VectorXd& x) const {
    return {.factor = x[column],
            .attention = x[column + 2],
            .host = x[column + 1] + host_offset(stack, x[kHostNumber])};
  }

  double residual(FitRun& run, const Eigen::VectorXd& x) const {
    const auto at = columns.find(run.stack);
    GroupFit::Stack stack;
    if (at != columns.end()) stack = stack_at(run.stack, at->second, x);
    return log_rate(run, efficiency_of(x.head<kFittedNumbers>(), stack, like), network) -
           run.log_measured;
  }

  double spread(Eigen::Index i) const {
    const Eigen::Index own = i - static_cast<Eigen::Index>(kFittedNumbers);
    if (own < 0) return kPriorSpread[i];
    constexpr std::array<double, kColumnsOfStack> kSpreads{kSpreadOfStack, kHostSpreadOfStack,
                                                           kAttentionSpreadOfStack};
    return kSpreads[static_cast<std::size_t>(own % kColumnsOfStack)];
  }
  double mean(Eigen::Index i) const {
    return i < static_cast<Eigen::Index>(kFittedNumbers) ? prior[i] : 0;
  }

  Eigen::VectorXd residuals(const Eigen::VectorXd& x) const {
    Eigen::VectorXd e(static_cast<Eigen::Index>(runs.size()));
    for (std::size_t i = 0; i < runs.size(); ++i)
      e[static_cast<Eigen::Index>(i)] = residual(*runs[i], x);
    return e;
  }

  /// What is left of errors whose covariance is kNoise^2, and kShared^2 more inside a cluster of n:
  /// e - (1 - s) mean(e), s^2 = kNoise^2 / (kNoise^2 + n kShared^2), is white.
  Eigen::VectorXd whitened(Eigen::VectorXd e) const {
    for (const auto& members : clusters) {
      const double n = double(members.size());
      double mean = 0;
      for (const Eigen::Index i : members) mean += e[i] / n;
      const double kept = kNoise / std::sqrt(kNoise * kNoise + n * kShared * kShared);
      for (const Eigen::Index i : members) e[i] -= (1 - kept) * mean;
    }
    return e;
  }

  double cost(const Eigen::VectorXd& x) const {
    double total = 0;
    for (Eigen::Index i = 0; i < size(); ++i) {
      const double d = (x[i] - mean(i)) / spread(i);
      total += d * d;
    }
    for (const double residual : whitened(residuals(x))) {
      const double e = std::abs(residual) / kNoise;
      total += e < kHuberOfRuns ? e * e : kHuberOfRuns * (2 * e - kHuberOfRuns);
    }
    return total;
  }

  /// Gradient and Gauss-Newton matrix at x.
  void derivatives(const Eigen::VectorXd& x, Eigen::VectorXd& gradient,
                   Eigen::MatrixXd& hessian) const {
    gradient = Eigen::VectorXd::Zero(size());
    hessian = Eigen::MatrixXd::Zero(size(), size());
    for (Eigen::Index i = 0; i < size(); ++i) {
      gradient[i] = (x[i] - mean(i)) / (spread(i) * spread(i));
      hessian(i, i) = 1 / (spread(i) * spread(i));
    }
    constexpr double kStep = 0.01;  // of the natural logarithm, of a difference quotient
    const Eigen::VectorXd plain = residuals(x);
    const Eigen::VectorXd e = whitened(plain);
    Eigen::MatrixXd slopes(plain.size(), size());
    for (Eigen::Index i = 0; i < size(); ++i) {
      Eigen::VectorXd y = x;
      y[i] += kStep;
      Eigen::VectorXd slope = Eigen::VectorXd::Zero(plain.size());
      for (std::size_t r = 0; r < runs.size(); ++r) {
        const auto k = static_cast<Eigen::Index>(r);
        if (concerns(i, *runs[r])) slope[k] = (residual(*runs[r], y) - plain[k]) / kStep;
      }
      slopes.col(i) = whitened(slope);
    }
    for (Eigen::Index r = 0; r < e.size(); ++r) {
      const double weight = std::min(1.0, kHuberOfRuns * kNoise / std::max(std::abs(e[r]), 1e-9));
      const Eigen::VectorXd slope = slopes.row(r).transpose();
      gradient += weight / (kNoise * kNoise) * e[r] * slope;
      hessian += weight / (kNoise * kNoise) * slope * slope.transpose();
    }
  }

  /// Numbers of the row concern all runs, a stack's its own.
  bool concerns(Eigen::Index i, const FitRun& run) const {
    if (i == static_cast<Eigen::Index>(kWinogradNumber)) return has_winograd();
    if (i < static_cast<Eigen::Index>(kFittedNumbers)) return true;
    const auto at = columns.find(run.stack);
    return at != columns.end() && at->second <= i && i < at->second + kColumnsOfStack;
  }

  /// Where the prior knows of no such algorithm there is none.
  bool has_winograd() const { return like.winograd.value > 1; }

  /// Nothing, of the fastest stack, exceeds its peak but memory (fused layers that are counted one
  /// by one) and fp32 convolutions whose algorithms are not told apart.
  Eigen::VectorXd limited(Eigen::VectorXd x) const {
    const bool wide = like.precision == Precision::fp32 && !has_winograd();
    const std::array<double, 4> most{wide ? 1.4 : 0.95, 0.95, 0.95, 1.4};
    double ahead = 0;
    for (const auto& [stack, column] : columns) ahead = std::max(ahead, x[column]);
    for (std::size_t i = 0; i < most.size(); ++i) {
      const auto k = static_cast<Eigen::Index>(i);
      x[k] = std::min(x[k], std::log(most[i]) - ahead);
    }
    constexpr double kFewestMultiplications =
        2.25;  // F(2 x 2, 3 x 3) [Lavin and Gray 2016, Sec. 4.1]
    x[kWinogradNumber] = std::clamp(x[kWinogradNumber], 0.0, std::log(kFewestMultiplications));
    for (const auto& [stack, column] : columns)
      x[column + 2] = std::min(x[column + 2],
                               std::log(most[kAttentionNumber]) - x[column] - x[kAttentionNumber]);
    // A kernel that takes so long at the peak fills any chip, and no device idles longer between
    // two kernels: general knowledge. What costs a small batch more than that is its host's doing.
    constexpr Seconds kFills{30e-6}, kLongestLaunch{15e-6};
    const PlannedPool& pool = *runs.front()->plan.pool_with(Role::worker);
    const Flops largest = one_core(processor_of(pool, like.precision)).peak * kFills;
    x[4] = std::min(x[4], std::log(largest.v));
    x[5] = std::min(x[5], std::log(kLongestLaunch.count()));
    return x;
  }
};

Descent descend_from(const Posterior& posterior, const Eigen::VectorXd& start) {
  constexpr int kMostRounds = 64;
  constexpr double kEnough = 1e-3;  // of the cost, whose unit is a standard deviation squared
  DescentProblem problem;
  problem.cost = [&](const Eigen::VectorXd& x) { return posterior.cost(x); };
  problem.slope = [&](const Eigen::VectorXd& x) {
    Slope slope;
    posterior.derivatives(x, slope.gradient, slope.hessian);
    return slope;
  };
  problem.limited = [&](const Eigen::VectorXd& x) { return posterior.limited(x); };
  problem.most_rounds = kMostRounds;
  problem.enough = kEnough;
  problem.grid = 1e-4;  // of logarithms: rows are written with four digits
  return descend(problem, start);
}

}  // namespace

double log_rate(FitRun& run, const Efficiency& efficiency, const NetworkModel& network) {
  for (PlannedPool& pool : run.plan.pools)
    if (pool.accelerator) pool.efficiency = efficiency;
  const PlannedWorkload& job = run.plan.only_job();
  const auto step = run.fold ? estimate_step(run.plan, job, *run.fold, network)
                             : estimate_step(run.plan, job, network);
  return std::log(step.samples_per_second.v);
}

GroupFit::Stack middle_of(const GroupFit& fit) {
  const auto mean = [&](auto value, auto error, double spread) {
    double sum = 0, weight = 1 / (spread * spread);
    for (const auto& [name, stack] : fit.stacks) {
      const double w = 1 / (stack.*error * (stack.*error) + spread * spread);
      sum += w * stack.*value;
      weight += w;
    }
    return sum / weight;
  };
  using Stack = GroupFit::Stack;
  Stack middle;
  middle.factor = mean(&Stack::factor, &Stack::factor_error, kSpreadOfStack);
  middle.attention = mean(&Stack::attention, &Stack::attention_error, kAttentionSpreadOfStack);
  middle.host = mean(&Stack::host, &Stack::host_error, kHostSpreadOfStack);
  return middle;
}

const FitLogs& prior_spread() { return kPriorSpread; }

FitLogs logs_of(const Efficiency& e) {
  constexpr double kLeastSize = 1e6, kLeastLaunch = 1e-7, kLeastHost = 1e-7;  // FLOPs; seconds
  FitLogs x;
  x << std::log(e.convolution.value), std::log(e.matmul.value), std::log(e.attention.value),
      std::log(e.memory.value), std::log(std::max(kLeastSize, e.half_size.value.v)),
      std::log(std::max(kLeastLaunch, e.launch.value.count())),
      std::log(std::max(kLeastHost, e.host.value.count())), std::log(e.winograd.value);
  return x;
}

Efficiency efficiency_of(const FitLogs& logs, const GroupFit::Stack& stack, Efficiency like) {
  const double factor = std::exp(stack.factor);
  like.convolution = Fact<double>{std::exp(logs[0]) * factor};
  like.matmul = Fact<double>{std::exp(logs[1]) * factor};
  like.attention = Fact<double>{std::exp(logs[kAttentionNumber] + stack.attention) * factor};
  like.memory = Fact<double>{std::exp(logs[3]) * factor};
  like.half_size = Fact<Flops>{Flops{std::exp(logs[4])}};
  like.launch = Fact<Seconds>{Seconds{std::exp(logs[5]) / factor}};
  like.host = Fact<Seconds>{Seconds{std::exp(logs[kHostNumber] + stack.host)}};
  like.winograd = Fact<double>{std::exp(logs[kWinogradNumber])};
  return like;
}

GroupFit fit_group(std::span<FitRun* const> runs, const Efficiency& prior,
                   const NetworkModel& network, const GroupFit* near) {
  Posterior posterior{runs, logs_of(prior), prior, network, {}, {}};
  using Alike = std::tuple<std::string_view, std::string_view, std::string_view>;
  std::map<Alike, std::vector<Eigen::Index>> alike;
  for (std::size_t i = 0; i < runs.size(); ++i)
    alike[{runs[i]->source, runs[i]->stack, runs[i]->model}].push_back(
        static_cast<Eigen::Index>(i));
  for (auto& [key, members] : alike) posterior.clusters.push_back(std::move(members));
  for (const FitRun* run : runs) posterior.columns.emplace(run->stack, 0);
  Eigen::Index next = kFittedNumbers;
  for (auto& [stack, column] : posterior.columns) {
    column = next;
    next += kColumnsOfStack;
  }

  std::vector<Eigen::VectorXd> starts;
  Eigen::VectorXd start = Eigen::VectorXd::Zero(posterior.size());
  if (near != nullptr) {
    start.head<kFittedNumbers>() = near->logs;
    for (const auto& [stack, column] : posterior.columns)
      if (const auto at = near->stacks.find(stack); at != near->stacks.end()) {
        start[column] = at->second.factor;
        start[column + 1] = at->second.host - posterior.host_offset(stack, near->logs[kHostNumber]);
        start[column + 2] = at->second.attention;
      }
    starts.push_back(start);
  } else {
    constexpr double kLarger = 20, kSlowHost = 8;  // factors on half_size and on the host's time
    start.head<kFittedNumbers>() = posterior.prior;
    starts.push_back(start);
    start[4] += std::log(kLarger);
    starts.push_back(start);
    start[4] = posterior.prior[4];
    start[kHostNumber] += std::log(kSlowHost);
    starts.push_back(start);
  }
  Descent best = descend_from(posterior, starts.front());
  for (const Eigen::VectorXd& from : std::span(starts).subspan(1)) {
    Descent found = descend_from(posterior, from);
    // Not "<": a start from which nothing can be predicted has no number for its cost.
    if (!(best.cost <= found.cost)) best = std::move(found);
  }
  const Eigen::MatrixXd covariance = best.slope.hessian.ldlt().solve(
      Eigen::MatrixXd::Identity(posterior.size(), posterior.size()));
  GroupFit fit;
  fit.logs = best.x.head<kFittedNumbers>();
  fit.errors = covariance.diagonal().cwiseMax(0).cwiseSqrt().head<kFittedNumbers>();
  for (const auto& [stack, column] : posterior.columns) {
    const auto error = [&](Eigen::Index i) { return std::sqrt(std::max(0.0, covariance(i, i))); };
    fit.stacks[stack] = posterior.stack_at(stack, column, best.x);
    fit.stacks[stack].factor_error = error(column);
    fit.stacks[stack].host_error = error(column + 1);
    fit.stacks[stack].attention_error = error(column + 2);
  }
  return fit;
}

}  // namespace reckon
