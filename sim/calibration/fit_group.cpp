#include "sim/calibration/fit_group.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "sim/step/step.h"

namespace reckon {
namespace {

constexpr double kNoise = 0.10;  // of a run that the model should explain
constexpr double kHuber = 2;     // in units of it
constexpr double kStackSpread = 0.25;
// Of the logarithms around the prior: fractions of peak are known to a third or so, the sizes of
// kernels and launch times to a factor.
constexpr double kHostSpread = 0.7;  // of a stack around its row
const FitLogs kPriorSpread = (FitLogs() << 0.4, 0.4, 0.6, 0.25, 2.0, 0.7, 0.7).finished();

struct Posterior {
  std::span<FitRun* const> runs;
  FitLogs prior;
  Efficiency like;
  const NetworkModel& network;
  std::map<std::string_view, Eigen::Index> columns;  // of the stacks: factor, then host

  Eigen::Index size() const {
    return static_cast<Eigen::Index>(kFittedNumbers) +
           2 * static_cast<Eigen::Index>(columns.size());
  }

  double log_rate(FitRun& run, const FitLogs& logs, const GroupFit::Stack& stack) const {
    for (PlannedPool& pool : run.plan.pools)
      if (pool.accelerator) pool.efficiency = efficiency_of(logs, stack, like);
    const auto rate = estimate_step(run.plan, run.plan.jobs.front(), network).samples_per_second;
    return std::log(rate.v);
  }
  double residual(FitRun& run, const Eigen::VectorXd& x) const {
    const auto at = columns.find(run.stack);
    GroupFit::Stack stack;
    if (at != columns.end()) stack = {.factor = x[at->second], .host = x[at->second + 1]};
    return log_rate(run, x.head<kFittedNumbers>(), stack) - run.log_measured;
  }

  double spread(Eigen::Index i) const {
    const Eigen::Index own = i - static_cast<Eigen::Index>(kFittedNumbers);
    if (own < 0) return kPriorSpread[i];
    return own % 2 == 0 ? kStackSpread : kHostSpread;
  }
  double mean(Eigen::Index i) const {
    return i < static_cast<Eigen::Index>(kFittedNumbers) ? prior[i] : 0;
  }

