#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/queue/karpenter/karpenter_answer.h"
#include "sim/queue/lists/trace_source.h"
#include "sim/queue/queue_question.h"

// Where the jobs of a scenario run: the nodes that have GPUs, and which of them its policy tells
// apart.
namespace reckon {

/// Names of pools with GPUs, each once, by NodeGroup::pool.
std::vector<std::string> pools_with_gpus(const QueueQuestion& question);

/// Fills in the question's nodes; false: `source` has what is wrong.
class ClusterNodes {
 public:
  /// All must outlive it. The question has its scheduler already.
  ClusterNodes(const ScenarioFile& file, TraceSource& source, std::vector<std::string>& notes,
               QueueQuestion& question)
      : file_(file),
        scenario_(file.scenario),
        source_(source),
        notes_(notes),
        question_(question) {}

  /// The nodes of pools, and of a list of nodes.
  bool read_nodes();
  /// Machines that Karpenter chooses from.
  bool read_market(const OffersOfKarpenter& offers_of);
  /// Pools are cells of their own where a policy tells them apart, or where jobs do (`apart`).
  bool set_cells(bool apart);

 private:
  SchedulingPolicy policy() const { return question_.scheduler.policy; }
  bool tells_pools_apart() const;
  std::optional<int> pool_number(const std::string& name, const std::string& path);
  bool set_partitions();

  const ScenarioFile& file_;
  const Scenario& scenario_;
  TraceSource& source_;
  std::vector<std::string>& notes_;
  QueueQuestion& question_;
};

}  // namespace reckon
