#include "sim/accuracy/evidence/local_posterior.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/accuracy/evidence/posterior.h"

namespace reckon {
namespace {

// A question is answered from so many runs, those most alike; of one program (source, network,
// stack, accelerator), whose runs share their error, from no more than kOfProgram.
constexpr std::size_t kMostRuns = 64, kOfProgram = 6;
constexpr std::size_t kCandidates = 512;
// Published residuals beyond a factor of 3.3 are no measurements of speed.
constexpr double kMostResidual = 1.2;
// Noise of a run, in standard deviations of the best documented.
constexpr double kNoiseOfB = 1.22, kNoiseOfC = 2;

/// From run to run, and of one's own what its steps leave open besides.
double noise_of(const EvidenceRun& of, const EvidenceKernel& kernel) {
  const char trust = of.run.trust;
  return std::hypot(kernel.noise * (trust == 'C'   ? kNoiseOfC
                                    : trust == 'B' ? kNoiseOfB
                                                   : 1),
                    of.own_noise);
}

double alike(const EvidenceFeatures& a, const EvidenceFeatures& b, const EvidenceKernel& kernel) {
  return device_covariance(a, b, kernel) + link_covariance(a, b, kernel);
}

std::vector<TakenRun> take(const EvidenceFeatures& question,
                           std::span<const std::size_t> candidates,
                           std::span<const EvidenceRun> runs, const ResidualOf& residual_of,
                           const EvidenceKernel& kernel) {
  std::vector<std::pair<double, std::size_t>> order;
  for (const std::size_t i : candidates)
    order.emplace_back(-alike(question, runs[i].features, kernel), i);
  std::stable_sort(order.begin(), order.end());
  std::map<std::tuple<WordId, WordId, WordId, WordId>, std::size_t> of_program;
  std::vector<TakenRun> taken;
  for (const auto& [negative, i] : order) {
    if (taken.size() == kMostRuns) break;
    const EvidenceFeatures& f = runs[i].features;
    std::size_t& n = of_program[{f.source, f.network, f.stack, f.accelerator}];
    if (n == kOfProgram) continue;
    const auto residual = residual_of(i);
    if (!residual) continue;
    ++n;
    taken.push_back({i, 0, *residual});
  }
  return taken;
}

}  // namespace

std::vector<EvidenceRun> gather_evidence(std::span<const PublishedRun> runs,
                                         const Catalog& catalog) {
  FeatureReader features(catalog);
  std::map<std::pair<RunConfiguration, std::string_view>, std::size_t> at;
  std::vector<EvidenceRun> result;
  std::vector<std::vector<double>> measured;
  for (const PublishedRun& run : runs) {
    const auto [known, is_new] = at.try_emplace({run.run, run.source}, result.size());
    if (is_new) {
      const auto f = features(run);
      if (!f || !(run.measured.v > 0)) {
        at.erase(known);
        continue;
      }
      result.push_back({run, *f});
      measured.emplace_back();
    }
    measured[known->second].push_back(run.measured.v);
  }
  for (std::size_t i = 0; i < result.size(); ++i) {
    std::vector<double>& all = measured[i];
    const auto middle = all.begin() + std::ptrdiff_t(all.size() / 2);
    std::nth_element(all.begin(), middle, all.end());
    result[i].run.measured = SamplesPerSecond{*middle};
    result[i].runs = static_cast<int>(all.size());
  }
  return result;
}

std::vector<EvidenceRun> gather_own(std::span<const OwnRow> rows, const Catalog& catalog) {
  std::vector<EvidenceRun> result;
  for (const OwnRow& row : rows) {
    const auto features = features_of(row, catalog);
    if (!features || !(row.step_seconds > 0) || !(row.modelled_seconds > 0)) continue;
    EvidenceRun own;
    own.run.id = row.id;
    own.run.source = kOwnSource;
    own.run.trust = 'A';
    own.run.run.accelerator = row.accelerator;
    own.run.run.accelerators = row.accelerators;
    own.run.run.model = row.network;
    own.run.run.stack = row.stack;
    own.run.measured = SamplesPerSecond{row.samples / row.step_seconds};
    own.features = *features;
    own.own = RunResidual{std::log(row.modelled_seconds / row.step_seconds), row.device_share};
    own.own_noise = row.noise;
    result.push_back(own);
  }
  return result;
}

namespace {

/// The question as if neither its stack nor its links were said.
EvidenceFeatures unsaid(EvidenceFeatures question) {
  question.stack = question.stack_family = question.link = 0;
  return question;
}
bool says_more(const EvidenceFeatures& question) {
  return question.stack != 0 || question.link != 0;
}

std::vector<std::size_t> most_alike(const EvidenceFeatures& question,
                                    std::span<const EvidenceRun> runs,
                                    const EvidenceKernel& kernel) {
  std::vector<double> values(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EvidenceFeatures of = runs[i].features;
    of.log_count = question.log_count;
    of.log_batch = question.log_batch;
    values[i] = alike(question, of, kernel);
  }
  std::vector<std::size_t> result(runs.size());
  std::iota(result.begin(), result.end(), 0);
  std::erase_if(result, [&](std::size_t i) { return values[i] <= 0; });
  std::stable_sort(result.begin(), result.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] > values[b]; });
  if (result.size() > kCandidates) result.resize(kCandidates);
  return result;
}

}  // namespace

