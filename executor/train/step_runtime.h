#pragma once
#include <functional>
#include <memory>
#include <string>

#include "executor/comm/gradient_exchange.h"
#include "executor/train/graph_runtime.h"

// What the training loop needs of whatever computes: a CPU, or a device with memory of its own.
namespace reckon {

class StepRuntime {
 public:
  virtual ~StepRuntime() = default;
  /// Of values(), and of checkpoints.
  virtual const ParameterLayout& layout() const = 0;

  /// Parameters and gradients where they are computed with, in the order that the exchange sees;
  /// on a device they are its memory, and padding may lie between them. For the exchange alone.
  virtual ParameterView exchanged() = 0;

  /// Before the first pass of a step: the parameters are those of the exchange, gradients zero.
  virtual void begin_step() = 0;
  /// As GraphRuntime's.
  virtual double forward(const BatchView& batch, StepPosition position, bool training) = 0;
  virtual void backward(double scale, const std::function<void(ParameterRange)>& ready) = 0;

  /// The parameters, layout().count, and the statistics, on the host. Between to_host() and the
  /// next step they are the current ones; to_device() makes what was written there current.
  virtual std::span<float> values() = 0;
  virtual std::vector<RunningStatistics<float>> running_statistics() = 0;
  virtual void to_host() = 0;
  virtual void to_device() = 0;

  virtual Bytes activation_memory() const = 0;
};

/// GraphRuntime<float> and its buffers. `model` and `workers` must outlive it.
std::unique_ptr<StepRuntime> make_cpu_runtime(const ModelGraph& model, RuntimeOptions options,
                                              Workers& workers);

}  // namespace reckon
