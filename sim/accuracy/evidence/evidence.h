#pragma once
#include <memory>
#include <span>
#include <vector>

#include "sim/accuracy/evidence/features.h"
#include "sim/accuracy/evidence/kernel.h"
#include "sim/accuracy/evidence/local_posterior.h"
#include "sim/accuracy/evidence/memory_evidence.h"
#include "sim/accuracy/published_runs.h"
#include "sim/step/step.h"

// What comparable runs say of a forecast: a posterior over ln(measured / predicted rate)
// (docs/MODELS.md, "Evidence").
namespace reckon {

/// How much of a step grows with the device's time: 1 without links, less where links are waited
/// for.
double device_share(const StepEstimate& step);

/// Of ln(actual rate / the step model's): median and standard deviation, which contains the noise
/// of a single run. Nine of ten runs lie within `half_width` of the mean.
struct Residual {
  double mean = 0, deviation = 0, half_width = 0;
};

class EvidenceClass;

/// Questions that differ by their sizes and layouts only: tens of nanoseconds each, once what is
/// near of them has been asked for.
class ResidualTable {
 public:
  explicit ResidualTable(const EvidenceClass& of) : of_(&of) {}
  /// ln of the accelerators, ln of the samples an accelerator and step, the device's share.
  Residual at(double log_count, double log_batch, double share) const;

 private:
  const EvidenceClass* of_;
};

/// The runs that ship, or a part of them, against one catalog. Residuals are the catalog's in use:
/// rows are predicted when a question first needs them. Threads may ask at the same time; answers
/// do not depend on the order of questions.
class Evidence {
 public:
  /// Runs whose features cannot be read are no evidence; nor are those that cannot be predicted.
  /// `catalog` and the texts of `runs` stay. With rows of one's `own` every question is their
  /// owner's (as_own()).
  Evidence(std::span<const PublishedRun> runs, const Catalog& catalog, const EvidenceKernel& kernel,
           std::vector<OwnRow> own = {});
  ~Evidence();

  /// Of a job of these features, `share` of whose step is the device's. No evidence: mean 0 and the
  /// kernel's own deviation.
  Residual residual(const EvidenceFeatures& question, double share) const;
  /// Of questions as this one, of any sizes, on as many nodes (one, or several) as it. The table
  /// lives as long as the evidence.
  ResidualTable table(const EvidenceFeatures& question) const;
  /// What residual() would be with one run of one's own besides, of features `trial` and the same
  /// share, that measures what is expected; `noise`: what its steps leave open, as a standard
  /// deviation of its logarithm.
  Residual after_trial(const EvidenceFeatures& question, const EvidenceFeatures& trial,
                       double share, double noise) const;
  /// Of the peak of memory of a job of these features; `prior`: its deviation with nothing near.
  /// Of ln(measured peak / predicted), as both of the answer.
  MemoryResidual memory(const EvidenceFeatures& question, double prior) const;
  /// The runs that residual() takes, most alike first.
  std::vector<TakenRun> near(const EvidenceFeatures& question) const;
  std::span<const EvidenceRun> runs() const;
  const EvidenceKernel& kernel() const;

 private:
  friend class EvidenceClass;
  struct Data;
  std::unique_ptr<Data> data_;
};

}  // namespace reckon