std::vector<std::size_t> candidates_for(const EvidenceFeatures& question,
                                        std::span<const EvidenceRun> runs,
                                        const EvidenceKernel& kernel) {
  std::vector<std::size_t> result = most_alike(question, runs, kernel);
  if (!says_more(question)) return result;
  std::vector<bool> has(runs.size());
  for (const std::size_t i : result) has[i] = true;
  for (const std::size_t i : most_alike(unsaid(question), runs, kernel))
    if (!has[i]) result.push_back(i);
  return result;
}

namespace {

/// Of more runs than a question takes, those of its stack may crowd out others that tell more: the
/// runs that would be taken if it were not said are taken too.
void add_unsaid(std::vector<TakenRun>& taken, const EvidenceFeatures& question,
                std::span<const std::size_t> candidates, std::span<const EvidenceRun> runs,
                const ResidualOf& residual_of, const EvidenceKernel& kernel) {
  std::vector<bool> has(runs.size());
  for (const TakenRun& t : taken) has[t.run] = true;
  for (const TakenRun& t : take(unsaid(question), candidates, runs, residual_of, kernel))
    if (!has[t.run]) taken.push_back(t);
}

/// The runs that a question takes, as observations of a Gaussian process.
class Observed {
 public:
  Observed(std::span<const TakenRun> taken, std::span<const EvidenceRun> runs,
           const EvidenceKernel& kernel)
      : taken_(taken), runs_(runs), kernel_(kernel) {
    for (std::size_t i = 0; i < taken.size(); ++i) {
      const bool own = run(i).own.has_value();
      const double value = taken[i].residual.value;
      all_.push_back({.value = own ? value : std::clamp(value, -kMostResidual, kMostResidual),
                      .noise = noise_of(run(i), kernel),
                      .certain = own});
      (own ? own_ : published_).push_back(i);
    }
    find_own_programs();
  }

  std::span<const Observation> observations() const { return all_; }
  bool any_own() const { return !own_.empty(); }

  double covariance(std::size_t i, std::size_t j) const {
    const EvidenceFeatures &a = run(i).features, &b = run(j).features;
    const double x = taken_[i].residual.share, y = taken_[j].residual.share;
    const double of_devices =
        i == j ? device_variance(a, kernel_) : device_covariance(a, b, kernel_);
    const double of_links = i == j ? link_variance(a, kernel_) : link_covariance(a, b, kernel_);
    return x * y * of_devices + (1 - x) * (1 - y) * of_links;
  }

  /// What two runs of one's own program have in common besides: see own_program().
  double own_covariance(std::size_t i, std::size_t j) const {
    const WordId network = run(i).features.network;
    return is_own(i) && is_own(j) && run(j).features.network == network ? own_program(network) : 0;
  }
  /// Run i with a question of that network by the owner of the runs.
  double own_with_question(std::size_t i, WordId network) const {
    return is_own(i) && run(i).features.network == network ? own_program(network) : 0;
  }

