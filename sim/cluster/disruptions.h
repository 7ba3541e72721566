#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/base/random.h"
#include "sim/scenario/plan.h"

// What happens to one node and when: every draw comes from a stream of (seed, replication, purpose,
// node), so that neither another node nor another pool changes it.
namespace reckon {

inline constexpr Purpose kProvisioning{"node_provisioning"};
inline constexpr Purpose kCapacityWait{"flex_start_capacity"};
inline constexpr Purpose kPoolCreation{"node_pool_creation"};
inline constexpr Purpose kExpander{"expander_choice"};
inline constexpr Purpose kReclaim{"spot_reclaim"};
inline constexpr Purpose kNotice{"reclaim_notice"};
inline constexpr Purpose kShortage{"spot_shortage"};
inline constexpr Purpose kMaintenance{"host_maintenance"};
inline constexpr Purpose kFailure{"node_failure"};
inline constexpr Purpose kHang{"failure_hangs"};
inline constexpr Purpose kProcess{"failure_of_process"};
inline constexpr Purpose kGroupMaintenance{"group_maintenance"};

/// Random streams' name of a node: 16 bits from the pool's name (FNV-1a), 16 bits of slot. A pool's
/// place in the file plays no part. slot < 65,536.
std::uint32_t node_entity(std::string_view pool, std::uint32_t slot);

/// Delay whose median and 5th and 95th percentile are a fact's value and range: lognormal, sigma
/// from the range, exp(sigma (z95 - z5)) = high / low with z95 = 1.6449. A range of no width:
/// always the value.
class DelayLaw {
 public:
  explicit DelayLaw(const Fact<Seconds>& fact);
  SimDuration draw(RandomStream& stream) const;
  SimDuration least() const;  // of what it draws; 0 where the law has no least

 private:
  double median_seconds_ = 0, sigma_ = 0;  // sigma: standard deviation of ln
};

/// Age at which the provider takes a spot node back, by inverse transform: F(age) = u.
///   exponential  -mean ln(1-u)                    Weibull  scale (-ln(1-u))^(1/shape)
///   bathtub      F(t) = A (1 - exp(-t/tau1) + exp((t-b)/tau2)) [Kadupitiya et al. 2020,
///   arXiv:1911.05160, Eq. 1],
///                who lives to `limit` (24 h) is taken there
class ReclaimLaw {
 public:
  explicit ReclaimLaw(const ReclaimSpec& spec);
  bool from_trace() const { return kind_ == Kind::trace; }
  bool never() const { return kind_ == Kind::never; }
  /// Not for a trace.
  SimDuration draw(RandomStream& stream) const;
  Seconds quantile(double u) const;  // u in (0, 1)
  Seconds mean() const;              // closed form, or the integral of 1 - F (bathtub)

 private:
  enum class Kind { never, exponential, weibull, bathtub, trace };
  double bathtub_cdf(double t) const;       // t: seconds; F(t), 0..1
  double bathtub_quantile(double u) const;  // u: 0..1; seconds

  Kind kind_ = Kind::never;
  double scale_ = 0, shape_ = 1;                            // seconds; exponential: the mean
  double a_ = 0, tau1_ = 0, tau2_ = 0, b_ = 0, limit_ = 0;  // seconds
  std::vector<double> knots_;  // bathtub: F at equal steps of [0, limit]
};

/// When there is spot capacity, for the whole cluster: ShortageRules. Drawn as far as it is asked
/// for, so times may only go forward.
class Shortages {
 public:
  /// `market`: of a kind of machine; 0: of all together.
  Shortages(const ShortageRules& rules, std::uint64_t seed, std::uint32_t replication,
            std::uint32_t market = 0);
  /// `now`, or the end of the shortage that it falls in.
  SimTime over_at(SimTime now);

 private:
  void draw_next(SimTime from);
  RandomStream stream_;
  double every_ = 0, lasts_ = 0;  // ns
  SimTime begin_ = SimTime::max(), end_ = SimTime::max();
};

/// The first time later than `after` in an ascending list that starts again at its `length` (0: it
/// ends). SimTime::max(): none.
SimTime next_in_trace(std::span<const Seconds> times, Seconds length, SimTime after);

/// Machines without accelerators migrate live; those with them are stopped for host maintenance.
bool has_maintenance(const PlannedPool& pool);

}  // namespace reckon
