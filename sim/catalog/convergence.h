#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "sim/base/fact.h"
#include "sim/base/quantity.h"

// How long a model must be trained to reach a quality, against the batch of a step.
namespace reckon {

/// What a training begins with that has its parameters drawn at random.
inline constexpr std::string_view kFromScratch = "scratch";

/// What reference runs of one batch needed: the median of `runs`; its range is of single ones.
struct ConvergencePoint {
  std::string model;                      // a name of the zoo
  std::string dataset;                    // a name of the catalog
  double accuracy = 0;                    // the target, 0..1; what it measures is in the notes
  std::string starts_from{kFromScratch};  // or a name of what the runs began with
  std::int64_t sequence_length = 0;       // tokens of a sample; 0: the model's samples have none
  std::int64_t global_batch = 0;
  Fact<Samples> samples;
  int runs = 1;
};

/// The law of [McCandlish et al. 2018, "An empirical model of large-batch training",
/// arXiv:1812.06162]: steps S and samples E to a target obey (S / S_min - 1) (E / E_min - 1) = 1,
/// hence with E = B S
///   E(B) = E_min (1 + B / B_crit),  B_crit = E_min / S_min:
/// at the critical batch twice the fewest samples are needed, and half of the time that more
/// accelerators save is lost.
struct Convergence {
  double accuracy = 0;  // as ConvergencePoint::accuracy
  std::string starts_from{kFromScratch};
  std::int64_t sequence_length = 0;
  Samples fewest{};           // E_min
  double critical_batch = 0;  // B_crit, samples; 0: no batch measured costs more
  std::int64_t smallest_batch = 0, largest_batch = 0;  // that were measured
  double spread = 0;  // of batches around the law and of runs, standard deviation of the logarithm
  SourceId source = SourceId::user;
};

/// Samples to the target with steps of `global_batch`.
Samples samples_to_target(const Convergence& law, std::int64_t global_batch);

/// The same with updates of `batch` samples each, of whose gradients each is one of parameters that
/// `delay` other updates have changed since, in the mean. A delay counts where noise does not:
/// updates
///   S(B, d) = S_min ((1 + d) + B_crit / B)
/// [Stich and Karimireddy 2020, "The error-feedback framework", JMLR 21(237): T = O(sigma^2 / eps^2
/// + (tau + 1) L / eps); by the mean delay: Koloskova et al. 2022, "Sharper convergence guarantees
/// for asynchronous SGD", NeurIPS], so
///   E(B, d) = E_min (1 + (1 + d) B / B_crit).
Samples delayed_samples_to_target(const Convergence& law, double batch, double delay);

/// By how much a run's samples may differ from the law's: 5th to 95th percentile of the points
/// around it, as normal in the logarithm.
Fact<double> spread_of(const Convergence& law);

/// The law through points of one model, dataset, target, start and sequence length: least squares
/// of the relative error, each batch once, however often it was submitted. nullopt: no point. From
/// one batch alone, or where larger batches did not need more, the law is constant.
std::optional<Convergence> convergence_law(std::span<const ConvergencePoint> points);

}  // namespace reckon
