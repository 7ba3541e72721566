#pragma once
#include <string>

#include "sim/queue/fewest_nodes.h"

// Pieces of what is said of the fewest nodes: shared by the table and the memo.
namespace reckon {

/// The limit's metric as it was asked: "p95(wait)".
std::string metric_of(const FewestNodes& found);
/// A value of that metric with its unit.
std::string value_text(const FewestNodes& found, double value);
/// What a change costs more a week than the cluster does now: "+1,985 EUR"; "": unknown, or nothing
/// more.
std::string more_a_week(const FewestNodes& found, const ChangeTried& change);
/// "one replication", or "mean of 100 replications".
std::string replications_text(const TraceResult& result);

}  // namespace reckon
