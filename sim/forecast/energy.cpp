#include "sim/forecast/energy.h"

#include <algorithm>
#include <cmath>

#include "sim/forecast/replicate.h"

namespace reckon {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;

int accelerators_of_node(const PlannedPool& pool) {
  return pool.slice ? pool.slice->chips : pool.accelerators_per_node;
}

bool power_is_known(const Plan& plan) {
  return std::ranges::all_of(plan.pools, [](const PlannedPool& pool) {
    return !pool.accelerator || accelerators_of_node(pool) == 0 ||
           pool.accelerator->power_watts > 0;
  });
}

/// Of every replication, drawn from the fact's range by a name of its own.
std::vector<double> drawn(const Fact<double>& fact, std::string_view name, std::uint64_t seed,
                          std::size_t replications) {
  if (!fact.assumed) return std::vector<double>(replications, fact.value);
  PlanAssumption a;
  a.value = fact.value;
  a.low = fact.low;
  a.high = fact.high;
  std::vector<double> values = price_scores(name, seed, replications);
  for (double& v : values) v = value_at(a, v);
  return values;
}

struct DrawnPower {
  double busy = 0, idle = 0, per_vcpu = 0, per_gb = 0, pue = 1;
};
std::vector<DrawnPower> draw_power(const PowerRules& rules, std::uint64_t seed, std::size_t n) {
  const auto busy = drawn(rules.busy_share, "power.busy_share", seed, n);
  const auto idle = drawn(rules.idle_share, "power.idle_share", seed, n);
  const auto vcpu = drawn(rules.watts_per_vcpu, "power.watts_per_vcpu", seed, n);
  const auto gb = drawn(rules.watts_per_gb, "power.watts_per_gb", seed, n);
  const auto pue = drawn(rules.pue, "power.pue", seed, n);
  std::vector<DrawnPower> power(n);
  for (std::size_t k = 0; k < n; ++k) power[k] = {busy[k], idle[k], vcpu[k], gb[k], pue[k]};
  return power;
}

/// Of a node whose accelerators wait.
double watts_of_node(const PlannedPool& pool, const DrawnPower& power) {
  const int hosts = pool.slice ? pool.slice->hosts : 1;
  const double host = hosts * (pool.machine.vcpus * power.per_vcpu +
                               pool.machine.memory.value.v / 1e9 * power.per_gb);
  const double printed = pool.accelerator ? double(pool.accelerator->power_watts) : 0.0;
  return host + accelerators_of_node(pool) * printed * power.idle;
}

}  // namespace

double computing_share(const std::vector<JobSteps>& jobs) {
  double computing = 0, all = 0;
  for (const auto& [accelerator_steps, step] : jobs) {
    all += accelerator_steps * step.step.count();
    computing += accelerator_steps * std::min(step.compute + step.update, step.step).count();
  }
  return all > 0 ? std::max(0.0, computing / all) : 0;
}

std::optional<EnergyForecast> energy_of(const Plan& plan, double computing, std::uint64_t seed,
                                        const std::vector<LifeResult>& lives) {
  if (!power_is_known(plan) || lives.empty()) return std::nullopt;
  const PlannedPool* workers = plan.pool_with(Role::worker);
  const double printed =
      workers != nullptr && workers->accelerator ? workers->accelerator->power_watts : 0.0;
  const std::vector<DrawnPower> drawn_power = draw_power(plan.power, seed, lives.size());
  std::vector<double> joules(lives.size());
  for (std::size_t k = 0; k < lives.size(); ++k) {
    const LifeResult& life = lives[k];
    const DrawnPower& power = drawn_power[k];
    for (std::size_t p = 0; p < plan.pools.size(); ++p)
      joules[k] += to_seconds(life.node_time[p]).count() * watts_of_node(plan.pools[p], power);
    const AcceleratorTime steps = life.goodput + life.badput[std::size_t(Badput::lost_work)];
    joules[k] +=
        double(steps.n) * 1e-9 * computing * printed * std::max(0.0, power.busy - power.idle);
    joules[k] *= power.pue;
  }
  EnergyForecast e;
  e.joules = quantiles(joules);
  e.pue = plan.power.pue.value;
  if (workers != nullptr) {
    const PowerRules& rules = plan.power;
    const DrawnPower medians{rules.busy_share.value, rules.idle_share.value,
                             rules.watts_per_vcpu.value, rules.watts_per_gb.value, 1};
    e.watts = watts_of_node(*workers, medians) +
              accelerators_of_node(*workers) * computing * printed * (medians.busy - medians.idle);
  }
  if (const auto& grid = plan.power.grams_per_kwh) {
    for (double& j : joules) j *= grid->value / kJoulesPerKwh;
    e.co2_grams = quantiles(joules);
    e.grams_per_kwh = grid->value;
    const auto slot = std::size_t(grid->source);
    if (slot < plan.sources.size()) e.grid_source = plan.sources[slot].id;
  }
  return e;
}

}  // namespace reckon
