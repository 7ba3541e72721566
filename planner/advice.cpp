#include "planner/advice.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "sim/forecast/replicate.h"
#include "sim/scenario/resolve/one_worker.h"
#include "sim/step/step.h"

namespace reckon::planner {
namespace {

constexpr int kFewestReplications = 100;
constexpr std::int64_t kTrialSteps = 50;  // what `reckon trial` takes (trial_run.h)
constexpr Seconds kCollectives{600};      // nccl-tests over all sizes: a judgement
constexpr std::array kKinds{MeasurementKind::trial, MeasurementKind::network,
                            MeasurementKind::start, MeasurementKind::storage,
                            MeasurementKind::reclaims};

/// What would be measured: kind and, where the machine matters, a plan on it.
struct Probe {
  MeasurementKind kind{};
  std::size_t on = 0;  // index of the contender
};

struct ReplicatedPlan {
  const RankedPlan* plan = nullptr;
  Plan resolved;
  std::vector<PlanAssumption> assumptions;
  std::vector<double> values;  // by replication, of the objective
  double mean = 0;
};

bool contains(std::string_view key, std::string_view part) {
  return key.find(part) != std::string_view::npos;
}

/// Which measurement tells the assumption; nullopt: none does.
std::optional<MeasurementKind> measurement_of(const PlanAssumption& a) {
  const std::string_view key = a.key;
  if (contains(key, ".network_link.") || contains(key, ".machine.network"))
    return MeasurementKind::network;
  if (contains(key, ".provisioning") || key.starts_with("job_start."))
    return MeasurementKind::start;
  if (key.starts_with("storage.") || key.starts_with("checkpoint."))
    return MeasurementKind::storage;
  if (key.starts_with("reclaim.")) return MeasurementKind::reclaims;
  if (contains(key, ".peer_link.") || contains(key, ".accelerator.peer_bandwidth"))
    return std::nullopt;  // between accelerators: no one worker sees it
  if (key.starts_with("pools.") || key.starts_with("dataset.")) return MeasurementKind::trial;
  return std::nullopt;
}

/// Of the chosen plan and those rivals whose mean is a fair one: they meet all limits and end.
std::vector<ReplicatedPlan> contenders(const Question& question, const Catalog& catalog,
                                  const RankedPlan& chosen, const std::vector<RankedPlan>& rivals) {
  std::vector<const RankedPlan*> plans{&chosen};
  for (const RankedPlan& r : rivals)
    if (r.result.meets_all()) plans.push_back(&r);
  const bool by_time = question.objective == Objective::time;
  std::vector<ReplicatedPlan> out;
  for (const RankedPlan* p : plans) {
    const Forecast& f = p->result.forecast;
    if (f.unfinished_share > 0 || (!by_time && !f.cost_usd)) continue;
    auto resolved = resolve(question, *p, catalog);
    if (!resolved) continue;
    ReplicatedPlan c;
    c.plan = p;
    c.assumptions = assumptions_of(*resolved);
    c.resolved = std::move(*resolved);
    c.values = by_time ? f.times_seconds : f.costs_usd;
    c.mean = mean_of(c.values);
    out.push_back(std::move(c));
  }
  return out;
}

/// Does measuring on `on` tell that assumption of `of`? If it is the same unknown: the same number
/// of the same source for the same thing (as in assumptions.cpp), of one provider where it is no
/// property of the accelerator, which its name says.
bool tells(MeasurementKind kind, const ReplicatedPlan& on, const ReplicatedPlan& of,
           const PlanAssumption& a) {
  if (measurement_of(a) != kind) return false;
  const bool of_accelerator = contains(a.key, ".efficiency.") || contains(a.key, ".accelerator.");
  if (!of_accelerator && a.key.starts_with("pools.") &&
      on.plan->hardware.provider != of.plan->hardware.provider)
    return false;
  // Of which pools more it says so, is no part of what it is: a fallback's nodes are the same.
  const auto thing = [](const PlanAssumption& x) {
    return x.what.substr(0, x.what.rfind(" pool"));
  };
  const auto key = [&](const PlanAssumption& x) {
    return std::tuple(x.key, thing(x), x.value, x.low, x.high, x.source);
  };
  return std::ranges::any_of(on.assumptions,
                             [&](const PlanAssumption& b) { return key(a) == key(b); });
}

/// All that it would tell on `of` it tells on `on`.
bool tells_all(MeasurementKind kind, const ReplicatedPlan& on, const ReplicatedPlan& of) {
  return std::ranges::all_of(of.assumptions, [&](const PlanAssumption& a) {
    return measurement_of(a) != kind || tells(kind, on, of, a);
  });
}

/// E[value | what the probe tells], by replication.
std::vector<double> known(const ReplicatedPlan& of, const ReplicatedPlan& on, const Probe& probe,
                          std::uint64_t seed) {
  std::vector<std::vector<double>> columns;
  for (const PlanAssumption& a : of.assumptions) {
    if (!tells(probe.kind, on, of, a)) continue;
    std::vector<double> score(of.values.size()), square(of.values.size());
    for (std::size_t k = 0; k < score.size(); ++k) {
      score[k] = draw_score(a, seed, std::uint32_t(k));
      square[k] = score[k] * score[k];
    }
    columns.push_back(std::move(score));
    columns.push_back(std::move(square));
  }
  return expected_given(of.values, std::move(columns));
}

const PlannedPool* planned_worker_pool(const Plan& plan) { return plan.pool_with(Role::worker); }

Seconds start_of(const Plan& plan) {
  const JobStartRules& s = plan.job_start;
  return s.image_pull.value + s.framework_start.value + s.compile.value;
}

/// How long and on how many nodes; a trial turns into steps of the whole plan where no accelerator
/// holds the model.
void plan_measurement(Measurement& m, const ReplicatedPlan& on, const NetworkModel& network) {
  const Plan& plan = on.resolved;
  const PlannedPool* pool = planned_worker_pool(plan);
  switch (m.kind) {
    case MeasurementKind::trial:
    case MeasurementKind::steps: {
      const auto one = one_worker(plan);
      if (one && estimate_memory(*one, one->only_job()).fits_at(kRiskOfAPlan)) {
        m.takes = start_of(plan) +
                  double(kTrialSteps) * estimate_step(*one, one->only_job(), network).step;
      } else {
        m.kind = MeasurementKind::steps;
        m.nodes = on.plan->split.nodes;
        m.takes = start_of(plan) + double(kTrialSteps) * on.plan->result.forecast.step.step;
      }
      break;
    }
    case MeasurementKind::network:
      m.nodes = 2;
      m.takes = start_of(plan) + kCollectives;
      break;
    case MeasurementKind::start:
      m.takes = start_of(plan);
      break;
    case MeasurementKind::storage:
      m.takes = start_of(plan) + checkpoint_save_time(plan, plan.only_job()) +
                checkpoint_restore_time(plan, plan.only_job());
      break;
    case MeasurementKind::reclaims:  // one node until half of all such would be gone
      m.takes = plan.reclaim.assumed_mean ? plan.reclaim.assumed_mean->value : Seconds{};
      break;
  }
  constexpr double kMinute = 60;
  m.takes = std::max(m.takes, plan.billing.minimum);
  m.takes = Seconds{std::ceil(m.takes.count() / kMinute) * kMinute};
  if (pool == nullptr || !pool->price.known) return;
  const double usd_per_hour = 1e-9 * double(pool->price.machine.nano_usd_per_hour +
                                            pool->price.accelerators.nano_usd_per_hour);
  m.costs = Usd{m.nodes * usd_per_hour * m.takes.count() / 3600};
}

/// Worth, share and saves; the contender that is chosen instead most often.
std::optional<std::size_t> value(Measurement& m, const std::vector<ReplicatedPlan>& all,
                                 const Probe& probe, std::uint64_t seed) {
  std::vector<std::vector<double>> expected;
  for (const ReplicatedPlan& c : all) expected.push_back(known(c, all[probe.on], probe, seed));
  const std::size_t n = all.front().values.size();
  std::map<std::size_t, int> instead;
  double saved = 0;
  int changes = 0;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t best = 0;
    for (std::size_t p = 1; p < all.size(); ++p)
      if (expected[p][k] < expected[best][k]) best = p;
    if (best == 0) continue;
    ++changes;
    ++instead[best];
    saved += expected[0][k] - expected[best][k];
  }
  if (changes == 0) return std::nullopt;
  m.worth = saved / double(n);
  m.share = double(changes) / double(n);
  m.saves = saved / double(changes);
  return std::ranges::max_element(instead, {}, [](const auto& i) { return i.second; })->first;
}

}  // namespace

