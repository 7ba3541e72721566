#pragma once
#include <functional>

#include "executor/kubernetes/pods/node_fit.h"

// Room for more pods of a job that runs.
namespace reckon::kubernetes {

/// The nodes with what the pods on them ask for taken off. Pods that have ended hold nothing, and
/// those of the run `but` in that namespace are about to end. `pods`: of all namespaces; both are
/// what `kubectl get` lists.
Json nodes_left(Json nodes, const Json& pods, const std::string& but,
                const std::string& name_space);

/// How many pods like a worker's the nodes would take beside the job's other pods, `most` at most.
/// `jobs`: of an attempt. 0: it has no worker.
int workers_with_room(const Json& jobs, const Json& nodes_left, int most);

/// The same of the run's newest pods, as the cluster is now, were the node `without` not there (""
/// names none). nullopt: it cannot be found out.
std::optional<int> workers_with_room(const Kubectl& kubectl, const std::string& run, int most,
                                     const std::string& without = {});

/// Ends the pods of an attempt that still run, and waits until they have: what they save must be
/// there before others go on from it. Those that do not end within the limit are deleted by force.
/// False: some are there even so, or `goes_on`, asked between looks, said no. Throws KubectlError.
bool end_attempt_and_wait(const Kubectl& kubectl, const std::string& run, std::int64_t attempt,
                          Seconds limit, const std::function<bool()>& goes_on = {});
/// That limit, of pods that have `notice` to save.
inline Seconds time_to_end(Seconds notice) { return 2 * notice + Seconds{120}; }

}  // namespace reckon::kubernetes
