#include "sim/queue/gavel/allocation.h"

#include <algorithm>
#include <numeric>

#include "sim/base/check.h"
#include "sim/queue/gavel/linear_program.h"

namespace reckon {
namespace {

double fastest(const GavelClaim& claim) {
  return *std::max_element(claim.rates.begin(), claim.rates.end());
}

/// Shares of time on an n-th of each kind.
std::vector<double> isolated_shares(const GavelClaim& claim, std::span<const GavelKind> kinds,
                                    std::size_t jobs) {
  std::vector<double> shares;
  for (const GavelKind& kind : kinds)
    shares.push_back(double(kind.gpus) / (double(jobs) * claim.gpus));
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= std::max(1.0, all);
  return shares;
}

/// The program of all these policies: shares of time, and progress of each job in units of its
/// fastest rate, which is at least a floor and `level` times what it asks for.
class Shares {
 public:
  Shares(std::span<const GavelClaim> claims, std::span<const GavelKind> kinds)
      : claims_(claims), kinds_(kinds), column_(claims.size() * kinds.size(), kNoColumn) {
    level_ = program_.add_column(1);
    for (const GavelKind& kind : kinds) program_.add_row(-LinearProgram::kNone, double(kind.gpus));
    for (std::size_t m = 0; m < claims.size(); ++m) {
      const std::size_t time = program_.add_row(-LinearProgram::kNone, 1);
      const std::size_t progress = program_.add_row(0, LinearProgram::kNone);
      progress_.push_back(progress);
      const double best = fastest(claims[m]);
      for (std::size_t k = 0; k < kinds.size(); ++k) {
        if (claims[m].rates[k] <= 0 || kinds[k].gpus < claims[m].gpus) continue;
        const std::size_t column = program_.add_column(0);
        column_[m * kinds.size() + k] = column;
        program_.rows[k].entries.push_back({column, double(claims[m].gpus)});
        program_.rows[time].entries.push_back({column, 1});
        program_.rows[progress].entries.push_back({column, claims[m].rates[k] / best});
      }
    }
  }

  struct Answer {
    double level = 0;
    GavelAllocation shares;
    std::vector<double> prices;  // of a job's progress; above 0: it holds the level down
  };
  /// The highest level. asks[m] > 0; 0: the job has its floor alone.
  Answer solve(std::span<const double> asks, std::span<const double> floors = {}) const {
    LinearProgram program = program_;
    for (std::size_t m = 0; m < progress_.size(); ++m) {
      LinearProgram::Row& row = program.rows[progress_[m]];
      if (!floors.empty()) row.low = floors[m];
      if (asks[m] > 0) row.entries.push_back({level_, -asks[m]});
    }
    const LinearSolution solution = reckon::solve(program);
    Answer out{solution.objective, {claims_.size(), kinds_.size()}, {}};
    for (std::size_t m = 0; m < claims_.size(); ++m) {
      out.prices.push_back(-solution.prices[progress_[m]]);
      for (std::size_t k = 0; k < kinds_.size(); ++k)
        if (const std::size_t c = column_[m * kinds_.size() + k]; c != kNoColumn)
          out.shares.at(m, k) = std::clamp(solution.values[c], 0.0, 1.0);
    }
    return out;
  }

