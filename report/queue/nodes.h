#pragma once
#include <string>

#include "sim/queue/fewest_nodes.h"

// What `reckon plan --limit` says of jobs that share a cluster.
namespace reckon {

/// The fewest nodes, then what was tried.
std::string nodes_table(const FewestNodes& found);
std::string nodes_json(const FewestNodes& found);

}  // namespace reckon
