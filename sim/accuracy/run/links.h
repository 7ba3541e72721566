#pragma once
#include "sim/accuracy/published_runs.h"
#include "sim/catalog/catalog.h"
#include "sim/scenario/plan.h"

namespace reckon {

/// What a scenario cannot say of links, from the row: PCIe where the accelerator has links of its
/// own that this form of it lacks, NVLink where it lacks them, and the kind of network.
void set_links(Plan& plan, const RunConfiguration& run, const Catalog& catalog);

}  // namespace reckon
