#include "sim/accuracy/scoring/fit/fit.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "sim/accuracy/scoring/fit/group.h"
#include "sim/accuracy/scoring/fit/inherit.h"
#include "sim/accuracy/scoring/fit/runs.h"

namespace reckon {

struct EfficiencyFit::Data {
  const Catalog& catalog;
  std::unique_ptr<NetworkModel> network = make_default_network();
  mutable std::map<GroupKey, std::vector<FitRun>> groups;  // a run's plan is a place to work in
  mutable std::map<GroupKey, GroupFit> whole;              // fitted to all sources
  struct Pooled {
    FitLogs prior;  // as moved by the other rows
    GroupFit fit;
  };
  mutable std::map<GroupKey, Pooled> pooled;  // the same

  /// nullopt: too few runs.
  std::optional<GroupFit> fit(const GroupKey& key, std::span<FitRun* const> runs) const;
  /// The fit around a prior that other rows have moved, near the fit of the row by itself.
  GroupFit pool(const GroupKey& key, std::span<FitRun* const> runs, const Efficiency& prior,
                const GroupFit& alone, bool all_folds) const;
  std::vector<FittedRow> rows_of(const GroupKey& key, const GroupFit& fit,
                                 std::span<FitRun* const> runs) const;
  /// The prior, as the other rows have moved it.
  Efficiency moved(const GroupKey& key, const std::map<GroupKey, Told>& told) const;
  /// Rows for any stack where only a class ran: the class's; and what GPUs inherit.
  void add_unfitted(std::vector<FittedRow>& rows, const std::map<GroupKey, Told>& told,
                    const std::vector<std::string>& sources) const;
  double year_of(const GroupKey& key) const {
    int year = 0;
    for (const Accelerator& a : catalog.accelerators)
      if ((a.name == key.accelerator || a.architecture == key.accelerator) &&
          (year == 0 || a.year < year))
        year = a.year;
    return year;
  }
  bool is_gpu(const GroupKey& key) const {
    return std::ranges::any_of(catalog.accelerators, [&](const Accelerator& a) {
      return a.kind == AcceleratorKind::gpu &&
             (a.name == key.accelerator || a.architecture == key.accelerator);
    });
  }
};

EfficiencyFit::EfficiencyFit(std::span<const PublishedRun> runs, const Catalog& catalog)
    : data_(new Data{catalog}) {
  data_->groups = runs_by_row(runs, catalog);
}

EfficiencyFit::~EfficiencyFit() = default;

namespace {

/// Batches of one model in one source share what is particular to that program: they are one.
class Independent {
 public:
  void add(const FitRun& run) { models_.emplace(run.source, run.model); }
  bool enough() const {
    constexpr std::size_t kFewest = 3;
    return models_.size() >= kFewest;
  }

