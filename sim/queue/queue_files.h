#pragma once
#include "sim/queue/lists/trace_source.h"
#include "sim/queue/queue_question.h"

namespace reckon {

/// The question of a scenario whose jobs end: its cluster, scheduler and jobs, recorded or drawn;
/// nullopt: `source` has what is wrong. `notes`: of rows that are left out.
std::optional<QueueQuestion> load_queue(const ScenarioFile& file, const OwnJobTime& own_jobs,
                                        TraceSource& source, std::vector<std::string>& notes);

}  // namespace reckon
