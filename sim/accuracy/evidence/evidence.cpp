#include "sim/accuracy/evidence/evidence.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <tuple>
#include <utility>

#include "sim/accuracy/run/plan.h"

namespace reckon {
namespace {

// Nodes of the table of a class: accelerators and samples an accelerator, in steps of four.
constexpr double kStep = 1.3862943611198906;  // ln 4
constexpr int kCounts = 10, kBatches = 14;
constexpr int kLeastBatch = -4;  // 1/256 of a sample an accelerator

/// Where a question lies in the table.
struct GridPlace {
  int count = 0, batch = 0;  // the lower node
  double along_count = 0, along_batch = 0;
};

std::pair<int, double> node_of(double log, int first, int nodes) {
  const double at = std::clamp(log / kStep - first, 0.0, nodes - 1.001);
  return {static_cast<int>(at), at - std::floor(at)};
}

GridPlace place_of(double log_count, double log_batch) {
  GridPlace p;
  std::tie(p.count, p.along_count) = node_of(log_count, 0, kCounts);
  std::tie(p.batch, p.along_batch) = node_of(log_batch, kLeastBatch, kBatches);
  return p;
}

ResidualParts blend(const ResidualParts& a, const ResidualParts& b, double along) {
  const auto between = [along](double x, double y) { return x + along * (y - x); };
  return {between(a.device, b.device), between(a.links, b.links),
          between(a.device_variance, b.device_variance), between(a.both_variance, b.both_variance),
          between(a.links_variance, b.links_variance)};
}

/// All that a class of questions has in common: everything but sizes.
using ClassKey = std::tuple<WordId, Precision, Domain, WordId, double, WordId, WordId, WordId,
                            WordId, bool, bool, char>;
ClassKey key_of(const EvidenceFeatures& f) {
  return {f.accelerator, f.precision, f.domain, f.network,    f.log_parameters,    f.stack,
          f.source,      f.publisher, f.link,   f.many_nodes, f.accelerators == 1, f.trust};
}

}  // namespace

double device_share(const StepEstimate& step) {
  constexpr double kLeastShare = 0.02;  // of the step, 0..1
  const Seconds links = step.exposed.total() - step.exposed.stragglers - step.exposed.contention;
  return step.step.count() > 0 ? std::clamp(1 - links / step.step, kLeastShare, 1.0) : 1;
}

struct Evidence::Data {
  const Catalog& catalog;
  EvidenceKernel kernel;
  std::vector<OwnRow> own;  // whose texts `runs` has
  std::vector<EvidenceRun> runs;
  std::unique_ptr<NetworkModel> network = make_default_network();
  std::mutex solving, looking;
  std::once_flag peaks_read = {};
  std::vector<MeasuredPeak> peaks = {};                                   // after peaks_read
  std::vector<std::optional<std::optional<RunResidual>>> predicted = {};  // under `solving`
  std::map<ClassKey, std::unique_ptr<EvidenceClass>> classes = {};        // under `looking`

  /// nullopt: the step model does not know it. Under `solving`.
  std::optional<RunResidual> predict(std::size_t run);
  const EvidenceClass& class_of(const EvidenceFeatures& question);
};

std::optional<RunResidual> Evidence::Data::predict(std::size_t i) {
  if (runs[i].own) return runs[i].own;
  auto& known = predicted[i];
  if (known) return *known;
  known.emplace();
  const auto plan = plan_of_run(runs[i].run.run, catalog);
  if (!plan) return *known;
  const StepEstimate step = estimate_step(*plan, plan->only_job(), *network);
  const double residual = std::log(runs[i].run.measured.v / step.samples_per_second.v);
  if (std::isfinite(residual)) *known = RunResidual{residual, device_share(step)};
  return *known;
}

/// The table of a class; nodes are solved when they are first asked for. Of what nobody measured
/// themselves a question is as good as its neighbours' between; of a run of one's own it is not,
/// and questions are solved where they stand.
class EvidenceClass {
 public:
  EvidenceClass(Evidence::Data& data, const EvidenceFeatures& question)
      : data_(data),
        question_(question),
        candidates_(candidates_for(question, data.runs, data.kernel)) {}

  const LocalPosterior& at(int count, int batch) const {
    auto& node =
        nodes_[static_cast<std::size_t>(count) * kBatches + static_cast<std::size_t>(batch)];
    if (const LocalPosterior* known = node.load(std::memory_order_acquire)) return *known;
    const std::lock_guard lock(data_.solving);
    if (const LocalPosterior* known = node.load(std::memory_order_acquire)) return *known;
    solved_.push_back(solve(count * kStep, (batch + kLeastBatch) * kStep));
    node.store(&solved_.back(), std::memory_order_release);
    return solved_.back();
  }

  ResidualParts parts(double log_count, double log_batch) const {
    return data_.own.empty() ? at(place_of(log_count, log_batch))
                             : exact(log_count, log_batch).parts;
  }
  /// The posterior that is nearest.
  const LocalPosterior& nearest(double log_count, double log_batch) const {
    if (!data_.own.empty()) return exact(log_count, log_batch);
    const GridPlace p = place_of(log_count, log_batch);
    return at(p.count + (p.along_count > 0.5 ? 1 : 0), p.batch + (p.along_batch > 0.5 ? 1 : 0));
  }

  const EvidenceKernel& kernel() const { return data_.kernel; }