 private:
  const EvidenceRun& run(std::size_t i) const { return runs_[taken_[i].run]; }
  bool is_own(std::size_t i) const { return all_[i].certain; }

  /// The variance of what one's own program has for itself, beyond what published runs lead one to
  /// expect of it: the kernel is fitted to published programs, and a user's may be tuned better, or
  /// be slowed by something that no publisher would leave in. Of maximum likelihood, by the
  /// network: the mean over one's own runs of e^2 - v, where e is what a run is off the posterior
  /// of the published ones, and v the variance of that; not less than 0 [empirical Bayes; Efron
  /// 2010, "Large-Scale Inference", section 1.2].
  double own_program(WordId network) const {
    const auto found = own_programs_.find(network);
    return found == own_programs_.end() ? 0 : found->second;
  }
  void find_own_programs() {
    if (own_.empty()) return;
    std::vector<Observation> published;
    for (const std::size_t i : published_) published.push_back(all_[i]);
    const Posterior posterior(published, [&](std::size_t i, std::size_t j) {
      return covariance(published_[i], published_[j]);
    });
    std::map<WordId, std::vector<double>> beyond;
    for (const std::size_t i : own_) {
      std::vector<double> with;
      for (const std::size_t j : published_) with.push_back(covariance(i, j));
      const double off = all_[i].value - posterior.mean(with);
      const double variance = covariance(i, i) - posterior.explained(with, with);
      beyond[run(i).features.network].push_back(off * off - variance -
                                                all_[i].noise * all_[i].noise);
    }
    for (const auto& [network, each] : beyond)
      own_programs_[network] =
          std::max(0.0, std::accumulate(each.begin(), each.end(), 0.0) / double(each.size()));
  }

  std::span<const TakenRun> taken_;
  std::span<const EvidenceRun> runs_;
  const EvidenceKernel& kernel_;
  std::vector<Observation> all_;
  std::vector<std::size_t> own_, published_;
  std::map<WordId, double> own_programs_;
};

}  // namespace

LocalPosterior solve_locally(const EvidenceFeatures& question,
                             std::span<const std::size_t> candidates,
                             std::span<const EvidenceRun> runs, const ResidualOf& residual_of,
                             const EvidenceKernel& kernel) {
  LocalPosterior local;
  local.taken = take(question, candidates, runs, residual_of, kernel);
  if (says_more(question)) add_unsaid(local.taken, question, candidates, runs, residual_of, kernel);
  const auto& taken = local.taken;
  const Observed observed(taken, runs, kernel);
  Posterior::Covariance of_own;
  if (observed.any_own())
    of_own = [&](std::size_t i, std::size_t j) { return observed.own_covariance(i, j); };
  const Posterior posterior(
      observed.observations(),
      [&](std::size_t i, std::size_t j) { return observed.covariance(i, j); }, of_own);
  std::vector<double> device, links, device_mean, links_mean;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const double share = taken[i].residual.share;
    const EvidenceFeatures& of = runs[taken[i].run].features;
    // One's own program is off in all of a step: in both of its parts.
    const double own = observed.own_with_question(i, question.network);
    device.push_back(share * device_covariance(question, of, kernel));
    links.push_back((1 - share) * link_covariance(question, of, kernel));
    device_mean.push_back(device.back() + own);
    links_mean.push_back(links.back() + own);
  }
  ResidualParts& p = local.parts;
  p.device = posterior.mean(device_mean);
  p.links = posterior.mean(links_mean);
  p.device_variance = device_variance(question, kernel) - posterior.explained(device, device);
  p.links_variance = link_variance(question, kernel) - posterior.explained(links, links);
  p.both_variance = -posterior.explained(device, links);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    local.taken[i].weight = posterior.weight(i);
    const double both = std::sqrt(device_variance(question, kernel) *
                                  device_variance(runs[taken[i].run].features, kernel));
    local.taken[i].correlation =
        device_covariance(question, runs[taken[i].run].features, kernel) / both;
  }
  return local;
}

}  // namespace reckon
