#pragma once
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/accuracy/evidence/features.h"
#include "sim/base/diagnostic.h"

// How alike the residuals of two runs are. The residual of a run is
//   r = ln(measured / predicted) = a device + (1 - a) links + noise,
// where a is the device's share of the step. `device` and `links` are Gaussian processes with mean
// zero, each a sum of stationary kernels over what two runs have in common [Rasmussen and Williams
// 2006, "Gaussian Processes for Machine Learning", section 4.2.4]: far from all evidence the
// forecast is the step model's. Nothing grows with a size: extrapolation is the step model's.
namespace reckon {

/// The values here are the centres of the tuning's prior (docs/models/evidence.md, "Evidence");
/// what ships are those of catalogs/evidence/kernel.csv. Amplitudes are standard deviations of
/// ln(measured / predicted), shares are 0..1.
struct EvidenceKernel {
  // Of the device.
  double all = 0.7;             // common to all runs of a block
  double accelerator = 0.3;     // of an accelerator (and its architecture, precision)
  double network = 0.17;        // of a network (and its domain)
  double stack = 0.05;          // of a software stack (and its family)
  double network_stack = 0.09;  // of a network in a stack
  double network_accelerator = 0.11;
  double configuration = 0.2;    // of a network in a stack on an accelerator, by batch and count
  double source = 0.06;          // of a source
  double source_network = 0.13;  // of a source's program for a network
  double documented_b = 0.1;     // what a source of trust B, or C, leaves open, of a network
  double documented_c = 0.2;
  // Of the links.
  double links = 0.1, links_source = 0.4, links_kind = 0.3, links_stack = 0.05;
  // Shares of an amplitude's variance that less than equal ones have in common.
  double other_domain = 0.9;  // of `all` and `stack`
  double architecture = 0.8;  // of `accelerator`: the same architecture
  double generation = 0.1;    // of `accelerator`: architectures, falling with years
  double precision = 0.9;     // of `accelerator`: another precision
  double domain = 0.6;        // of `network`: another network of the domain
  double family = 0.7;        // of `stack`: another stack of the family
  double publisher = 0.9;     // of `source`: another source of the publisher
  // Lengths.
  double years = 5, count = 8, batch = 3.5, parameters = 8;  // the last three of logarithms
  double noise = 0.03;                                       // of one run
  double interval = 2.13;  // half width of 90 % over the standard deviation: Student's t, 4 degrees
  // Of the variance of ln(peak of memory / predicted): what runs have in common. The rest is a
  // run's own.
  double memory_all = 0.1, memory_stack = 0.2, memory_network = 0.1, memory_source = 0.4;
  std::array<double, kDomains> domain_scale{1, 1, 1, 1, 1, 1, 1};  // factors on all amplitudes
};

/// Covariance of what two runs' devices contribute, and of what their links do.
/// Of ln(measured / predicted), as all amplitudes.
double device_covariance(const EvidenceFeatures& a, const EvidenceFeatures& b,
                         const EvidenceKernel& kernel);
double link_covariance(const EvidenceFeatures& a, const EvidenceFeatures& b,
                       const EvidenceKernel& kernel);
/// Of one run with itself: all that it is, said or not.
double device_variance(const EvidenceFeatures& f, const EvidenceKernel& kernel);
double link_variance(const EvidenceFeatures& f, const EvidenceKernel& kernel);

/// One number of the kernel with its name in the file.
struct KernelNumber {
  std::string name;
  double* value = nullptr;
  double least = 0, most = 0;  // range of *value
};
/// Those of the rate, in the order of the file: what is tuned on runs.
std::vector<KernelNumber> numbers_of(EvidenceKernel& kernel);
/// Those of memory, behind them in the file.
std::vector<KernelNumber> memory_numbers_of(EvidenceKernel& kernel);

/// catalogs/evidence/kernel.csv: columns name, value. Errors: a name that is unknown, missing or
/// twice there, a value out of its range.
Expected<EvidenceKernel> read_evidence_kernel(std::string_view file_name, std::string_view bytes);
std::string evidence_kernel_csv(EvidenceKernel kernel);

}  // namespace reckon