 private:
  std::set<std::pair<std::string_view, std::string_view>> models_;
};

}  // namespace

std::optional<GroupFit> EfficiencyFit::Data::fit(const GroupKey& key,
                                                 std::span<FitRun* const> runs) const {
  const Efficiency* prior = prior_of(catalog, key);
  Independent independent;
  for (const FitRun* run : runs) independent.add(*run);
  if (!independent.enough() || prior == nullptr) return std::nullopt;
  auto at = whole.find(key);
  if (at == whole.end()) {
    std::vector<FitRun*> all;
    for (FitRun& run : groups.at(key)) all.push_back(&run);
    at = whole.emplace(key, fit_group(all, *prior, *network)).first;
  }
  if (runs.size() == groups.at(key).size()) return at->second;
  return fit_group(runs, *prior, *network, &at->second);
}

GroupFit EfficiencyFit::Data::pool(const GroupKey& key, std::span<FitRun* const> runs,
                                   const Efficiency& prior, const GroupFit& alone,
                                   bool all_folds) const {
  // A prior that moves by so little, while the runs stay, moves the fit by less.
  constexpr double kSame = 0.02;  // of the natural logarithm
  const auto at = pooled.find(key);
  if (at != pooled.end() && runs.size() == groups.at(key).size() &&
      (at->second.prior - logs_of(prior)).cwiseAbs().maxCoeff() < kSame)
    return at->second.fit;
  GroupFit fit = fit_group(runs, prior, *network, &alone);
  if (all_folds) pooled.insert_or_assign(key, Pooled{logs_of(prior), fit});
  return fit;
}

std::vector<FittedRow> EfficiencyFit::Data::rows_of(const GroupKey& key, const GroupFit& fit,
                                                    std::span<FitRun* const> runs) const {
  const Efficiency* prior = prior_of(catalog, key);
  std::vector<FittedRow> rows;
  const auto add = [&](std::string_view stack, auto belongs) {
    FittedRow row;
    const bool any = stack.empty();
    const bool of_class = any && !key.stacks.empty();
    const GroupFit::Stack own = of_class ? middle_of(fit)
                                : any    ? GroupFit::Stack{}  // share_stacks() moves it
                                         : fit.stacks.at(stack);
    row.efficiency = efficiency_of(fit.logs, own, *prior);
    row.efficiency.stack = std::string(stack);
    row.middle = any;
    std::set<std::string> sources;
    Independent independent;
    for (const FitRun* run : runs)
      if (belongs(*run)) {
        ++row.runs;
        independent.add(*run);
        sources.emplace(run->source);
      }
    row.sources.assign(sources.begin(), sources.end());
    for (std::size_t i = 0; i < kFittedNumbers; ++i)
      row.standard_errors[i] = any ? fit.errors[static_cast<Eigen::Index>(i)] : own.factor_error;
    if (!any) row.standard_errors[kAttentionNumber] = own.attention_error;
    if (!any) row.standard_errors[kHostNumber] = own.host_error;
    if (independent.enough()) rows.push_back(std::move(row));
  };
  add("", [](const FitRun&) { return true; });
  for (const auto& factor : fit.stacks)
    add(factor.first, [&](const FitRun& run) { return run.stack == factor.first; });
  return rows;
}

namespace {

/// A class's row stands for the precisions that are one for it.
std::vector<Precision> precisions_of(const GroupKey& key, const Catalog& catalog) {
  std::vector<Precision> result{key.precision};
  const GroupKey in_fp16{key.accelerator, Precision::fp16, key.stacks};
  if (!key.stacks.empty() && key.precision == Precision::bf16 && prior_of(catalog, in_fp16))
    result.push_back(Precision::fp16);
  return result;
}

bool has_row(std::span<const FittedRow> rows, const GroupKey& key) {
  return std::ranges::any_of(rows, [&](const FittedRow& row) {
    const Efficiency& e = row.efficiency;
    return e.accelerator == key.accelerator && e.precision == key.precision &&
           e.stack == key.stacks;
  });
}

}  // namespace

std::string EfficiencyFit::inputs_digest() const {
  std::string inputs;
  for (auto& [key, runs] : data_->groups) {
    const Efficiency* prior = prior_of(data_->catalog, key);
    if (prior == nullptr) continue;
    for (FitRun& run : runs)
      inputs += fmt::format("{} {} {} {} {} {} {:.6g} {:.6g}\n", key.accelerator,
                            to_text(key.precision), key.stacks, run.source, run.stack, run.model,
                            run.log_measured, log_rate(run, *prior, *data_->network));
  }
  for (const Efficiency& e : data_->catalog.efficiencies) {
    if (data_->catalog.sources[index(e.convolution.source)].id == kFittedSource) continue;
    // General knowledge becomes a prior when a fit takes its place.
    const std::string_view stack = e.stack.empty() ? kPriorStack : std::string_view(e.stack);
    inputs += fmt::format("{} {} {}", e.accelerator, to_text(e.precision), stack);
    for (const double number : logs_of(e)) inputs += fmt::format(" {:.6g}", number);
    inputs += '\n';
  }
  return fmt::format("{:016x}", XXH3_64bits(inputs.data(), inputs.size()));
}

Efficiency EfficiencyFit::Data::moved(const GroupKey& key,
                                      const std::map<GroupKey, Told>& told) const {
  constexpr double kMostOfPeak = 0.95;  // 0..1
  const Efficiency& prior = *prior_of(catalog, key);
  const FitLogs known = logs_of(prior);
  FitLogs logs = known + inherited(told, key, year_of(key));
  for (const Eigen::Index i : {0, 1, 2})
    logs[i] = std::min(logs[i], std::max(known[i], std::log(kMostOfPeak)));
  if (prior.winograd.value <= 1) logs[kWinogradNumber] = 0;
  return efficiency_of(logs, GroupFit::Stack{}, prior);
}

void EfficiencyFit::Data::add_unfitted(std::vector<FittedRow>& rows,
                                       const std::map<GroupKey, Told>& told,
                                       const std::vector<std::string>& sources) const {
  std::set<std::string> classes;
  for (const auto& [key, what] : told)
    if (!key.stacks.empty()) classes.insert(key.stacks);
  const auto add_heir = [&](const GroupKey& key) {
    FittedRow row;
    row.efficiency = moved(key, told);
    row.efficiency.stack = key.stacks;
    for (std::size_t i = 0; i < kFittedNumbers; ++i)
      row.standard_errors[i] = prior_spread()[static_cast<Eigen::Index>(i)];
    row.sources = sources;
    rows.push_back(std::move(row));
  };
  const std::size_t fitted = rows.size();
  const auto add_any = [&](const GroupKey& any) {
    for (std::size_t i = 0; i < fitted; ++i) {
      const Efficiency& e = rows[i].efficiency;
      const bool same = e.accelerator == any.accelerator && e.precision == any.precision;
      if (!same || !rows[i].middle) continue;
      FittedRow row = rows[i];
      row.efficiency.stack.clear();
      return rows.push_back(std::move(row));
    }
    if (!told.empty() && is_gpu(any)) add_heir(any);
  };
  for (const Efficiency& e : catalog.efficiencies) {
    const GroupKey any{e.accelerator, e.precision, ""};
    if (prior_of(catalog, any) == nullptr) continue;
    if (!has_row(rows, any)) add_any(any);
    if (!has_classes(e.precision) || !is_gpu(any)) continue;
    for (const std::string& name : classes) {
      const GroupKey key{e.accelerator, e.precision, name};
      if (!has_row(rows, key)) add_heir(key);
    }
  }
}

std::vector<FittedRow> EfficiencyFit::rows(HoldOut by, std::string_view without) const {
  std::map<GroupKey, std::vector<FitRun*>> kept;
  std::map<GroupKey, GroupFit> alone;
  std::map<GroupKey, Told> told;
  std::set<std::string> sources;
  for (auto& [key, runs] : data_->groups) {
    for (FitRun& run : runs)
      if (without.empty() || fold_of(run.published, by) != without) kept[key].push_back(&run);
    auto fit = data_->fit(key, kept[key]);
    if (!fit) continue;
    for (const FitRun* run : kept[key]) sources.emplace(run->source);
    const Efficiency& prior = *prior_of(data_->catalog, key);
    if (data_->is_gpu(key)) told[key] = told_by(*fit, logs_of(prior), data_->year_of(key));
    alone.emplace(key, std::move(*fit));
  }
  std::vector<FittedRow> result;
  for (const auto& [key, fit] : alone) {
    GroupFit pooled = fit;
    if (data_->is_gpu(key))
      pooled = data_->pool(key, kept[key], data_->moved(key, told), fit, without.empty());
    for (FittedRow row : data_->rows_of(key, pooled, kept[key])) {
      if (row.middle) row.efficiency.stack = key.stacks;
      for (const Precision precision : precisions_of(key, data_->catalog)) {
        row.efficiency.precision = precision;
        result.push_back(row);
      }
    }
  }
  data_->add_unfitted(result, told, {sources.begin(), sources.end()});
  return result;
}

}  // namespace reckon
