#include "sim/accuracy/scoring/evidence_tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/accuracy/evidence/evidence.h"
#include "sim/accuracy/evidence/local_posterior.h"
#include "sim/accuracy/run/plan.h"
#include "sim/accuracy/scoring/accuracy.h"
#include "sim/accuracy/scoring/fit/fit.h"
#include "sim/base/parallel.h"

namespace reckon {
namespace {

/// What is held out together, and what the catalog without it makes of every run.
struct TuningFold {
  HoldOut by = HoldOut::source;
  std::string name;
  std::vector<std::optional<RunResidual>> residuals;
};

/// A held-out run.
struct HeldOut {
  const TuningFold* fold = nullptr;
  std::size_t run = 0;
  EvidenceFeatures question;
  std::vector<std::size_t> candidates;
  double weight = 0;
};

bool is_held(const TuningFold& fold, const EvidenceRun& run) {
  return fold_of(run.run, fold.by) == fold.name;
}

std::vector<std::pair<HoldOut, std::string>> folds_of(std::span<const EvidenceRun> runs) {
  std::set<std::pair<HoldOut, std::string>> folds;
  std::map<std::string, std::set<std::string>> sources;
  for (const EvidenceRun& e : runs) {
    folds.emplace(HoldOut::source, fold_of(e.run, HoldOut::source));
    sources[fold_of(e.run, HoldOut::publisher)].insert(fold_of(e.run, HoldOut::source));
    if (e.run.source == "vtrain") folds.emplace(HoldOut::model, fold_of(e.run, HoldOut::model));
  }
  for (const auto& [publisher, own] : sources)
    if (own.size() > 1) folds.emplace(HoldOut::publisher, publisher);
  return {folds.begin(), folds.end()};
}

std::vector<std::optional<RunResidual>> residuals_against(std::span<const EvidenceRun> runs,
                                                          const Catalog& catalog) {
  Predictor predict(catalog);
  std::vector<std::optional<RunResidual>> result;
  for (const EvidenceRun& e : runs) {
    const Predicted& p = predict(e.run.run);
    result.emplace_back();
    if (p) result.back() = {std::log(e.run.measured / p->rate), p->device_share};
  }
  return result;
}

bool is_share(const KernelNumber& n) { return n.least == 0 && n.most == 1; }

/// Numbers that few runs tell of stay near what EvidenceKernel says of itself. Of the links hardly
/// any does: in 2 % of the published runs of trust A they take more than a fifth of the step, and
/// their amplitudes would follow the few that are off for other reasons.
double log_prior(EvidenceKernel& kernel) {
  // Standard deviations of ln; the least that ln is taken of.
  constexpr double kSpread = 2, kSpreadOfLinks = 0.4, kLeast = 0.005;
  EvidenceKernel general;
  const auto known = numbers_of(general), is = numbers_of(kernel);
  double sum = 0;
  for (std::size_t k = 0; k < is.size(); ++k) {
    const auto scale = [&](double v) {
      return is_share(is[k]) ? 0.5 * std::log((v + kLeast) / (1 + kLeast - v))
                             : std::log(std::max(v, kLeast));
    };
    const double spread = is[k].name.starts_with("links") ? kSpreadOfLinks : kSpread;
    const double off = (scale(*is[k].value) - scale(*known[k].value)) / spread;
    sum -= 0.5 * off * off;
  }
  return sum;
}

class Tuning {
 public:
  Tuning(std::span<const PublishedRun> runs, const Catalog& catalog)
      : runs_(gather_evidence(runs, catalog)) {
    const EfficiencyFit fit(runs, catalog);
    fit.rows();  // near which the fits without a fold begin
    for (auto& [by, name] : folds_of(runs_)) {
      auto rows = fit.rows(by, name);
      const auto stacks = share_stacks(rows, catalog);
      folds_.push_back({by, name, residuals_against(runs_, with_fitted(catalog, rows, stacks))});
    }
  }

  /// Candidates are chosen anew.
  void ask(const EvidenceKernel& kernel) {
    held_.clear();
    for (const TuningFold& fold : folds_) ask_of(fold, kernel);
  }

  /// Without constants: what the runs say, each with its weight, and the prior.
  double log_posterior(EvidenceKernel kernel) const {
    std::vector<double> densities(held_.size());
    parallel_for(held_.size(), 0,
                 [&](std::size_t i) { densities[i] = log_density(held_[i], kernel); });
    double sum = log_prior(kernel);
    for (std::size_t i = 0; i < held_.size(); ++i) sum += held_[i].weight * densities[i];
    return sum;
  }

