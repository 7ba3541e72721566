#include "sim/calibration/fit.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <tuple>

#include "sim/accuracy/run_layout.h"
#include "sim/calibration/fit_group.h"
#include "sim/forecast/forecast.h"

namespace reckon {
namespace {

using GroupKey = std::pair<std::string, Precision>;

bool explainable(const PublishedRun& r, const Plan& plan) {
  const PlannedPool& pool = *plan.pool_with(Role::worker);
  if (pool.slice) {
    // Larger slices finish in a minute or two, of which evaluation is a large part.
    constexpr int kMostChips = 512;
    return pool.accelerator->name != "TPU-v2" && pool.slice->chips <= kMostChips;
  }
  const bool own_links = pool.accelerator->peer_bandwidth.has_value();
  return r.run.accelerators == 1 || (pool.nodes_max == 1 && own_links);
}

/// Of a configuration, what its network follows from.
RunConfiguration network_of(const RunConfiguration& run) {
  RunConfiguration n;
  n.model = run.model;
  n.variant = run.variant;
  n.layers = run.layers;
  n.hidden = run.hidden;
  n.heads = run.heads;
  n.kv_heads = run.kv_heads;
  n.head_width = run.head_width;
  n.feed_forward = run.feed_forward;
  n.vocabulary = run.vocabulary;
  n.parameters = run.parameters;
  n.experts = run.experts;
  n.experts_per_token = run.experts_per_token;
  n.shared_experts = run.shared_experts;
  n.gated_feed_forward = run.gated_feed_forward;
  n.sequence_length = run.sequence_length;
  return n;
}

/// Of runs that share an error each further one says less: of many, some that are spread evenly.
void thin(std::vector<FitRun>& runs) {
  constexpr std::size_t kMost = 30;
  using Alike = std::tuple<std::string_view, std::string_view, std::string_view>;
  const auto alike = [](const FitRun& r) { return Alike{r.source, r.stack, r.model}; };
  std::map<Alike, std::size_t> count, seen;
  for (const FitRun& r : runs) ++count[alike(r)];
  std::erase_if(runs, [&](const FitRun& r) {
    const std::size_t n = count[alike(r)], i = seen[alike(r)]++;
    return n > kMost && (i + 1) * kMost / n == i * kMost / n;
  });
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
  double year_of(const GroupKey& key) const {
    int year = 0;
    for (const Accelerator& a : catalog.accelerators)
      if ((a.name == key.first || a.architecture == key.first) && (year == 0 || a.year < year))
        year = a.year;
    return year;
  }
  bool is_gpu(const GroupKey& key) const {
    return std::ranges::any_of(catalog.accelerators, [&](const Accelerator& a) {
      return a.kind == AcceleratorKind::gpu && (a.name == key.first || a.architecture == key.first);
    });
  }
};

EfficiencyFit::EfficiencyFit(std::span<const PublishedRun> runs, const Catalog& catalog)
    : data_(new Data{catalog}) {
  std::map<RunConfiguration, std::shared_ptr<const ModelFold>> folds;  // by network
  using Same = std::tuple<RunConfiguration, std::string_view>;
  std::map<Same, std::vector<double>> measured;
  for (const PublishedRun& r : runs) measured[{r.run, r.source}].push_back(r.measured.v);
  std::set<Same> done;
  for (const PublishedRun& r : runs) {
    if (!done.insert({r.run, r.source}).second) continue;
    if (r.trust == 'C' || hides_layout(r.run)) continue;
    auto plan = plan_of_run(r.run, catalog);
    if (!plan || !explainable(r, *plan)) continue;
    const Accelerator& accelerator = *plan->pool_with(Role::worker)->accelerator;
    const GroupKey key{row_name(accelerator, catalog), plan->jobs.front().precision};
    const double rate = quantile(measured[{r.run, r.source}], 0.5);
    FitRun run{std::move(*plan),  nullptr, std::log(rate), r.source, r.run.stack,
               model_name(r.run), r};
    const PlannedWorkload& job = run.plan.jobs.front();
    if (cuts_the_model(job.strategy.kind)) {
      auto& fold = folds[network_of(r.run)];
      if (!fold) fold = std::make_shared<const ModelFold>(job.model);
      run.fold = fold;
    }
    data_->groups[key].push_back(std::move(run));
  }
  for (auto& [key, group] : data_->groups) thin(group);
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
  constexpr double kSame = 0.02;
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

namespace {

// Numbers that a row inherits from others: what convolutions, matrix products and memory reach.
// Whether attention writes its scores, how large kernels are, and what issues them and how fast is
// the programs' that ran there.
const FitLogs kOfDevice = (FitLogs() << 1, 1, 0, 1, 0, 0, 0).finished();

/// What the runs of one row say against its prior, in logarithms, and how surely.
struct Told {
  FitLogs shift, weight;
  double year = 0;  // of its first accelerator
};

/// A fit lies between its prior and what its runs say by themselves, by their weights.
Told told_by(const GroupFit& fit, const FitLogs& prior) {
  constexpr double kNothing = 1e-9;
  Told told;
  for (Eigen::Index i = 0; i < prior.size(); ++i) {
    const double spread = prior_spread()[i];
    const double all = 1 / (fit.errors[i] * fit.errors[i]), own = 1 / (spread * spread);
    const double runs = std::max(kNothing, all - own);
    told.shift[i] = (fit.logs[i] - prior[i]) * all / runs;
    told.weight[i] = 1 / (1 / runs + spread * spread);
  }
  return told;
}

/// By how much priors of the other GPUs were wrong, on the mean (empirical Bayes [Efron 2010,
/// "Large-Scale Inference", chapter 1]), those of its own years first; drawn towards zero where few
/// rows tell.
FitLogs inherited(const std::map<GroupKey, Told>& told, const GroupKey& heir, double year) {
  constexpr double kGeneration = 2;  // years
  FitLogs sum = FitLogs::Zero(), weight = FitLogs::Zero();
  for (const auto& [key, t] : told) {
    if (key == heir) continue;
    const double near = std::exp(-std::abs(t.year - year) / kGeneration);
    sum += near * t.weight.cwiseProduct(t.shift);
    weight += near * t.weight;
  }
  const FitLogs drawn = prior_spread().cwiseProduct(prior_spread()).cwiseInverse();
  return sum.cwiseQuotient(weight + drawn).cwiseProduct(kOfDevice);
}

}  // namespace

std::string EfficiencyFit::inputs_digest() const {
  std::string inputs;
  for (auto& [key, runs] : data_->groups) {
    const Efficiency* prior = prior_of(data_->catalog, key);
    if (prior == nullptr) continue;
    for (FitRun& run : runs)
      inputs += fmt::format("{} {} {} {} {} {:.6g} {:.6g}\n", key.first, to_text(key.second),
                            run.source, run.stack, run.model, run.log_measured,
                            log_rate(run, *prior, *data_->network));
  }
  for (const Efficiency& e : data_->catalog.efficiencies) {
    if (data_->catalog.sources[index(e.convolution.source)].id == kFittedSource) continue;
    inputs += fmt::format("{} {} {}", e.accelerator, to_text(e.precision), e.stack);
    for (const double number : logs_of(e)) inputs += fmt::format(" {:.6g}", number);
    inputs += '\n';
  }
  return fmt::format("{:016x}", XXH3_64bits(inputs.data(), inputs.size()));
}

std::vector<FittedRow> EfficiencyFit::rows(HoldOut by, std::string_view without) const {
  const auto moved = [&](const GroupKey& key, const std::map<GroupKey, Told>& told) {
    constexpr double kMostOfPeak = 0.95;
    const Efficiency& prior = *prior_of(data_->catalog, key);
    const FitLogs known = logs_of(prior);
    FitLogs logs = known + inherited(told, key, data_->year_of(key));
    for (const Eigen::Index i : {0, 1})
      logs[i] = std::min(logs[i], std::max(known[i], std::log(kMostOfPeak)));
    return efficiency_of(logs, GroupFit::Stack{}, prior);
  };
  std::map<GroupKey, std::vector<FitRun*>> kept;
  std::map<GroupKey, GroupFit> alone;
  std::map<GroupKey, Told> told;
  for (auto& [key, runs] : data_->groups) {
    for (FitRun& run : runs)
      if (without.empty() || fold_of(run.published, by) != without) kept[key].push_back(&run);
    auto fit = data_->fit(key, kept[key]);
    if (!fit) continue;
    if (data_->is_gpu(key)) {
      told[key] = told_by(*fit, logs_of(*prior_of(data_->catalog, key)));
      told[key].year = data_->year_of(key);
    }
    alone.emplace(key, std::move(*fit));
  }
  std::vector<FittedRow> result;
  for (const auto& [key, fit] : alone) {
    GroupFit pooled = fit;
    if (data_->is_gpu(key))
      pooled = data_->pool(key, kept[key], moved(key, told), fit, without.empty());
    const auto rows = data_->rows_of(key, pooled, kept[key]);
    result.insert(result.end(), rows.begin(), rows.end());
  }
  std::set<std::string> sources;
  for (const auto& [key, fit] : alone)
    for (const FitRun* run : kept.at(key)) sources.emplace(run->source);
  std::set<GroupKey> done;
  for (const Efficiency& e : data_->catalog.efficiencies) {
    const GroupKey key{e.accelerator, e.precision};
    const bool heir = !told.empty() && !alone.contains(key) && data_->is_gpu(key) &&
                      prior_of(data_->catalog, key) != nullptr;
    if (!heir || !done.insert(key).second) continue;
    FittedRow row;
    row.efficiency = moved(key, told);
    row.efficiency.stack.clear();
    for (std::size_t i = 0; i < kFittedNumbers; ++i)
      row.standard_errors[i] = prior_spread()[static_cast<Eigen::Index>(i)];
    row.sources.assign(sources.begin(), sources.end());
    result.push_back(std::move(row));
  }
  return result;
}

}  // namespace reckon
