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

/// min max_m rho_m. For a rho, each job asks for the throughput with which its own is not above it,
/// and a level of 1 or more says that all can have it. The level rises with rho: its root at 1 is
/// found by regula falsi (of the Illinois kind [Dowell and Jarratt 1971]) between a rho that
/// X^isolated has and one that no job can go below.
class FinishTimeFairness {
 public:
  FinishTimeFairness(std::span<const GavelClaim> claims, std::span<const GavelKind> kinds)
      : claims_(claims), shares_(claims, kinds) {
    for (const GavelClaim& claim : claims)
      alone_.push_back(claim.alone_so_far.count() +
                       claim.steps / isolated_throughput(claim, kinds, claims.size()));
    best_ = GavelAllocation(claims.size(), kinds.size());
    for (std::size_t m = 0; m < claims.size(); ++m) {
      const auto isolated = isolated_shares(claims[m], kinds, claims.size());
      for (std::size_t k = 0; k < kinds.size(); ++k)
        best_.at(m, k) = claims[m].rates[k] > 0 ? isolated[k] : 0;
    }
  }

  GavelAllocation solve() {
    constexpr int kMostPrograms = 60;
    constexpr double kEnough = 1e-6;  // of rho, relative
    Point high{rho_of(best_), 0}, low;
    for (std::size_t m = 0; m < claims_.size(); ++m)
      low.rho = std::max(low.rho, rho(m, fastest(claims_[m])));
    if (low.rho >= high.rho * (1 - kEnough)) return best_;
    high.over = over(high);
    low.over = over(low);
    if (low.over >= 0) return best_;
    int last = 0;  // the side that the last point replaced
    for (int k = 0; k < kMostPrograms && low.rho < high.rho * (1 - kEnough); ++k) {
      Point next{low.rho + (high.rho - low.rho) * -low.over / (high.over - low.over), 0};
      next.over = over(next);
      const int side = next.over >= 0 ? 1 : -1;
      if (side == last) (side > 0 ? low : high).over /= 2;
      (side > 0 ? high : low) = next;
      last = side;
    }
    return best_;
  }

 private:
  struct Point {
    double rho = 0, over = 0;  // by how much the level is above 1
  };
  double rho(std::size_t m, double throughput) const {
    return (claims_[m].since_submit.count() + claims_[m].steps / throughput) / alone_[m];
  }
  double rho_of(const GavelAllocation& x) const {
    double worst = 0;
    for (std::size_t m = 0; m < claims_.size(); ++m)
      worst = std::max(worst, rho(m, x.throughput(m, claims_[m])));
    return worst;
  }
  /// Where all can have it, what they get may be better still: it becomes the point's rho, and what
  /// is allocated.
  double over(Point& point) {
    std::vector<double> asks;
    for (std::size_t m = 0; m < claims_.size(); ++m)
      asks.push_back(claims_[m].steps / fastest(claims_[m]) /
                     (point.rho * alone_[m] - claims_[m].since_submit.count()));
    const double most = *std::max_element(asks.begin(), asks.end());
    Shares::Answer answer = shares_.solve(scaled(std::move(asks)));
    const double over = answer.level / most - 1;
    if (over >= 0) {
      point.rho = std::min(point.rho, rho_of(answer.shares));
      best_ = std::move(answer.shares);
    }
    return over;
  }

  std::span<const GavelClaim> claims_;
  Shares shares_;
  std::vector<double> alone_;  // seconds from submit to end on an n-th of the cluster
  GavelAllocation best_;
};

GavelAllocation finish_time_fair(std::span<const GavelClaim> claims,
                                 std::span<const GavelKind> kinds) {
  return FinishTimeFairness(claims, kinds).solve();
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
