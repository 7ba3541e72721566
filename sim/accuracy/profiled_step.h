#pragma once
#include <optional>

#include "sim/accuracy/own_row.h"
#include "sim/base/diagnostic.h"
#include "sim/scenario/scenario.h"

// A step that somebody measured and wrote into the scenario: `profile: {step: 210ms}` of a workload
// or of its container.
namespace reckon {

/// Does the scenario have a measured step?
bool has_profiled_step(const Scenario& scenario);

/// The measured step as a row of evidence: of the job on the cluster that the file describes.
/// `as_written`: the scenario without what a command line or a search changes in it, so that these
/// scale the step and do not move what was measured. Errors: the file is no plan, or its workers
/// have no accelerators.
Expected<OwnRow> profiled_row(const ScenarioFile& as_written, const Catalog& catalog);

}  // namespace reckon
