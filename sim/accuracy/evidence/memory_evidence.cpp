#include "sim/accuracy/evidence/memory_evidence.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/accuracy/evidence/posterior.h"

namespace reckon {
namespace {

bool same_word(WordId a, WordId b) { return a != 0 && a == b; }

/// Share of the variance that two runs have in common.
double common_share(const EvidenceFeatures& a, const EvidenceFeatures& b, const EvidenceKernel& k) {
  double share = k.memory_all;
  if (same_word(a.stack, b.stack)) share += k.memory_stack;
  if (same_word(a.network, b.network)) share += k.memory_network;
  if (same_word(a.source, b.source)) share += k.memory_source;
  return share;
}

double noise_share(const EvidenceKernel& k) {
  return std::max(0.0, 1 - k.memory_all - k.memory_stack - k.memory_network - k.memory_source);
}

}  // namespace

Bytes predicted_peak(const MemoryEstimate& memory, const PublishedRun& run) {
  return run.peak_is_of_device ? memory.required() : memory.tensors();
}

MemoryResidual memory_residual(const EvidenceFeatures& question,
                               std::span<const MeasuredPeak> peaks, const EvidenceKernel& kernel,
                               double prior) {
  if (peaks.empty() || prior == 0) return {0, prior};
  const double noise = std::sqrt(noise_share(kernel)) * prior;
  std::vector<Observation> observed;
  std::vector<double> with;
  for (const MeasuredPeak& p : peaks) {
    observed.push_back({p.residual, noise});
    with.push_back(prior * prior * common_share(question, p.features, kernel));
  }
  const Posterior posterior(observed, [&](std::size_t i, std::size_t j) {
    return prior * prior * common_share(peaks[i].features, peaks[j].features, kernel);
  });
  const double left = prior * prior - posterior.explained(with, with);
  return {posterior.mean(with), std::sqrt(std::max(left, noise * noise))};
}

}  // namespace reckon
