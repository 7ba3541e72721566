#include "sim/accuracy/scoring/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "sim/accuracy/evidence/features.h"
#include "sim/accuracy/run/layout.h"
#include "sim/forecast/forecast.h"

namespace reckon {
namespace {

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

/// Ranks from 0; equal values share the mean of theirs.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::tie(values[a], a) < std::tie(values[b], b);
  });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (std::size_t k = i; k < end; ++k) ranks[order[k]] = double(i + end - 1) / 2;
    i = end;
  }
  return ranks;
}

/// Spearman's: Pearson's of the ranks. 0 where one of them does not vary.
double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto x = ranks_of(a), y = ranks_of(b);
  const double middle = double(a.size() - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    xy += (x[i] - middle) * (y[i] - middle);
    xx += (x[i] - middle) * (x[i] - middle);
    yy += (y[i] - middle) * (y[i] - middle);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

/// What one line of a list of scores is made of: a run, or a group of them.
struct Line {
  double error = 0, absolute = 0, measured = 0, predicted = 0, covered = 0, half_width = 0;
};

Line line_of(const ScoredRun& r) {
  return {r.error(),   std::abs(r.error()),     r.measured,
          r.predicted, r.covered() ? 1.0 : 0.0, r.half_width()};
}

Scores scores_of_lines(const std::vector<Line>& lines) {
  Scores s;
  s.runs = static_cast<std::int64_t>(lines.size());
  if (lines.empty()) return s;
  const auto column = [&](double Line::*member) {
    std::vector<double> values;
    for (const Line& line : lines) values.push_back(line.*member);
    return values;
  };
  const auto mean = [&](double Line::*member) {
    double sum = 0;
    for (const Line& line : lines) sum += line.*member;
    return sum / double(lines.size());
  };
  const auto absolute = column(&Line::absolute);
  s.median_absolute_error = median(absolute);
  s.mean_absolute_error = mean(&Line::absolute);
  s.p90_absolute_error = quantile(absolute, 0.9);
  s.max_absolute_error = *std::max_element(absolute.begin(), absolute.end());
  s.bias = median(column(&Line::error));
  s.rank_correlation = rank_correlation(column(&Line::predicted), column(&Line::measured));
  s.interval_coverage = mean(&Line::covered);
  s.interval_median_half_width = median(column(&Line::half_width));
  return s;
}

Scores scores_of_memory(std::span<const ScoredRun> runs) {
  std::vector<Line> lines;
  for (const ScoredRun& r : runs) {
    const Bytes predicted = predicted_peak(r.memory, r.at);
    if (r.at.peak_memory.v == 0 || predicted.v == 0) continue;
    const double error = predicted / r.at.peak_memory - 1;
    lines.push_back({error, std::abs(error), r.at.peak_memory.v, predicted.v});
  }
  return scores_of_lines(lines);
}

Line line_of_group(const std::vector<Line>& lines) {
  const auto middle = [&](double Line::*member) {
    std::vector<double> values;
    for (const Line& line : lines) values.push_back(line.*member);
    return median(values);
  };
  double covered = 0;
  for (const Line& line : lines) covered += line.covered / double(lines.size());
  return {middle(&Line::error),
          middle(&Line::absolute),
          middle(&Line::measured),
          middle(&Line::predicted),
          covered,
          middle(&Line::half_width)};
}

NamedScores named(std::string name, std::span<const ScoredRun> runs) {
  return {std::move(name), scores_of(runs), grouped_scores_of(runs)};
}

template <class Key>
std::vector<NamedScores> split(std::span<const ScoredRun> runs, Key key) {
  std::map<std::string, std::vector<ScoredRun>, std::less<>> parts;
  for (const ScoredRun& r : runs) parts[std::string(key(r))].push_back(r);
  std::vector<NamedScores> result;
  for (const auto& [name, part] : parts) result.push_back(named(name, part));
  return result;
}

bool language_model(const RunConfiguration& run) {
  return run.model == "gpt" || run.model == "moe" || run.model == "gpt_lora";
}

/// Which line of the figures to reach a run belongs to.
std::string target_of(const ScoredRun& r) {
  const RunConfiguration& run = r.at.run;
  if (!r.figure.empty()) return std::string(r.figure);
  if (run.strategy == "parameter_server") return "parameter servers";
  if (hides_layout(run)) return std::string("LLMs, layout not printed, trust ") + r.at.trust;
  if (language_model(run)) return std::string("LLMs with printed layout, trust ") + r.at.trust;
  return r.stack_known ? "CNN and BERT, stack known" : "CNN and BERT, stack never seen";
}

/// What of a configuration two runs must share.
RunConfiguration in_common(const RunConfiguration& run, Alike alike) {
  RunConfiguration same;
  same.accelerator = run.accelerator;
  same.accelerators = run.accelerators;
  same.model = model_name(run);
  same.precision = run.precision;
  if (alike == Alike::hardware_and_model) return same;
  same.likely_precision = run.likely_precision;
  same.nodes = run.nodes;
  same.accelerators_per_node = run.accelerators_per_node;
  same.intra_node_link = run.intra_node_link;
  same.inter_node = run.inter_node;
  same.strategy = run.strategy;
  same.parameter_servers = run.parameter_servers;
  same.tensor = run.tensor;
  same.pipeline = run.pipeline;
  same.context = run.context;
  same.expert = run.expert;
  same.interleave = run.interleave;
  same.sequence_parallel = run.sequence_parallel;
  same.micro_batch = run.micro_batch;
  same.batch_per_accelerator = run.batch_per_accelerator;
  same.global_batch = run.global_batch;
  same.sequence_length = run.sequence_length;
  same.recompute = run.recompute;
  if (alike == Alike::stack) same.stack = run.stack;
  return same;
}

/// The median that is guessed for a source's runs among `group`; nullopt: no other source has any.
std::optional<double> guess_for(std::string_view source, std::span<const ScoredRun* const> group,
                                bool own_too) {
  std::vector<double> values;
  bool others = false;
  for (const ScoredRun* r : group) {
    const bool other = r->at.source != source;
    others = others || other;
    if (other || own_too) values.push_back(r->measured);
  }
  return others ? std::optional(median(std::move(values))) : std::nullopt;
}

/// Runs that other sources have alike, guessed by the median of those, or of all that are alike. A
/// source's guess is made once in a group: a file of a million rows has groups as large.
std::vector<ScoredRun> guessed_by_alike(std::span<const ScoredRun> runs, Alike alike,
                                        bool own_too) {
  struct Group {
    std::vector<const ScoredRun*> runs;
    std::map<std::string_view, std::optional<double>> guesses;  // by source
  };
  std::map<RunConfiguration, Group> groups;
  std::vector<Group*> group_of;  // by run
  for (const ScoredRun& r : runs) {
    Group& group = groups[in_common(r.at.run, alike)];
    group.runs.push_back(&r);
    group_of.push_back(&group);
  }
  std::vector<ScoredRun> result;
  for (std::size_t k = 0; k < runs.size(); ++k) {
    Group& group = *group_of[k];
    const auto [known, first] = group.guesses.try_emplace(runs[k].at.source);
    if (first) known->second = guess_for(runs[k].at.source, group.runs, own_too);
    if (!known->second) continue;
    ScoredRun& guess = result.emplace_back(runs[k]);
    guess.predicted = guess.low = guess.high = *known->second;
  }
  return result;
}

constexpr std::array<std::pair<Alike, const char*>, 3> kAlikeNames{
    {{Alike::hardware_and_model, "hardware_and_model"},
     {Alike::configuration, "configuration"},
     {Alike::stack, "configuration_and_stack"}}};

OthersScores scores_of_others(std::span<const ScoredRun> runs, Alike alike) {
  const auto guesses = baseline(runs, alike);
  std::set<int> lines;
  for (const ScoredRun& r : guesses) lines.insert(r.at.line);
  std::vector<ScoredRun> same;
  for (const ScoredRun& r : runs)
    if (lines.contains(r.at.line)) same.push_back(r);
  return {"", grouped_scores_of(noise_floor(runs, alike)), grouped_scores_of(guesses),
          grouped_scores_of(same)};
}

}  // namespace