std::string_view to_text(MeasurementKind kind) {
  switch (kind) {
    case MeasurementKind::trial:
      return "trial";
    case MeasurementKind::steps:
      return "steps";
    case MeasurementKind::network:
      return "network";
    case MeasurementKind::start:
      return "start";
    case MeasurementKind::storage:
      return "storage";
    case MeasurementKind::reclaims:
      return "reclaims";
  }
  return "";
}

bool can_be_worth(Objective objective) {
  return objective == Objective::cost || objective == Objective::time ||
         objective == Objective::throughput_per_dollar ||
         objective == Objective::cost_under_deadline;
}

std::vector<double> explained_by(const std::vector<double>& values,
                                 std::vector<std::vector<double>> columns) {
  constexpr double kChance = 6.63;  // F(1, large) at 1 %
  const std::size_t n = values.size();
  const auto dot = [n](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t k = 0; k < n; ++k) sum += a[k] * b[k];
    return sum;
  };
  std::vector<double> fitted(n, mean_of(values)), rest(n);
  for (std::size_t k = 0; k < n; ++k) rest[k] = values[k] - fitted[k];
  std::vector<std::vector<double>> basis;  // orthonormal [Gram and Schmidt, the modified form]
  for (std::vector<double>& column : columns) {
    const double mean = mean_of(column);
    for (double& x : column) x -= mean;
    const double whole = dot(column, column);
    for (const std::vector<double>& b : basis) {
      const double along = dot(column, b);
      for (std::size_t k = 0; k < n; ++k) column[k] -= along * b[k];
    }
    const double left = dot(column, column);
    if (!(left > 1e-9 * whole) || !(whole > 0)) continue;  // says nothing new
    for (double& x : column) x /= std::sqrt(left);
    const double along = dot(rest, column);
    const double unexplained = dot(rest, rest) - along * along;
    if (along * along * double(n) <= kChance * std::max(unexplained, 0.0)) continue;
    for (std::size_t k = 0; k < n; ++k) {
      fitted[k] += along * column[k];
      rest[k] -= along * column[k];
    }
    basis.push_back(std::move(column));
  }
  return fitted;
}