  double cost(const Eigen::VectorXd& x) const {
    double total = 0;
    for (Eigen::Index i = 0; i < size(); ++i) {
      const double d = (x[i] - mean(i)) / spread(i);
      total += d * d;
    }
    for (FitRun* run : runs) {
      const double e = std::abs(residual(*run, x)) / kNoise;
      total += e < kHuber ? e * e : kHuber * (2 * e - kHuber);
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
    constexpr double kStep = 0.01;
    for (FitRun* run : runs) {
      const double e = residual(*run, x);
      const double weight = std::min(1.0, kHuber * kNoise / std::max(std::abs(e), 1e-9));
      Eigen::VectorXd slope = Eigen::VectorXd::Zero(size());
      for (Eigen::Index i = 0; i < size(); ++i) {
        const bool own = i < static_cast<Eigen::Index>(kFittedNumbers);
        const auto at = columns.find(run->stack);
        if (!own && (at == columns.end() || (at->second != i && at->second + 1 != i))) continue;
        Eigen::VectorXd y = x;
        y[i] += kStep;
        slope[i] = (residual(*run, y) - e) / kStep;
      }
      gradient += weight / (kNoise * kNoise) * e * slope;
      hessian += weight / (kNoise * kNoise) * slope * slope.transpose();
    }
  }

  /// Nothing exceeds its peak but fp32 convolutions (Winograd does fewer operations than are
  /// counted) and memory (fused layers that are counted one by one).
  Eigen::VectorXd limited(Eigen::VectorXd x) const {
    const bool wide = like.precision == Precision::fp32;
    const std::array<double, 4> most{wide ? 1.4 : 0.95, 0.95, 0.95, 1.4};
    for (std::size_t i = 0; i < most.size(); ++i) {
      const auto k = static_cast<Eigen::Index>(i);
      x[k] = std::min(x[k], std::log(most[i]));
    }
    return x;
  }
};

struct Descent {
  double cost = std::numeric_limits<double>::infinity();
  Eigen::VectorXd x;
  Eigen::MatrixXd hessian;
};

Descent descend(const Posterior& posterior, Eigen::VectorXd x) {
  constexpr int kMostRounds = 16;
  constexpr double kEnough = 3e-2;  // of the cost, whose unit is a standard deviation squared
  Descent best{posterior.cost(x), x, {}};
  double damping = 1e-2;
  Eigen::VectorXd gradient;
  posterior.derivatives(best.x, gradient, best.hessian);
  for (int round = 0; round < kMostRounds && damping < 1e6; ++round) {
    Eigen::MatrixXd damped = best.hessian;
    damped.diagonal() *= 1 + damping;
    const Eigen::VectorXd y = posterior.limited(best.x - damped.ldlt().solve(gradient));
    const double cost = posterior.cost(y);
    if (cost >= best.cost) {
      damping *= 8;
      continue;
    }
    const bool done = best.cost - cost < kEnough;
    best.cost = cost;
    best.x = y;
    damping /= 4;
    posterior.derivatives(best.x, gradient, best.hessian);
    if (done) break;
  }
  return best;
}

}  // namespace

FitLogs logs_of(const Efficiency& e) {
  constexpr double kLeastSize = 1e6, kLeastLaunch = 1e-7, kLeastHost = 1e-7;
  FitLogs x;
  x << std::log(e.convolution.value), std::log(e.matmul.value), std::log(e.attention.value),
      std::log(e.memory.value), std::log(std::max(kLeastSize, e.half_size.value.v)),
      std::log(std::max(kLeastLaunch, e.launch.value.count())),
      std::log(std::max(kLeastHost, e.host.value.count()));
  return x;
}

Efficiency efficiency_of(const FitLogs& logs, const GroupFit::Stack& stack, Efficiency like) {
  const double factor = std::exp(stack.factor);
  like.convolution = Fact<double>{std::exp(logs[0]) * factor};
  like.matmul = Fact<double>{std::exp(logs[1]) * factor};
  like.attention = Fact<double>{std::exp(logs[2]) * factor};
  like.memory = Fact<double>{std::exp(logs[3]) * factor};
  like.half_size = Fact<Flops>{Flops{std::exp(logs[4])}};
  like.launch = Fact<Seconds>{Seconds{std::exp(logs[5]) / factor}};
  like.host = Fact<Seconds>{Seconds{std::exp(logs[kHostNumber] + stack.host)}};
  return like;
}

GroupFit fit_group(std::span<FitRun* const> runs, const Efficiency& prior,
                   const NetworkModel& network, const GroupFit* near) {
  Posterior posterior{runs, logs_of(prior), prior, network, {}};
  for (const FitRun* run : runs) posterior.columns.emplace(run->stack, 0);
  Eigen::Index next = kFittedNumbers;
  for (auto& [stack, column] : posterior.columns) {
    column = next;
    next += 2;
  }

  std::vector<Eigen::VectorXd> starts;
  Eigen::VectorXd start = Eigen::VectorXd::Zero(posterior.size());
  if (near != nullptr) {
    start.head<kFittedNumbers>() = near->logs;
    for (const auto& [stack, column] : posterior.columns)
      if (const auto at = near->stacks.find(stack); at != near->stacks.end()) {
        start[column] = at->second.factor;
        start[column + 1] = at->second.host;
      }
    starts.push_back(start);
  } else {
    constexpr double kLarger = 20;
    start.head<kFittedNumbers>() = posterior.prior;
    starts.push_back(start);
    start[4] += std::log(kLarger);
    starts.push_back(start);
  }
  Descent best;
  for (const Eigen::VectorXd& from : starts) {
    Descent found = descend(posterior, posterior.limited(from));
    if (found.cost < best.cost) best = std::move(found);
  }
  const Eigen::MatrixXd covariance =
      best.hessian.ldlt().solve(Eigen::MatrixXd::Identity(posterior.size(), posterior.size()));
  GroupFit fit;
  fit.logs = best.x.head<kFittedNumbers>();
  fit.errors = covariance.diagonal().cwiseMax(0).cwiseSqrt().head<kFittedNumbers>();
  for (const auto& [stack, column] : posterior.columns) {
    const auto error = [&](Eigen::Index i) { return std::sqrt(std::max(0.0, covariance(i, i))); };
    fit.stacks[stack] = {best.x[column], best.x[column + 1], error(column), error(column + 1)};
  }
  return fit;
}

}  // namespace reckon
