#pragma once
#include <cstddef>
#include <span>

#include "sim/accuracy/evidence/features.h"
#include "sim/accuracy/evidence/kernel.h"
#include "sim/step/step.h"

// What measured peaks of memory say of a forecast's (docs/MODELS.md, "Memory").
namespace reckon {

/// Of ln(measured peak / predicted): the mean, and the standard deviation of one more run.
struct MemoryResidual {
  double mean = 0, deviation = 0;
};

/// A run whose peak was measured.
struct MeasuredPeak {
  EvidenceFeatures features;
  double residual = 0;  // ln(measured peak / predicted)
};

/// What the source of a run measured: tensors (PyTorch's max_memory_allocated), or all that the
/// device's driver counts for the process.
Bytes predicted_peak(const MemoryEstimate& memory, const PublishedRun& run);

/// Gaussian process with mean zero and variance `prior`^2, of which runs have shares in common by
/// stack, network and source (EvidenceKernel::memory_stack, ...). Nothing near: the prior.
MemoryResidual memory_residual(const EvidenceFeatures& question,
                               std::span<const MeasuredPeak> peaks, const EvidenceKernel& kernel,
                               double prior);

}  // namespace reckon