Scores scores_of(std::span<const ScoredRun> runs) {
  std::vector<Line> lines;
  for (const ScoredRun& r : runs) lines.push_back(line_of(r));
  return scores_of_lines(lines);
}

Scores grouped_scores_of(std::span<const ScoredRun> runs) {
  std::map<std::tuple<std::string_view, std::string_view, int>, std::vector<Line>> groups;
  for (const ScoredRun& r : runs) {
    const RunConfiguration& run = r.at.run;
    groups[{run.accelerator, model_name(run), run.accelerators}].push_back(line_of(r));
  }
  std::vector<Line> lines;
  for (const auto& [key, members] : groups) lines.push_back(line_of_group(members));
  return scores_of_lines(lines);
}

std::string_view model_name(const RunConfiguration& run) {
  return run.variant.empty() ? run.model : run.variant;
}

std::string_view scale_name(int accelerators) {
  if (accelerators <= 1) return "1";
  if (accelerators <= 8) return "2-8";
  if (accelerators <= 64) return "9-64";
  return accelerators <= 512 ? "65-512" : "513 and more";
}

Evaluation evaluate(std::span<const ScoredRun> runs) {
  Evaluation e;
  e.runs = scores_of(runs);
  e.groups = grouped_scores_of(runs);
  e.targets = split(runs, target_of);
  const auto by = [&](std::string name, auto key) {
    e.by.emplace_back(std::move(name), split(runs, key));
  };
  by("accelerator", [](const ScoredRun& r) { return r.at.run.accelerator; });
  by("model", [](const ScoredRun& r) { return r.at.run.model; });
  by("strategy", [](const ScoredRun& r) { return r.at.run.strategy; });
  by("scale", [](const ScoredRun& r) { return scale_name(r.at.run.accelerators); });
  by("source", [](const ScoredRun& r) { return r.at.source; });
  by("trust", [](const ScoredRun& r) { return std::string(1, r.at.trust); });
  by("stack", [](const ScoredRun& r) { return r.at.run.stack; });
  e.memory = scores_of_memory(runs);
  if (std::ranges::any_of(runs, [](const ScoredRun& r) { return !r.evidence.empty(); })) {
    by("evidence", [](const ScoredRun& r) { return r.evidence; });
    by("domain", [](const ScoredRun& r) { return r.domain; });
    by("publisher", [](const ScoredRun& r) {
      const bool mlperf = publisher_of(r.at.source) == "mlperf";
      return fmt::format("{}, trust {}", mlperf ? "MLPerf" : "others", r.at.trust);
    });
  }
  e.does_not_fit = std::ranges::count_if(
      runs, [](const ScoredRun& r) { return r.memory_known && !r.memory.fits(); });
  e.over_plans_risk = std::ranges::count_if(
      runs, [](const ScoredRun& r) { return r.memory_known && !r.memory.fits_at(kRiskOfAPlan); });
  e.memory_unknown =
      std::ranges::count_if(runs, [](const ScoredRun& r) { return !r.memory_known; });
  return e;
}

