#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "executor/train/layouts/block_walk.h"
#include "executor/train/layouts/exchange_blocks.h"
#include "executor/train/layouts/pipeline/runtime.h"
#include "executor/train/layouts/pipeline/stages.h"
#include "sim/step/pipeline_passes.h"

// The class behind make_pipeline_runtime(), and what a stage holds. runtime.cpp sets it up,
// step.cpp runs a step.
namespace reckon {

/// A micro-batch's data, from its first pass to its last one.
class HeldBatch {
 public:
  explicit HeldBatch(const BatchView& batch) : masked_(batch.masked.begin(), batch.masked.end()) {
    for (const auto& from : batch.inputs) view_.inputs.push_back(keep(from));
    for (const auto& from : batch.targets) view_.targets.push_back(keep(from));
    view_.masked = masked_;
  }
  const BatchView& view() const { return view_; }

 private:
  std::span<const float> keep(std::span<const float> from) {
    AlignedBuffer<float>& buffer = buffers_.emplace_back(from.size());
    std::ranges::copy(from, buffer.data());
    return buffer.span();
  }

  std::vector<AlignedBuffer<float>> buffers_;
  std::vector<std::int32_t> masked_;
  BatchView view_;
};

/// A copy of another stage's weight here, or a weight of ours that another stage has a copy of.
struct TiedWeight {
  std::size_t slot = 0;  // of the stage's layout
  int other = 0;
};

struct PassInFlight {
  std::unique_ptr<PartRuntime> runtime;
  std::int64_t micro_batch = -1;  // -1: free
};

struct StagePart {
  LayerSpan layers;
  bool first = false, last = false;  // of the network
  bool needs_data = false;
  std::vector<PassInFlight> passes;
  std::vector<std::vector<float>> statistics;  // running, as they are now
  std::vector<BlockUse> forward, backward;     // zero_stage 3: of a pass
};

class PipelineRuntime final : public StepRuntime {
 public:
  PipelineRuntime(const ModelGraph& model, const RuntimeOptions& options, const Layout& layout,
                  PipelinePeers peers, std::unique_ptr<StageCompute> compute,
                  ZeroExchange* gathers);

  const ParameterLayout& layout() const override { return compute_->layout(); }
  ParameterView exchanged() override { return compute_->exchanged(); }
  void begin_step() override;
  double forward(const BatchView&, StepPosition, bool) override { refuse(); }
  void backward(double, const std::function<void(ParameterRange)>&) override { refuse(); }
  PassTimes run_passes(const StepPasses& passes) override;
  double evaluate(const StepPasses& passes) override;
  std::int64_t passes_together() const override;
  std::span<float> values() override { return compute_->values(); }
  std::vector<RunningStatistics<float>> running_statistics() override;
  void to_host() override { compute_->to_host(); }
  void to_device() override { compute_->to_device(); }
  Bytes activation_memory() const override;

 private:
  [[noreturn]] static void refuse() {
    throw std::logic_error("a stage of a pipeline runs whole steps, no single pass");
  }
  int next() const { return (stage_ + 1) % layout_.pipeline; }
  int before() const { return (stage_ + layout_.pipeline - 1) % layout_.pipeline; }
  PassInFlight& in_flight(StagePart& part, std::int64_t micro_batch);
  const BatchView& batch_of(std::int64_t micro_batch, const StepPasses& passes, PassTimes& times);
  void copy_statistics(StagePart& part, PartRuntime& runtime, bool out);
  void run_forward(const PipelinePass& pass, const StepPasses& passes, bool training,
                   PassTimes& times);
  void run_backward(const PipelinePass& pass, const StepPasses& passes, PassTimes& times);
  void sum_tied(const StepPasses& passes, PassTimes& times);
  bool is_lent(ParameterRange range) const;
  bool waits_for_copies(ParameterRange range) const;
  void find_blocks();
  const ParameterSlot& slot_of(const TiedWeight& weight) const {
    return compute_->exchanged_layout().slots[weight.slot];
  }
  void lend(const TiedWeight& weight);
  void begin_step(PassTimes& times);
  void send(Communicator& by, std::span<const std::byte> bytes, int to, PassTimes& times) const;
  static void receive(Communicator& by, std::span<std::byte> bytes, int from, PassTimes& times);

  const ModelGraph& model_;
  const Layout layout_;
  PipelinePeers peers_;
  const int stage_;
  std::unique_ptr<StageCompute> compute_;
  ZeroExchange* gathers_;          // nullptr: parameters are here, whole
  std::vector<ZeroBlock> blocks_;  // zero_stage 2 and 3
  std::optional<BlockWalk> walk_;
  std::vector<StagePart> parts_;
  std::vector<TiedWeight> borrowed_, lent_;
  std::vector<ParameterRange> held_back_;  // whose gradients lack those of copies
  BatchView no_data_;
  std::map<std::int64_t, HeldBatch> batches_;
  std::int64_t loaded_ = 0;  // micro-batches of this step
};

}  // namespace reckon
