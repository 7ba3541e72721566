#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/model/zoo/zoo.h"
#include "sim/scenario/layout.h"
#include "sim/scenario/plan.h"

// A job's layout as the launcher of a training framework needs it.
namespace reckon {

/// What the step model says, for what launchers count in steps.
struct LaunchTimes {
  Seconds step{};                 // of one optimizer step
  Seconds checkpoint_interval{};  // of work between two saves; 0: none is made
  Seconds checkpoint_save{};      // training stands still
};

struct LaunchLayout {
  std::string name;  // of the plan
  const PlannedWorkload* job = nullptr;
  const PlannedPool* pool = nullptr;  // where its processes compute
  Layout layout;                      // of kinds that do not cut the model: copies alone
  int nodes = 1, accelerators_per_node = 1;
  std::optional<TransformerDimensions> model;  // nullopt: no plain decoder
  std::optional<std::int64_t> save_every;      // steps; nullopt: no checkpoints
  Seconds notice{};                            // a save, and what goes with it
  std::uint64_t seed = 1;
  /// NCCL's variables that the plan asks for [NVIDIA, NCCL documentation, "Environment Variables"].
  std::vector<std::pair<std::string, std::string>> nccl;

  bool is_tpu() const { return pool->accelerator->kind == AcceleratorKind::tpu; }
  std::int64_t processes() const { return std::int64_t{nodes} * accelerators_per_node; }
  /// "checkpoints are saved on a notice" was simulated.
  bool saves_on_notice() const { return job->checkpoint.notice.policy == OnNotice::save; }
};

/// A plan of one job whose workers compute on accelerators of one pool. All that no launcher can
/// have (parameter servers, workers on CPUs, several pools, hierarchical all-reduce) is refused at
/// once, at its place in the scenario. `plan` must outlive what is returned.
Expected<LaunchLayout> launch_layout_of(const Plan& plan, const Places& places,
                                        const LaunchTimes& times);

}  // namespace reckon