 private:
  static constexpr std::size_t kNoColumn = static_cast<std::size_t>(-1);
  std::span<const GavelClaim> claims_;
  std::span<const GavelKind> kinds_;
  LinearProgram program_;  // without what jobs ask for
  std::size_t level_ = 0;
  std::vector<std::size_t> column_;    // by job and kind
  std::vector<std::size_t> progress_;  // row by job
};

/// The largest is 1, so that a level means about the same to the solver whatever the jobs are.
std::vector<double> scaled(std::vector<double> asks) {
  const double most = *std::max_element(asks.begin(), asks.end());
  for (double& ask : asks) ask /= most;
  return asks;
}

std::vector<double> fair_asks(std::span<const GavelClaim> claims,
                              std::span<const GavelKind> kinds) {
  std::vector<double> asks;
  for (const GavelClaim& claim : claims)
    asks.push_back(equal_throughput(claim, kinds) / (fastest(claim) * claim.gpus));
  return scaled(std::move(asks));
}

GavelAllocation max_min(std::span<const GavelClaim> claims, std::span<const GavelKind> kinds) {
  return Shares(claims, kinds).solve(fair_asks(claims, kinds)).shares;
}

/// Jobs whose progress has a price hold the level down in every optimum: they keep it, and the
/// others go on.
GavelAllocation water_filling(std::span<const GavelClaim> claims,
                              std::span<const GavelKind> kinds) {
  constexpr double kNoPrice = 1e-9, kLess = 1 - 1e-9;  // a floor that rounding does not break
  const Shares shares(claims, kinds);
  std::vector<double> asks = fair_asks(claims, kinds), floors(claims.size(), 0.0);
  for (;;) {
    Shares::Answer answer = shares.solve(asks, floors);
    bool rises = false, held = false;
    for (std::size_t m = 0; m < claims.size(); ++m) {
      if (asks[m] <= 0) continue;
      const bool holds = answer.prices[m] * asks[m] > kNoPrice;
      held = held || holds;
      rises = rises || !holds;
      if (!holds) continue;
      floors[m] = answer.level * asks[m] * kLess;
      asks[m] = 0;
    }
    if (!rises || !held) return answer.shares;
  }
}

GavelAllocation min_makespan(std::span<const GavelClaim> claims, std::span<const GavelKind> kinds) {
  std::vector<double> asks;
  for (const GavelClaim& claim : claims) asks.push_back(claim.steps / fastest(claim));
  return Shares(claims, kinds).solve(scaled(std::move(asks))).shares;
}

/// rho = max_m (t_m + steps_m / throughput_m) / alone_m. For a rho, each job asks for the
/// throughput with which it is not above it; a level above 1 is a better rho. From X^isolated down:
/// Newton's method, as of Dinkelbach 1967.
GavelAllocation finish_time_fair(std::span<const GavelClaim> claims,
                                 std::span<const GavelKind> kinds) {
  constexpr int kMostRounds = 100;
  constexpr double kEnough = 1e-6;
  const std::size_t jobs = claims.size();
  std::vector<double> alone;  // time from submit to end on an n-th of the cluster
  for (const GavelClaim& claim : claims)
    alone.push_back(claim.alone_so_far.count() +
                    claim.steps / isolated_throughput(claim, kinds, jobs));
  const auto rho_of = [&](const GavelAllocation& x) {
    double rho = 0;
    for (std::size_t m = 0; m < jobs; ++m)
      rho = std::max(
          rho, (claims[m].since_submit.count() + claims[m].steps / x.throughput(m, claims[m])) /
                   alone[m]);
    return rho;
  };
  GavelAllocation best(jobs, kinds.size());
  for (std::size_t m = 0; m < jobs; ++m) {
    const auto isolated = isolated_shares(claims[m], kinds, jobs);
    for (std::size_t k = 0; k < kinds.size(); ++k)
      best.at(m, k) = claims[m].rates[k] > 0 ? isolated[k] : 0;
  }
  double rho = rho_of(best);
  const Shares shares(claims, kinds);
  for (int round = 0; round < kMostRounds; ++round) {
    std::vector<double> asks;
    for (std::size_t m = 0; m < jobs; ++m)
      asks.push_back(claims[m].steps / fastest(claims[m]) /
                     (rho * alone[m] - claims[m].since_submit.count()));
    GavelAllocation next = shares.solve(scaled(std::move(asks))).shares;
    const double lower = rho_of(next);
    if (!(lower < rho)) break;
    const bool enough = lower > rho * (1 - kEnough);
    best = std::move(next);
    rho = lower;
    if (enough) break;
  }
  return best;
}

std::vector<GavelClaim> blind(std::span<const GavelClaim> claims) {
  std::vector<GavelClaim> out(claims.begin(), claims.end());
  for (GavelClaim& claim : out) {
    const double best = fastest(claim);
    for (double& rate : claim.rates) rate = rate > 0 ? best : 0;
  }
  return out;
}

}  // namespace

double GavelAllocation::throughput(std::size_t job, const GavelClaim& claim) const {
  double sum = 0;
  for (std::size_t k = 0; k < kinds_; ++k) sum += claim.rates[k] * at(job, k);
  return sum;
}

double equal_throughput(const GavelClaim& claim, std::span<const GavelKind> kinds) {
  double steps = 0, gpus = 0;
  for (std::size_t k = 0; k < kinds.size(); ++k) {
    steps += claim.rates[k] * kinds[k].gpus;
    gpus += kinds[k].gpus;
  }
  return steps / gpus;
}

double isolated_throughput(const GavelClaim& claim, std::span<const GavelKind> kinds,
                           std::size_t jobs) {
  const std::vector<double> shares = isolated_shares(claim, kinds, jobs);
  return std::inner_product(shares.begin(), shares.end(), claim.rates.begin(), 0.0);
}

GavelAllocation allocate(SchedulingPolicy policy, std::span<const GavelClaim> claims,
                         std::span<const GavelKind> kinds) {
  if (claims.empty()) return {};
  switch (policy) {
    case SchedulingPolicy::max_min_fairness:
      return max_min(blind(claims), kinds);
    case SchedulingPolicy::max_min_fairness_perf:
      return max_min(claims, kinds);
    case SchedulingPolicy::max_min_fairness_water_filling_perf:
      return water_filling(claims, kinds);
    case SchedulingPolicy::finish_time_fairness:
      return finish_time_fair(blind(claims), kinds);
    case SchedulingPolicy::finish_time_fairness_perf:
      return finish_time_fair(claims, kinds);
    case SchedulingPolicy::min_total_duration:
      return min_makespan(blind(claims), kinds);
    case SchedulingPolicy::min_total_duration_perf:
      return min_makespan(claims, kinds);
    default:
      RECKON_CHECK(false);  // it allocates without a program
      return {};
  }
}

}  // namespace reckon
