#pragma once
#include "sim/queue/lists/trace_source.h"
#include "sim/queue/queue_question.h"

namespace reckon {

/// Reports the queues, partitions and devices that jobs name and the cluster does not have: of
/// `jobs:` where the first job names it. `question.list` has all names.
void check_names(const Scenario& scenario, const QueueQuestion& question, TraceSource& source);

/// Reports pods that are no whole part of their job; false: there are some.
bool check_pods(const Scenario& scenario, TraceSource& source);

}  // namespace reckon
