#pragma once
#include <string>
#include <string_view>

#include "sim/queue/fewest_nodes.h"

// What `reckon plan --limit` says of jobs that share a cluster.
namespace reckon {

/// The fewest nodes, then what was tried.
std::string nodes_table(const FewestNodes& found);
std::string nodes_json(const FewestNodes& found);
/// `--memo FILE.md`: the question (that of the scenario file, see question_of; "": none), the
/// cheapest change that keeps the limit, the others, risks, prices.
std::string nodes_memo(const FewestNodes& found, std::string_view question);

}  // namespace reckon
