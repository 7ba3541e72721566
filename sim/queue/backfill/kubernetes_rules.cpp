#include "sim/queue/backfill/kubernetes_rules.h"

#include <map>

namespace reckon {

KubernetesRules::KubernetesRules(const JobList& list, const KubernetesSpec& kubernetes)
    : list_(list), spec_(kubernetes) {
  std::map<std::int32_t, std::size_t> numbers;
  for (const JobRequest& job : list.jobs)
    groups_.push_back(numbers.try_emplace(job.owner.priority, numbers.size()).first->second);
  preempts_ = spec_.preemption == PreemptionPolicy::preempt_lower_priority && numbers.size() > 1;
}

}  // namespace reckon
