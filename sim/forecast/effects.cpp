#include "sim/forecast/effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "sim/base/check.h"
#include "sim/base/parallel.h"
#include "sim/base/unit_text.h"
#include "sim/forecast/warnings.h"

namespace reckon {
namespace {

/// Few suffice for the difference of two means under common random numbers, where most of the
/// variance cancels; all effects together live about as many lives as the forecast itself.
int replications_at_each_end(int replications, std::size_t assumptions) {
  const int fair_share = replications / int(2 * std::max<std::size_t>(assumptions, 1));
  return std::min(replications, std::clamp(fair_share, 8, 48));
}

/// Means over lives.
struct MeanLife {
  double seconds = 0;
  double usd = 0;
  std::map<std::string, double> seconds_of, usd_of;  // by what AssumptionEffect calls its rows
};

/// A life's time by what it was spent on; shares are those of accelerator time.
void add_time(const LifeResult& life, double seconds, double weight, MeanLife& mean) {
  mean.seconds += seconds * weight;
  const auto part = [&](std::string_view row, AcceleratorTime time) {
    if (life.total.n > 0)
      mean.seconds_of[std::string(row)] += ratio(time, life.total) * seconds * weight;
  };
  part("training", life.goodput);
  for (std::size_t c = 0; c < kBadputCauses; ++c) {
    const bool of_steps = Badput(c) == Badput::data_loading;
    part(of_steps ? "training" : to_text(Badput(c)), life.badput[c]);
  }
}

void add_money(const LifeResult& life, double weight, MeanLife& mean) {
  mean.usd += to_usd(life.bill).v * weight;
  for (std::size_t p = 0; p < kCostParts; ++p)
    mean.usd_of[std::string(to_text(CostPart(p)))] += to_usd(life.cost[p]).v * weight;
}

MeanLife live_with(const ForecastSetup& setup, std::uint64_t seed, int replications, Held held) {
  Replicator replicator(setup);
  MeanLife mean;
  for (int k = 0; k < replications; ++k) {
    const LifeResult life = replicator.run(seed, std::uint32_t(k), held);
    add_time(life, to_seconds(life.finish - SimTime{}).count(), 1.0 / replications, mean);
    add_money(life, 1.0 / replications, mean);
  }
  return mean;
}

/// How many of them are no prices: what a price does is plain, and shares no one's replications.
std::size_t without_prices(const ForecastSetup& setup, const std::vector<std::size_t>& candidates) {
  return std::size_t(std::count_if(candidates.begin(), candidates.end(),
                                   [&](std::size_t i) { return !is_price(setup.assumptions[i]); }));
}

/// A number of the step model that changes nothing (the efficiency of a kind of layer that the
/// model lacks) needs no life.
std::vector<std::size_t> candidates_of(const ForecastSetup& setup) {
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < setup.assumptions.size(); ++i) {
    const bool may_matter =
        !setup.assumptions[i].affects_step ||
        std::any_of(setup.jobs.begin(), setup.jobs.end(), [i](const JobSetup& job) {
          const std::optional<Sensitivity>& ends = job.sensitivities[i];
          return ends && ends->low != ends->high;
        });
    if (may_matter) candidates.push_back(i);
  }
  return candidates;
}

std::string source_text(const Plan& plan, SourceId id) {
  const auto slot = std::size_t(id);
  if (slot >= plan.sources.size()) return "not stated";
  const Source& s = plan.sources[slot];
  if (s.reference.empty()) return s.id;
  return s.retrieved.empty() ? s.reference : fmt::format("{} ({})", s.reference, s.retrieved);
}

double relative_size(const AssumptionEffect& e, const Forecast& f) {
  double size = f.time_seconds.p50 > 0 ? std::abs(e.time_effect_seconds) / f.time_seconds.p50 : 0;
  if (e.cost_effect_usd && f.cost_usd && f.cost_usd->p50 > 0)
    size = std::max(size, std::abs(*e.cost_effect_usd) / f.cost_usd->p50);
  return size;
}

/// Rows that differ between the ends, as high minus low.
std::map<std::string, double> differences(const std::map<std::string, double>& low,
                                          const std::map<std::string, double>& high) {
  std::map<std::string, double> rows;
  for (const auto& [row, value] : high) {
    const auto found = low.find(row);
    const double difference = value - (found == low.end() ? 0 : found->second);
    if (difference != 0) rows.emplace(row, difference);
  }
  return rows;
}

void add_step_effects(const Sensitivity& ends, const std::string& whose, AssumptionEffect& e) {
  for (const StepPart& part : kStepParts) {
    const double difference = (ends.high_step.*part.time - ends.low_step.*part.time).count();
    if (difference != 0) e.effects_seconds.emplace(whose + std::string(part.name), difference);
  }
}

/// Of each job that rests on the assumption, once of those that are alike.
void add_step_effects(const ForecastSetup& setup, std::size_t assumption, AssumptionEffect& e) {
  const std::vector<PlannedWorkload>& jobs = setup.plan.jobs;
  for (std::size_t k = 0; k < jobs.size(); ++k) {
    const auto& ends = setup.jobs[k].sensitivities[assumption];
    if (!ends || jobs[k].same_as) continue;
    add_step_effects(*ends, jobs.size() > 1 ? "jobs." + jobs[k].name + "." : "", e);
  }
}

}  // namespace