std::vector<double> expected_given(const std::vector<double>& amounts,
                                   std::vector<std::vector<double>> columns) {
  std::vector<double> logarithms;
  for (const double x : amounts) {
    if (!(x > 0)) return explained_by(amounts, std::move(columns));
    logarithms.push_back(std::log(x));
  }
  std::vector<double> out = explained_by(logarithms, std::move(columns));
  for (double& x : out) x = std::exp(x);
  const double scale = mean_of(amounts) / mean_of(out);
  for (double& x : out) x *= scale;
  return out;
}

std::vector<Measurement> worth_measuring(const Question& question, const Catalog& catalog,
                                         const NetworkModel& network, const RankedPlan& chosen,
                                         const std::vector<RankedPlan>& rivals) {
  std::vector<Measurement> out;
  if (!can_be_worth(question.objective) ||
      chosen.result.forecast.replications < kFewestReplications)
    return out;
  const std::vector<ReplicatedPlan> all = contenders(question, catalog, chosen, rivals);
  if (all.size() < 2 || all.front().plan != &chosen) return out;
  for (const MeasurementKind kind : kKinds)
    for (std::size_t on = 0; on < all.size(); ++on) {
      const Probe probe{kind, on};
      const bool seen =
          std::any_of(all.begin(), all.begin() + std::ptrdiff_t(on),
                      [&](const ReplicatedPlan& c) { return tells_all(kind, c, all[on]); });
      if (seen) continue;
      Measurement m;
      m.kind = kind;
      for (const PlanAssumption& a : all[on].assumptions)
        if (tells(kind, all[on], all[on], a)) m.reveals.push_back(a.what);
      if (m.reveals.empty()) continue;
      const auto instead = value(m, all, probe, chosen.result.forecast.seed);
      if (!instead) continue;
      m.instead = *all[*instead].plan;
      m.on = *all[on].plan;
      plan_measurement(m, all[on], network);
      out.push_back(std::move(m));
    }
  std::ranges::stable_sort(
      out, [](const Measurement& a, const Measurement& b) { return a.worth > b.worth; });
  return out;
}

}  // namespace reckon::planner
