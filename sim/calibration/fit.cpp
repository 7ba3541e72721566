#include "sim/calibration/fit.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "sim/calibration/fit_group.h"
#include "sim/forecast/forecast.h"

namespace reckon {
namespace {

using GroupKey = std::pair<std::string, Precision>;

bool explainable(const PublishedRun& r, const Plan& plan) {
  if (r.trust == 'C') return false;
  const PlannedPool& pool = *plan.pool_with(Role::worker);
  if (pool.slice) {
    // Larger slices finish in a minute or two, of which evaluation is a large part.
    constexpr int kMostChips = 512;
    return pool.accelerator->name != "TPU-v2" && pool.slice->chips <= kMostChips;
  }
  const bool own_links = pool.accelerator->peer_bandwidth.has_value();
  return r.run.accelerators == 1 || (pool.nodes_max == 1 && own_links);
}

/// The row that the fit starts from: "prior", else what is not fitted.
const Efficiency* prior_of(const Catalog& catalog, const GroupKey& key) {
  const Efficiency* any = nullptr;
  for (const Efficiency& e : catalog.efficiencies) {
    if (e.accelerator != key.first || e.precision != key.second) continue;
    if (e.stack == kPriorStack) return &e;
    if (e.stack.empty()) any = &e;
  }
  return any;
}

}  // namespace

std::string_view row_name(const Accelerator& accelerator, const Catalog& catalog) {
  for (const Efficiency& e : catalog.efficiencies)
    if (e.accelerator == accelerator.name) return accelerator.name;
  return accelerator.architecture;
}

struct EfficiencyFit::Data {
  const Catalog& catalog;
  std::unique_ptr<NetworkModel> network = make_fluid_network();
  mutable std::map<GroupKey, std::vector<FitRun>> groups;  // a run's plan is a place to work in
  mutable std::map<GroupKey, GroupFit> whole;              // fitted to all sources

  /// nullopt: too few runs.
  std::optional<GroupFit> fit(const GroupKey& key, std::span<FitRun* const> runs) const;
  std::vector<FittedRow> rows_of(const GroupKey& key, const GroupFit& fit,
                                 std::span<FitRun* const> runs) const;
};

EfficiencyFit::EfficiencyFit(std::span<const PublishedRun> runs, const Catalog& catalog)
    : data_(new Data{catalog}) {
  using Same = std::tuple<RunConfiguration, std::string_view>;
  std::map<Same, std::vector<double>> measured;
  for (const PublishedRun& r : runs) measured[{r.run, r.source}].push_back(r.measured.v);
  std::set<Same> done;
  for (const PublishedRun& r : runs) {
    if (!done.insert({r.run, r.source}).second) continue;
    auto plan = plan_of_run(r.run, catalog);
    if (!plan || !explainable(r, *plan)) continue;
    const Accelerator& accelerator = *plan->pool_with(Role::worker)->accelerator;
    const GroupKey key{row_name(accelerator, catalog), plan->jobs.front().precision};
    const double rate = quantile(measured[{r.run, r.source}], 0.5);
    data_->groups[key].push_back(
        {std::move(*plan), std::log(rate), r.source, r.run.stack, model_name(r.run)});
  }
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

std::vector<FittedRow> EfficiencyFit::Data::rows_of(const GroupKey& key, const GroupFit& fit,
                                                    std::span<FitRun* const> runs) const {
  const Efficiency* prior = prior_of(catalog, key);
  std::vector<FittedRow> rows;
  const auto add = [&](std::string_view stack, auto belongs) {
    FittedRow row;
    const bool any = stack.empty();
    const GroupFit::Stack own = any ? GroupFit::Stack{} : fit.stacks.at(stack);
    row.efficiency = efficiency_of(fit.logs, own, *prior);
    row.efficiency.stack = std::string(stack);
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
    if (!any) row.standard_errors[kHostNumber] = own.host_error;
    if (independent.enough()) rows.push_back(std::move(row));
  };
  add("", [](const FitRun&) { return true; });
  for (const auto& factor : fit.stacks)
    add(factor.first, [&](const FitRun& run) { return run.stack == factor.first; });
  return rows;
}

std::vector<FittedRow> EfficiencyFit::rows(std::string_view without) const {
  std::vector<FittedRow> result;
  for (auto& [key, runs] : data_->groups) {
    std::vector<FitRun*> kept;
    for (FitRun& run : runs)
      if (run.source != without) kept.push_back(&run);
    const auto fit = data_->fit(key, kept);
    if (!fit) continue;
    const auto rows = data_->rows_of(key, *fit, kept);
    result.insert(result.end(), rows.begin(), rows.end());
  }
  return result;
}

Catalog with_fitted(const Catalog& catalog, std::span<const FittedRow> rows,
                    std::span<const FittedStack> stacks) {
  Catalog result = catalog;
  const auto fitted_before = [&](SourceId source) {
    return catalog.sources[index(source)].id == "fitted";
  };
  std::erase_if(result.efficiencies,
                [&](const Efficiency& e) { return fitted_before(e.convolution.source); });
  std::erase_if(result.stacks,
                [&](const SoftwareStack& s) { return fitted_before(s.speed.source); });
  for (const FittedStack& s : stacks) result.stacks.push_back(s.stack);
  // A prior stands in for a row that is fitted no more.
  std::vector<Efficiency> priors;
  for (const Efficiency& e : result.efficiencies)
    if (e.stack == kPriorStack) {
      priors.push_back(e);
      priors.back().stack.clear();
    }
  result.efficiencies.insert(result.efficiencies.end(), priors.begin(), priors.end());
  for (const FittedRow& row : rows) {
    std::erase_if(result.efficiencies, [&](const Efficiency& e) {
      return e.accelerator == row.efficiency.accelerator &&
             e.precision == row.efficiency.precision && e.stack == row.efficiency.stack;
    });
    result.efficiencies.push_back(row.efficiency);
  }
  return result;
}

}  // namespace reckon
