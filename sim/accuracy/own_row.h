#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "sim/accuracy/evidence/features.h"
#include "sim/step/step.h"

// What somebody has measured of a job of their own, as one row of evidence.
namespace reckon {

/// The source and the publisher of such rows.
inline constexpr std::string_view kOwnSource = "own";

/// A measured step with all that it is compared by, in words: it outlives the catalog and the plan
/// that it was measured with. Written to calibrations
/// (sim/measurement/calibration/calibration_yaml.cpp).
struct OwnRow {
  std::string id;  // of the measured run: "llama3-8b-lora"
  std::string accelerator, precision;
  std::string network;    // of language models the kind (network_of()), else the zoo's name
  std::string domain;     // to_text(Domain)
  double parameters = 0;  // of the network, a count
  std::string stack;      // "": the scenario does not say
  std::string link;       // between the accelerators of a node
  int accelerators = 1;
  bool many_nodes = false;
  double samples = 0;       // of a step, of the whole job
  double step_seconds = 0;  // measured, median
  /// What the step model said of it, without evidence, and its device's share (device_share()).
  double modelled_seconds = 0, device_share = 1;
  double noise = 0;  // one standard deviation of the measured step's logarithm
  int steps = 0;     // behind it
};

/// Of the plan's first job, by the step model without a factor; what is measured is 0.
OwnRow own_row(Plan plan, const NetworkModel& network);

/// nullopt: the catalog lacks the accelerator, or a word is none of ours.
std::optional<EvidenceFeatures> features_of(const OwnRow& row, const Catalog& catalog);

/// The question as one of the user: it shares with rows of one's own what belongs to a source, and
/// a stack that neither says, which is the same one.
EvidenceFeatures as_own(EvidenceFeatures features);

}  // namespace reckon
