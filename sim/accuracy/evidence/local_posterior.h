#pragma once
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/accuracy/evidence/features.h"
#include "sim/accuracy/evidence/kernel.h"
#include "sim/accuracy/own_row.h"
#include "sim/accuracy/published_runs.h"

// The posterior of one question from the runs that are most like it.
namespace reckon {

/// Of a run by the step model in use.
struct RunResidual {
  double value = 0;  // ln(measured / predicted)
  double share = 1;  // of the step that is the device's
};

/// Runs of equal configuration and source count once, with the median of what was measured.
struct EvidenceRun {
  PublishedRun run;  // of the first; `measured` is the median
  EvidenceFeatures features;
  int runs = 1;
  /// Of a run of one's own: its residual, and what its steps' spread leaves open of it, as a
  /// standard deviation.
  std::optional<RunResidual> own;
  double own_noise = 0;  // of ln(measured / predicted)
};
/// Runs whose features cannot be read are left out. The texts of `runs` stay.
std::vector<EvidenceRun> gather_evidence(std::span<const PublishedRun> runs,
                                         const Catalog& catalog);
/// The same of rows of one's own, each for itself; the texts of `rows` stay.
std::vector<EvidenceRun> gather_own(std::span<const OwnRow> rows, const Catalog& catalog);
using ResidualOf = std::function<std::optional<RunResidual>(std::size_t run)>;

/// What a question's residual is made of, by the device's share a: mean a device + (1 - a) links,
/// variance a^2 device + 2 a (1 - a) both + (1 - a)^2 links.
struct ResidualParts {
  double device = 0, links = 0;  // means of ln(measured / predicted)
  double device_variance = 0, both_variance = 0, links_variance = 0;  // of these logarithms

  double mean(double share) const { return share * device + (1 - share) * links; }
  double variance(double share) const {
    const double rest = 1 - share;
    return share * share * device_variance + 2 * share * rest * both_variance +
           rest * rest * links_variance;
  }
};

/// A run that bears on a question.
struct TakenRun {
  std::size_t run = 0;     // its index
  double correlation = 0;  // of its device's residual with the question's, 0..1
  RunResidual residual;
  double weight = 1;  // less where other runs contradict it
};

struct LocalPosterior {
  ResidualParts parts;
  std::vector<TakenRun> taken;  // most alike first
};

/// The runs that may bear on questions that differ from this one by their sizes only, most alike
/// first: no more than some hundreds.
std::vector<std::size_t> candidates_for(const EvidenceFeatures& question,
                                        std::span<const EvidenceRun> runs,
                                        const EvidenceKernel& kernel);

/// From those of `candidates` that are most alike by their columns and have a residual: alike with
/// the stack and the links that the question says, and without, so that saying them does not lose
/// what is known without them.
LocalPosterior solve_locally(const EvidenceFeatures& question,
                             std::span<const std::size_t> candidates,
                             std::span<const EvidenceRun> runs, const ResidualOf& residual_of,
                             const EvidenceKernel& kernel);

}  // namespace reckon
