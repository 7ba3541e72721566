#pragma once
#include <string>
#include <utility>
#include <vector>

#include "sim/scenario/plan.h"

// How the rows of assumptions_of() are written down. Internal to sim/scenario.
namespace reckon::planning {

inline double number(double x) { return x; }  // in SI units
inline double number(Seconds s) { return s.count(); }
template <class Tag>
double number(Quantity<Tag> q) {
  return q.v;
}

inline constexpr bool kStep = true, kLife = false;

/// Of a Plan, or of a part of it that is known by itself (`Whole`).
template <class Whole>
class TableOf {
 public:
  explicit TableOf(const Whole& whole) : whole_(whole) {}

  /// `where(whole)` is the fact, of a const one as of one to be changed. Facts that are not assumed
  /// are left out.
  template <class Where>
  void add(std::string what, std::string key, std::string unit, bool affects_step, Where where) {
    const auto& fact = where(whole_);
    if (!fact.assumed) return;
    using T = std::decay_t<decltype(fact.value)>;
    AssumptionOf<Whole> a;
    a.what = std::move(what);
    a.key = std::move(key);
    a.unit = std::move(unit);
    a.value = number(fact.value);
    a.low = number(fact.low);
    a.high = number(fact.high);
    a.source = fact.source;
    a.affects_step = affects_step;
    a.set = [where](Whole& whole, double value) {  // as if it were known to be so
      auto& f = where(whole);
      f.value = f.low = f.high = T{value};
    };
    rows_.push_back(std::move(a));
  }

  std::vector<AssumptionOf<Whole>> take() { return std::move(rows_); }

 private:
  const Whole& whole_;
  std::vector<AssumptionOf<Whole>> rows_;
};
using AssumptionTable = TableOf<Plan>;

// assumptions_life.cpp
void add_notice(AssumptionTable& table, const Plan& plan);
void add_start(AssumptionTable& table);
void add_egress(AssumptionTable& table, const Plan& plan);
void add_disruptions(AssumptionTable& table, const Plan& plan);
/// Of one process that stands still all others of the job stand still, too.
bool waits_for_all(const PlannedStrategy& strategy);
/// resolve/training/restart.cpp: of restarts, of the tier of checkpoints on the nodes, of slow
/// nodes.
void add_restart(AssumptionTable& table, const Plan& plan);
/// Of each market in which something is bought whose price is not certain: the price of a node
/// there.
void add_prices(std::vector<PlanAssumption>& rows, const Plan& plan);
/// The default law's mean: Plan holds it twice (the law that is drawn from, the fact behind it).
void add_reclaim(std::vector<PlanAssumption>& rows, const Plan& plan);

}  // namespace reckon::planning