std::string format_in_unit(double value, std::string_view unit) {
  if (unit == "s") return format_duration(Seconds{value});
  if (unit == "fraction") return format_percent(value);
  if (unit == "B") return format_bytes(Bytes{value});
  if (unit == "B/s") return format_bandwidth(BytesPerSecond{value});
  if (unit == "FLOP/s") return format_flop_rate(FlopsPerSecond{value});
  if (unit == "USD/h") return format_usd(Usd{value}) + "/h";
  if (unit == "FLOP") return fmt::format("{:.3g} GFLOP", value * 1e-9);
  if (unit.empty() || unit == "factor") return fmt::format("{:.3g}", value);
  return fmt::format("{:.3g} {}", value, unit);
}

std::string format_assumption(const PlanAssumption& a) {
  const std::string value = format_in_unit(a.value, a.unit);
  if (a.low == a.high) return value;
  return fmt::format("{} ({} .. {})", value, format_in_unit(a.low, a.unit),
                     format_in_unit(a.high, a.unit));
}

double effect_replications(const ForecastSetup& setup, int replications) {
  const std::vector<std::size_t> candidates = candidates_of(setup);
  return 2.0 * double(candidates.size()) *
         replications_at_each_end(replications, without_prices(setup, candidates));
}

std::vector<AssumptionEffect> assumption_effects(const ForecastSetup& setup,
                                                 const Forecast& forecast, int threads,
                                                 const std::function<void(double)>& lived) {
  const std::vector<std::size_t> candidates = candidates_of(setup);
  const int replications =
      replications_at_each_end(forecast.replications, without_prices(setup, candidates));

  std::vector<MeanLife> ends(2 * candidates.size());  // low and high of each
  parallel_for(ends.size(), threads, [&](std::size_t k) {
    ends[k] = live_with(setup, forecast.seed, replications,
                        Held{candidates[k / 2], k % 2 == 0 ? -1.0 : 1.0});
    lived(replications);
  });

  std::vector<AssumptionEffect> effects;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    const PlanAssumption& a = setup.assumptions[candidates[c]];
    AssumptionEffect e{a.what, format_assumption(a), source_text(setup.plan, a.source), 0,
                       std::nullopt};
    e.time_effect_seconds = ends[2 * c + 1].seconds - ends[2 * c].seconds;
    e.key = a.key;
    e.unit = a.unit;
    e.median = a.value;
    e.low = a.low;
    e.high = a.high;
    e.effects_seconds = differences(ends[2 * c].seconds_of, ends[2 * c + 1].seconds_of);
    add_step_effects(setup, candidates[c], e);
    if (forecast.cost_usd) {
      e.cost_effect_usd = ends[2 * c + 1].usd - ends[2 * c].usd;
      e.effects_usd = differences(ends[2 * c].usd_of, ends[2 * c + 1].usd_of);
    }
    if (relative_size(e, forecast) > 0) effects.push_back(std::move(e));
  }
  std::stable_sort(effects.begin(), effects.end(),
                   [&](const AssumptionEffect& a, const AssumptionEffect& b) {
                     return relative_size(a, forecast) > relative_size(b, forecast);
                   });
  return effects;
}

}  // namespace reckon