std::vector<ScoredRun> baseline(std::span<const ScoredRun> runs, Alike alike) {
  return guessed_by_alike(runs, alike, false);
}
std::vector<ScoredRun> noise_floor(std::span<const ScoredRun> runs, Alike alike) {
  return guessed_by_alike(runs, alike, true);
}

ScoredRuns score_cold(std::span<const PublishedRun> measurements, const Catalog& catalog) {
  Predictor predict(catalog);
  ScoredRuns result;
  for (const PublishedRun& m : measurements) {
    const Predicted& p = predict(m.run);
    if (!p) {
      result.skipped.add(p.error(), m.line);
      continue;
    }
    result.runs.push_back({m, m.measured.v, p->rate.v, p->low.v, p->high.v, p->stack_known,
                           p->slowing, p->memory, p->memory_known, p->device_share});
  }
  return result;
}

AccuracyReport make_accuracy_report(const PublishedCounts& counts, ScoredRuns scored) {
  AccuracyReport report;
  report.rows = counts.rows;
  report.filtered_out = counts.filtered_out;
  auto skipped = counts.skipped;
  skipped.add(scored.skipped);
  report.skipped.assign(skipped.reasons.begin(), skipped.reasons.end());
  std::stable_sort(report.skipped.begin(), report.skipped.end(),
                   [](const auto& a, const auto& b) { return a.second.count > b.second.count; });
  report.runs = std::move(scored.runs);
  report.cold = evaluate(report.runs);
  for (const auto& [alike, name] : kAlikeNames) {
    OthersScores scores = scores_of_others(report.runs, alike);
    scores.name = name;
    if (scores.others.runs > 0) report.others.push_back(std::move(scores));
  }
  return report;
}

}  // namespace reckon
