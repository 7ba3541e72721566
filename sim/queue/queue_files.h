#pragma once
#include "sim/queue/karpenter/karpenter_answer.h"
#include "sim/queue/lists/trace_source.h"
#include "sim/queue/queue_question.h"

namespace reckon {

/// What of a queue only the catalog knows; what needs one that is not there is an error.
struct QueueSources {
  QueueSources() = default;
  QueueSources(OwnJobTime of_file) : own_times{std::move(of_file), {}} {}  // NOLINT: one of two
  OwnTimes own_times;
  OffersOfKarpenter offers;
};

/// The question of a scenario whose jobs end: its cluster, scheduler and jobs, recorded, drawn or
/// listed; nullopt: `source` has what is wrong. `notes`: of rows that are left out.
std::optional<QueueQuestion> load_queue(const ScenarioFile& file, const QueueSources& sources,
                                        TraceSource& source, std::vector<std::string>& notes);

}  // namespace reckon
