#pragma once
#include <string>
#include <vector>

#include "sim/queue/lists/trace_source.h"
#include "sim/queue/queue_question.h"

// Flavors of Kueue against the pools that the cluster has.
namespace reckon {

/// Reports flavors that are no pool, resources that a flavor's pool does not have, and one quota
/// for a pool with several resources; false: there were any. `question`: its groups have their
/// cells.
bool check_flavors(const KueueSpec& kueue, const QueueQuestion& question, TraceSource& source);

/// "'a10' is no pool with GPUs; did you mean 'a100'?"
void tell_no_pool(const std::string& name, const std::string& path,
                  const std::vector<std::string>& pools, TraceSource& source);

}  // namespace reckon
