#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/queue/job_list.h"
#include "sim/queue/kueue/quotas.h"
#include "sim/queue/kueue/topology.h"

// What of Kueue a job asks for, and whether it can ever have it.
namespace reckon {

/// By pool, as KueueQuotas wants it.
std::vector<std::string> resources_of(std::span<const NodeGroup> groups, std::size_t pools);

inline constexpr std::size_t kNoClusterQueue = static_cast<std::size_t>(-1);

inline CellSet cell_of_pool(int pool) { return CellSet{1} << pool; }

/// The ClusterQueue that the job names, the only one if it names none; kNoClusterQueue: it is not
/// there, or there are several.
std::size_t kueue_queue_of(const JobList& list, std::size_t job, const KueueSpec& kueue);
TopologyRequest topology_of(const JobList& list, std::size_t job);

/// Whether the flavor, or some flavor of the queue, can hold the job while nothing else runs.
bool fits_empty(const KueueQuotas& quotas, const KueueTopology& topology, const FreeNodes& empty,
                std::size_t queue, int pool, int gpus, const TopologyRequest& request);
bool can_ever_run(const KueueQuotas& quotas, const KueueTopology& topology, const FreeNodes& empty,
                  std::size_t queue, int gpus, const TopologyRequest& request,
                  CellSet cells = kAllCells);

}  // namespace reckon
