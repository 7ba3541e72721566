#pragma once
#include <optional>
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
/// "20 nodes", or "64 GPUs".
std::string amount_of(const FewestNodes& found, int nodes);
/// "20 nodes of pool a100", or "64 GPUs of NodePool a10g".
std::string amount_of_pool(const FewestNodes& found, int nodes);
/// "on the 20 nodes that are there", or "with at most 128 GPUs".
std::string as_it_is(const FewestNodes& found);
/// Of all nodes in a week with so many, as far as it is known.
std::optional<double> week_with(const FewestNodes& found, const NodesTried& tried);
/// "one replication", or "mean of 100 replications".
std::string replications_text(const TraceResult& result);

}  // namespace reckon