 private:
  void ask_of(const TuningFold& fold, const EvidenceKernel& kernel) {
    const std::size_t most = fold.by == HoldOut::model ? 10 : 60;
    std::vector<EvidenceRun> others;
    std::vector<std::size_t> index, own;
    std::set<std::tuple<std::string_view, std::string_view, int>> groups;
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      const RunConfiguration& run = runs_[i].run.run;
      if (!is_held(fold, runs_[i])) {
        others.push_back(runs_[i]);
        index.push_back(i);
      } else if (fold.residuals[i]) {
        own.push_back(i);
        groups.emplace(run.accelerator, model_name(run), run.accelerators);
      }
    }
    const std::size_t asked = std::min(own.size(), most);
    for (std::size_t k = 0; k < asked; ++k) {
      const std::size_t i = own[k * own.size() / asked];
      HeldOut h{&fold, i, runs_[i].features, {}, 0};
      if (fold.by != HoldOut::model) h.question.source = 0;
      if (fold.by == HoldOut::publisher) h.question.publisher = 0;
      for (const std::size_t c : candidates_for(h.question, others, kernel))
        h.candidates.push_back(index[c]);
      const char trust = runs_[i].run.trust;
      h.weight = std::sqrt(double(groups.size())) / double(asked) *
                 (trust == 'A'   ? 1
                  : trust == 'B' ? 0.4
                                 : 0.2) *
                 (fold.by == HoldOut::source ? 1 : 0.4);
      held_.push_back(std::move(h));
    }
  }

  double log_density(const HeldOut& h, const EvidenceKernel& kernel) const {
    constexpr double kFreedom = 4;  // degrees of freedom, as of the posterior
    const auto& residuals = h.fold->residuals;
    const auto residual_of = [&](std::size_t i) { return residuals[i]; };
    const auto local = solve_locally(h.question, h.candidates, runs_, residual_of, kernel);
    const RunResidual& is = *residuals[h.run];
    const double variance =
        std::max(0.0, local.parts.variance(is.share)) + kernel.noise * kernel.noise;
    const double off = is.value - local.parts.mean(is.share);
    static const double constant = std::lgamma((kFreedom + 1) / 2) - std::lgamma(kFreedom / 2) -
                                   0.5 * std::log(kFreedom * std::numbers::pi);
    return constant - 0.5 * std::log(variance) -
           (kFreedom + 1) / 2 * std::log1p(off * off / variance / kFreedom);
  }

  std::vector<EvidenceRun> runs_;
  std::vector<TuningFold> folds_;
  std::vector<HeldOut> held_;
};

/// A number moved by a factor; of a share its odds.
double moved(const KernelNumber& n, double factor) {
  constexpr double kLeast = 0.005, kMostShare = 0.99;  // in the number's unit; 0..1
  if (!is_share(n)) return std::clamp(*n.value * factor, std::max(kLeast, n.least), n.most);
  const double odds = (*n.value + kLeast) / (1 + kLeast - *n.value) * factor * factor;
  return std::clamp(odds / (1 + odds), 0.0, kMostShare);
}

}  // namespace

EvidenceKernel tune_evidence(std::span<const PublishedRun> runs, const Catalog& catalog,
                             EvidenceKernel kernel, int rounds,
                             const std::function<void(const std::string&)>& tell) {
  // Of the log posterior; factors on a number, and on what is above 1 in such a factor.
  constexpr double kGain = 0.02, kFirst = 1.5, kShrink = 0.6, kLast = 1.1;
  Tuning tuning(runs, catalog);
  std::map<std::string, double> factors;
  for (int round = 0; round < rounds; ++round) {
    tuning.ask(kernel);
    double best = tuning.log_posterior(kernel);
    bool gained = false, small = true;
    for (KernelNumber& n : numbers_of(kernel)) {
      if (n.value == &kernel.interval) continue;  // not in the posterior
      double& factor = factors.try_emplace(n.name, kFirst).first->second;
      const double before = *n.value;
      bool better = false;
      for (const double by : {factor, 1 / factor}) {
        *n.value = moved(n, by);
        const double now = tuning.log_posterior(kernel);
        better = now > best + kGain;
        if (better) best = now;
        if (better) break;
        *n.value = before;
      }
      if (better) tell(fmt::format("{} {:.4g}: {:.2f}", n.name, *n.value, best));
      if (!better) factor = 1 + (factor - 1) * kShrink;
      gained = gained || better;
      small = small && factor < kLast;
    }
    if (!gained && small) break;
  }
  return kernel;
}

}  // namespace reckon
