#include "sim/accuracy/scoring/accuracy_modes.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "sim/accuracy/scoring/held_out_intervals.h"
#include "sim/forecast/forecast.h"

namespace reckon {
namespace {

using WarmKey = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view,
                           std::string_view, std::string_view>;

WarmKey warm_key(const ScoredRun& r) {
  const RunConfiguration& run = r.at.run;
  return {r.at.source, run.model, run.variant, run.accelerator, run.precision, run.stack};
}

using WarmGroups = std::map<WarmKey, std::vector<ScoredRun>>;

/// Each group with its calibration points first.
WarmGroups groups_of(std::span<const ScoredRun> runs) {
  WarmGroups groups;
  for (const ScoredRun& r : runs) groups[warm_key(r)].push_back(r);
  for (auto& [key, members] : groups) {
    std::map<double, int> by_batch;
    for (const ScoredRun& r : members) ++by_batch[r.at.run.batch_per_accelerator];
    const auto order = [&](const ScoredRun& r) {
      const RunConfiguration& run = r.at.run;
      return std::tuple(run.accelerators, -by_batch[run.batch_per_accelerator],
                        run.batch_per_accelerator, r.at.line);
    };
    std::sort(members.begin(), members.end(),
              [&](const ScoredRun& a, const ScoredRun& b) { return order(a) < order(b); });
  }
  return groups;
}

double log_ratio(const ScoredRun& r) { return std::log(r.measured / r.predicted); }

struct TableLayout {
  std::string_view strategy;
  int tensor, pipeline, context, expert, data;
  double micro_batch;
  friend auto operator<=>(const TableLayout&, const TableLayout&) = default;
};

TableLayout layout_of(const RunConfiguration& run) {
  return {run.strategy, run.tensor, run.pipeline,   run.context,
          run.expert,   run.data,   run.micro_batch};
}

void add(RegretScores& scores, double regret) {
  scores.mean = (scores.mean * double(scores.groups) + regret) / double(scores.groups + 1);
  scores.max = std::max(scores.max, regret);
  ++scores.groups;
}

}  // namespace

std::vector<ScoredRun> warm(std::span<const ScoredRun> cold, int points) {
  std::vector<ScoredRun> result;
  for (const auto& [key, members] : groups_of(cold)) {
    const auto count = static_cast<std::size_t>(points);
    if (members.size() <= count) continue;
    Slowness mean;
    for (std::size_t i = 0; i < count; ++i) {
      const Slowness s = members[i].slowing.explained(log_ratio(members[i]));
      mean.devices += s.devices / points;
      mean.links += s.links / points;
    }
    for (std::size_t i = count; i < members.size(); ++i) {
      ScoredRun r = members[i];
      const double factor = std::exp(r.slowing.log_rate(mean));
      r.predicted *= factor;
      r.low *= factor;
      r.high *= factor;
      result.push_back(r);
    }
  }
  std::sort(result.begin(), result.end(),
            [](const ScoredRun& a, const ScoredRun& b) { return a.at.line < b.at.line; });
  return result;
}

std::vector<ScoredRun> at_larger_scale(std::span<const ScoredRun> warm_runs,
                                       std::span<const ScoredRun> cold, int points) {
  std::map<WarmKey, int> calibrated_on;
  for (const auto& [key, members] : groups_of(cold)) {
    const std::size_t last = std::min(members.size(), static_cast<std::size_t>(points)) - 1;
    calibrated_on[key] = members[last].at.run.accelerators;
  }
  std::vector<ScoredRun> result;
  for (const ScoredRun& r : warm_runs)
    if (r.at.run.accelerators > calibrated_on[warm_key(r)]) result.push_back(r);
  return result;
}

Regret regret_of(std::span<const ScoredRun> runs) {
  using Key = std::tuple<std::string_view, std::string_view, int, std::string_view, std::int64_t,
                         std::int64_t, std::string_view, std::string_view, std::string_view>;
  std::map<Key, std::vector<const ScoredRun*>> groups;
  for (const ScoredRun& r : runs) {
    const RunConfiguration& run = r.at.run;
    groups[{r.at.source, run.accelerator, run.accelerators, model_name(run), run.global_batch,
            run.sequence_length, run.precision, run.recompute, run.stack}]
        .push_back(&r);
  }
  Regret regret;
  for (const auto& [key, members] : groups) {
    // A layout that was measured more than once stands with its median.
    std::map<TableLayout, std::vector<const ScoredRun*>> layouts;
    for (const ScoredRun* r : members) layouts[layout_of(r->at.run)].push_back(r);
    if (layouts.size() < 2) continue;
    double fastest = 0, taken = 0, best_predicted = -1;
    for (const auto& [layout, same] : layouts) {
      std::vector<double> measured;
      for (const ScoredRun* r : same) measured.push_back(r->measured);
      const double rate = quantile(measured, 0.5);
      fastest = std::max(fastest, rate);
      if (same.front()->predicted <= best_predicted) continue;
      best_predicted = same.front()->predicted;
      taken = rate;
    }
    const PublishedRun& first = members.front()->at;
    RegretScores& scores = first.trust == 'C'     ? regret.weak
                           : first.run.nodes <= 1 ? regret.one_node
                                                  : regret.many_nodes;
    add(scores, fastest / taken - 1);
  }
  return regret;
}

WarmEvaluation evaluate_warm(std::span<const ScoredRun> cold, int points, const Catalog& catalog) {
  auto rest = warm(cold, points);
  set_held_out_intervals(rest, catalog);
  const auto larger = at_larger_scale(rest, cold, points);
  return {points, evaluate(rest), scores_of(larger), grouped_scores_of(larger)};
}

}  // namespace reckon
