#pragma once
#include <optional>
#include <string>
#include <vector>

#include "exchange/foreign/kubernetes_jobs.h"
#include "exchange/foreign/kubernetes_replicas.h"
#include "sim/catalog/catalog.h"

// Inside exchange/foreign: the class behind import_kubernetes_job().
namespace reckon {

/// The pools of nodes that the replicas of a job need, and what else a scenario has of it.
class PoolsOfJob {
 public:
  PoolsOfJob(ReplicasOfJob job, const ClusterHints& hints, const Catalog& catalog);
  Expected<Imported> make(const std::string& from);

 private:
  // kubernetes_jobs.cpp: place, container, strategy
  void say_who_does_not_train();
  bool trains(const Replicas& r) const;
  void place();
  std::optional<Provider> provider_by_machine() const;
  std::string region_of_zone() const;
  void make_pools();
  void leave_wiring_out(ImportedContainer& container);
  bool priced(const ImportedPool& pool, const std::string& region) const;
  void assume_region();
  void mistake(const Replicas& r, std::string what, std::string hint) {
    mistakes_.push_back({Severity::error, r.pod.at, std::move(what), std::move(hint)});
  }
  std::optional<std::string> strategy(const Replicas& shown);

  // pools_of_job.cpp: the nodes of each pool
  void add_pool(ImportedPool pool);
  ImportedPool imported_pool(const Replicas& r);
  std::string accelerator_of(const Replicas& r);
  void set_gpus(const Replicas& r, ImportedPool& pool);
  bool holds(const Replicas& r, const Machine& machine);
  const Machine* smallest(const Replicas& r, const Accelerator& accelerator, int per_node,
                          ImportedPool& pool);
  void set_slice(const Replicas& r, ImportedPool& pool);
  void set_host(const Replicas& r, ImportedPool& pool);
  const Machine* host_of(const Provider& provider, const PodWish& pod) const;

  const ClusterHints& hints_;
  const Catalog& catalog_;
  std::vector<Replicas> replicas_;
  std::vector<std::string> others_;
  Diagnostics mistakes_;
  Imported out_;
};

}  // namespace reckon