 private:
  const LocalPosterior& exact(double log_count, double log_batch) const {
    {
      const std::shared_lock lock(places_);
      const auto known = exact_.find({log_count, log_batch});
      if (known != exact_.end()) return known->second;
    }
    const std::lock_guard lock(data_.solving);
    LocalPosterior solved = solve(log_count, log_batch);
    const std::unique_lock writing(places_);
    return exact_.try_emplace({log_count, log_batch}, std::move(solved)).first->second;
  }

  /// Under `solving`.
  LocalPosterior solve(double log_count, double log_batch) const {
    EvidenceFeatures question = question_;
    question.log_count = log_count;
    question.log_batch = log_batch;
    const auto residual_of = [this](std::size_t run) { return data_.predict(run); };
    return solve_locally(question, candidates_, data_.runs, residual_of, data_.kernel);
  }

  ResidualParts at(const GridPlace& p) const {
    const ResidualParts few =
        blend(at(p.count, p.batch).parts, at(p.count, p.batch + 1).parts, p.along_batch);
    if (p.along_count == 0) return few;
    const ResidualParts many =
        blend(at(p.count + 1, p.batch).parts, at(p.count + 1, p.batch + 1).parts, p.along_batch);
    return blend(few, many, p.along_count);
  }

  Evidence::Data& data_;
  EvidenceFeatures question_;
  std::vector<std::size_t> candidates_;
  mutable std::array<std::atomic<const LocalPosterior*>, std::size_t{kCounts * kBatches}> nodes_{};
  mutable std::deque<LocalPosterior> solved_;                          // under `solving`
  mutable std::map<std::pair<double, double>, LocalPosterior> exact_;  // under `places_`
  mutable std::shared_mutex places_;
};

const EvidenceClass& Evidence::Data::class_of(const EvidenceFeatures& asked) {
  const EvidenceFeatures question = own.empty() ? asked : as_own(asked);
  const std::lock_guard lock(looking);
  auto& found = classes[key_of(question)];
  if (!found) found = std::make_unique<EvidenceClass>(*this, question);
  return *found;
}

Evidence::Evidence(std::span<const PublishedRun> runs, const Catalog& catalog,
                   const EvidenceKernel& kernel, std::vector<OwnRow> own)
    : data_(new Data{catalog, kernel, std::move(own), gather_evidence(runs, catalog)}) {
  std::ranges::move(gather_own(data_->own, catalog), std::back_inserter(data_->runs));
  data_->predicted.resize(data_->runs.size());
}
Evidence::~Evidence() = default;

namespace {

Residual residual_of(const ResidualParts& parts, double share, const EvidenceKernel& kernel) {
  Residual r;
  r.mean = parts.mean(share);
  r.deviation = std::sqrt(std::max(0.0, parts.variance(share)) + kernel.noise * kernel.noise);
  r.half_width = kernel.interval * r.deviation;
  return r;
}

}  // namespace

Residual ResidualTable::at(double log_count, double log_batch, double share) const {
  return residual_of(of_->parts(log_count, log_batch), share, of_->kernel());
}

Residual Evidence::after_trial(const EvidenceFeatures& question, const EvidenceFeatures& trial,
                               double share, double noise) const {
  const EvidenceFeatures own = as_own(question);
  EvidenceRun run;
  run.run.trust = 'A';
  run.features = as_own(trial);
  run.own = RunResidual{residual(question, share).mean, share};
  run.own_noise = noise;
  std::vector<EvidenceRun> runs = data_->runs;
  auto candidates = candidates_for(own, runs, data_->kernel);
  candidates.push_back(runs.size());
  runs.push_back(run);
  const std::lock_guard lock(data_->solving);
  const auto of = [&](std::size_t i) { return i + 1 == runs.size() ? run.own : data_->predict(i); };
  return residual_of(solve_locally(own, candidates, runs, of, data_->kernel).parts, share,
                     data_->kernel);
}

ResidualTable Evidence::table(const EvidenceFeatures& question) const {
  return ResidualTable(data_->class_of(question));
}

Residual Evidence::residual(const EvidenceFeatures& question, double share) const {
  return table(question).at(question.log_count, question.log_batch, share);
}

std::vector<TakenRun> Evidence::near(const EvidenceFeatures& question) const {
  return data_->class_of(question).nearest(question.log_count, question.log_batch).taken;
}

MemoryResidual Evidence::memory(const EvidenceFeatures& question, double prior) const {
  std::call_once(data_->peaks_read, [this] {
    for (const EvidenceRun& known : data_->runs) {
      // Of experts whose parameters are not printed the columns do not say the network.
      const RunConfiguration& run = known.run.run;
      const bool unsaid = run.experts > 0 && run.parameters == 0 && run.active_parameters == 0;
      if (known.run.peak_memory.v == 0 || unsaid) continue;
      const auto plan = plan_of_run(known.run.run, data_->catalog);
      if (!plan) continue;
      const Bytes predicted = predicted_peak(estimate_memory(*plan, plan->only_job()), known.run);
      data_->peaks.push_back({known.features, std::log(known.run.peak_memory / predicted)});
    }
  });
  return memory_residual(question, data_->peaks, data_->kernel, prior);
}

std::span<const EvidenceRun> Evidence::runs() const { return data_->runs; }
const EvidenceKernel& Evidence::kernel() const { return data_->kernel; }

}  // namespace reckon
