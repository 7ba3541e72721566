#pragma once
#include <memory>

#include "cli/load/load.h"
#include "cli/plan/plan_options.h"
#include "planner/question.h"

namespace reckon::cli {

/// What `reckon plan` is asked: the file's scenario, or one made from --model and its company, with
/// the options put into its `plan:` block. Throws UsageError where options contradict each other.
Expected<planner::Base> plan_base(const PlanOptions& options, const Catalog& catalog);

/// The same, where what was said by an option (`--deadline 72x`) stands at that option.
Diagnostics told_by_option(Diagnostics problems, const PlanOptions& options);

/// Evidence for a base whose file has a measured step; nullptr: it has none. Errors of the file.
Expected<std::unique_ptr<const Evidence>> profile_of(const planner::Base& base,
                                                     const LoadedCatalog& catalog);

/// Regions of the catalog, where the base's question speaks of them; what does not read is told
/// later.
Expected<void> read_regions(const PlanOptions& options, planner::Base& base);

}  // namespace reckon::cli
