#pragma once
#include <array>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "sim/scenario/layout_rules.h"
#include "sim/step/block_times.h"
#include "sim/step/memory/layout_memory.h"
#include "sim/step/network/collective_cost.h"
#include "sim/step/network/collectives_cpu.h"

// The step under any Layout (docs/MODELS.md, "Layouts"): made once for a model on a kind of
// cluster, asked for many layouts.
namespace reckon {

/// What does not change between layouts.
struct StepSetting {
  Precision precision = Precision::bf16;
  Optimizer optimizer = Optimizer::adamw;
  bool fp32_variables = false;
  WideSums wide_sums = WideSums::none;
  Processor processor;  // of every rank
  /// What a rank has of its host for an optimizer that is offloaded to it.
  BytesPerSecond host_link{}, host_memory{};
  Bytes memory{};  // of a device, that programs find
  /// Links; nodes and ranks_per_node: ranks of a full node, and at least as many nodes as the
  /// layouts need.
  Fabric fabric;
  FrameworkRules framework;
  GradientSum gradient_sum;  // zero_stage 0
  /// Synchronous processes without accelerators: nobody prints a peak of theirs.
  bool on_cpus() const { return gradient_sum.on_cpus; }
};

/// What every StepModel of a model has alike, whatever it runs on.
struct ModelFold {
  /// `stage_blocks`: of a pipeline with so many stages; empty: as even as can be.
  explicit ModelFold(const ModelGraph& model, std::span<const int> stage_blocks = {});
  FoldedModel folded;
  LayoutLimits limits;
  Flops model_flops{};
  TrainableShapes trainable;
  std::vector<LayerId> timed_layers;
};

class StepModel;
/// What runs each stage of a mixed pipeline: models of one fold. Of several, which are replicas on
/// different accelerators, the slowest sets the pace.
using StageModels = std::vector<std::vector<const StepModel*>>;

class StepModel {
 public:
  StepModel(const ModelGraph& model, StepSetting setting);
  /// Of a model that was folded before; `fold` outlives it.
  StepModel(const ModelFold& fold, StepSetting setting);

  /// Compute, waiting, bubble and update of one step; no input pipeline, and `layers` is empty. The
  /// layout keeps the rules (broken_rules). May be called from several threads.
  ///
  ///   pass_s = what a micro-batch takes on stage s, forward and backward, waiting included
  ///   step   = m max pass + (sum pass - max pass) / v + gradients + update
  /// m micro-batches, v parts a stage; the second term is the bubble, (p - 1) / v passes where
  /// stages are alike [Narayanan et al. 2021, Sec. 2.2].
  StepEstimate estimate(const Layout& layout, const CollectiveCost& cost = ClosedForms{}) const;
  /// The same of a pipeline whose stages run on different accelerators: of each stage its own
  /// arithmetic and links within a node; the slowest stage sets the pace, and the update that takes
  /// longest ends the step.
  static StepEstimate estimate_mixed(const StageModels& stages, const Layout& layout,
                                     const CollectiveCost& cost);
  /// Peak of an accelerator of a pipeline whose stages run on different ones, the mean; 0: some are
  /// CPUs, of which nobody prints one.
  static FlopsPerSecond mean_peak(const StageModels& stages);
  MemoryEstimate memory(const Layout& layout) const;
  /// The same with the states(layout).
  MemoryEstimate memory(const Layout& layout, std::span<const BlockState> states) const;
  std::vector<BlockState> states(const Layout& layout) const;
  /// Of one micro-batch, in the order of the graph; views and inputs are left out.
  std::vector<LayerTime> layer_times(const Layout& layout) const;

  const LayoutLimits& limits() const { return fold_.limits; }
  const StepSetting& setting() const { return setting_; }

 private:
  template <class Cost>
  class Pass;
  template <class Cost>
  StepEstimate estimate_with(const Layout& layout, const Cost& cost) const;
  template <class Cost>
  static StepEstimate estimate_mixed_with(const StageModels& stages, const Layout& layout,
                                          const Cost& cost);

  StepSetting setting_;
  std::optional<ModelFold> own_;
  const ModelFold& fold_;
  ElementSizes size_;
  Processor core_;
};

/// estimate_step() of a job without parameter servers whose model was folded before: a hundred
/// layers take longer to fold than their step takes to estimate.
StepEstimate estimate_step(const Plan& plan, const PlannedWorkload& job, const ModelFold& fold,
                           const NetworkModel& network, int live_workers = 0);

/// Estimates of a model by layout, solved once and looked up after. Not for several threads.
class LayoutCache {
 public:
  explicit LayoutCache(const StepModel& model) : model_(model) {}
  const StepEstimate& at(const Layout& layout);

 private:
  using Key = std::array<std::int64_t, 15>;
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  const StepModel& model_;
  std::unordered_map<Key, StepEstimate, Hash> estimates_;  // looked up, never walked
};

/// Memory of a model's layouts: what a rank keeps of the blocks is added up once for all layouts
/// that split them alike. Not for several threads.
class LayoutMemory {
 public:
  explicit LayoutMemory(const StepModel& model) : model_(model) {}
  MemoryEstimate at(const Layout& layout);

 private:
  /// All that block_states() reads of a layout: degrees (tensor, context, expert), sequence
  /// parallelism, recomputation.
  using Key = std::tuple<int, int, int, bool, Recompute>;
  const StepModel& model_;
  std::map<Key, std::vector<BlockState>> states_;
};

/// The setting of a plan's job on accelerators of one of its pools, with the slowest links of all.
StepSetting step_setting(const Plan& plan, const PlannedWorkload& job, const PlannedPool& pool);
/// On those of the first pool: one kind of accelerator, but where a job is data-parallel alone.
StepSetting step_setting(const Plan& plan, const PlannedWorkload& job);

}  // namespace reckon
