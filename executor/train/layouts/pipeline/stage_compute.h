#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "executor/comm/metered_communicator.h"
#include "executor/train/graph_runtime.h"
#include "executor/train/step_runtime.h"

// What a stage of a pipeline computes with: a CPU or a device. The order of passes, messages and
// weights that stages share are the same on both (runtime.h).
namespace reckon {

/// A part of the network and the memory of one micro-batch that is under way in it.
class PartRuntime {
 public:
  virtual ~PartRuntime() = default;
  virtual const Schedule& schedule() const = 0;
  virtual const RankModel& rank_model() const = 0;
  virtual void set_hooks(ActionHooks hooks) = 0;

  /// The loss, or 0 of a part that has none.
  virtual double forward(const BatchView& batch, StepPosition position, bool training) = 0;
  /// As GraphRuntime's; ranges of StageCompute::exchanged_layout().
  virtual void backward(double scale, const GradientTaker& taker) = 0;

  /// What comes into the part and goes out of it, in this machine's memory: what is received is
  /// there before a pass, and what is sent behind it. Empty: no gradient.
  struct Crossing {
    std::vector<std::span<std::byte>> values, gradients;
  };
  virtual Crossing crossing_in() = 0;
  virtual Crossing crossing_out() = 0;

  /// What passes begin with, and end with.
  virtual std::vector<RunningStatistics<float>> running_statistics() = 0;
  virtual ModelExchanges take_exchanged() = 0;
  virtual Bytes activation_memory() const = 0;
};

/// Parameters of a stage, their gradients, and what computes with them.
class StageCompute {
 public:
  virtual ~StageCompute() = default;
  /// `options`: with the part. It goes before this does.
  virtual std::unique_ptr<PartRuntime> make_part(const RuntimeOptions& options) = 0;

  /// The stage's layout, and as the exchange has it.
  virtual const ParameterLayout& layout() const = 0;
  virtual const ParameterLayout& exchanged_layout() const = 0;
  virtual ParameterView exchanged() = 0;

  /// Before a step: values have changed; gradients that stay through a step are zero.
  virtual void begin_step() = 0;
  /// Of a slot that is whole here: its value, until the next call; the next one; its gradient,
  /// until the next call; what is added to it.
  virtual std::span<const float> value(std::size_t slot) = 0;
  virtual void set_value(std::size_t slot, std::span<const float> value) = 0;
  virtual std::span<const float> gradient(std::size_t slot) = 0;
  virtual void add_gradient(std::size_t slot, std::span<const float> summand) = 0;

  /// As StepRuntime's.
  virtual std::span<float> values() = 0;
  virtual void to_host() {}
  virtual void to_device() {}
};

/// `layout`: of the stage. Pages of parameters and gradients that ZeRO's stages 2 and 3 have
/// elsewhere take no memory.
std::unique_ptr<StageCompute> make_cpu_stage(const ModelGraph& model, ParameterLayout layout,
                                             int zero_stage, Workers& workers);

}  // namespace reckon
