#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "executor/cuda/exchange/group.h"
#include "executor/cuda/memory/parameters.h"
#include "executor/train/layouts/pipeline/stage_compute.h"

namespace reckon::cuda {

/// The groups of the ranks that share a model or its experts, of their devices and of their hosts;
/// null: one rank.
struct DeviceGroups {
  DeviceGroup *tensor = nullptr, *context = nullptr, *expert = nullptr;
  Communicator* expert_hosts = nullptr;
};

/// As GraphRuntime, on the current device of the thread that makes it: the schedule and the memory
/// plan of the CPU's, the kernels of kernels/, products by cuBLASLt. Work is queued on a stream.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  virtual const Schedule& schedule() const = 0;
  virtual const RankModel& rank_model() const = 0;
  virtual void set_hooks(ActionHooks hooks) = 0;

  /// The loss, for which it waits; of a part that has none 0.
  virtual double forward(const BatchView& batch, StepPosition position, bool training) = 0;
  /// `ready` is given ranges of the padded layout, when what makes them is queued. Waits for all.
  virtual void backward(double scale, const GradientTaker& taker) = 0;

  /// Of a part: what crosses into it and out of it, in the precision's bits, on the host: filled in
  /// before a forward pass (values that come) and a backward pass (gradients that come); made by a
  /// forward pass (values that go) and a backward pass (gradients that go). Empty: no gradient.
  using Crossing = PartRuntime::Crossing;
  virtual Crossing crossing_in() = 0;
  virtual Crossing crossing_out() = 0;

  /// On the host; of a part they are what passes begin with, and end with.
  virtual std::vector<RunningStatistics<float>> running_statistics() = 0;
  virtual void statistics_to_host() = 0;
  virtual void statistics_to_device() = 0;

  virtual ModelExchanges take_exchanged() = 0;
  virtual Bytes activation_memory() const = 0;
};

/// `parameters`: of its layout, or of more; model, parameters and groups must outlive it.
/// cannot_run() and cannot_run_on_device() must be empty. Throws DeviceError, also where memory is
/// short.
std::unique_ptr<DeviceGraph> make_device_graph(const ModelGraph& model,
                                               const RuntimeOptions& options,
                                               DeviceParameters& parameters,
                                               const DeviceGroups& groups,
                                               DevicePrecision precision, cudaStream_t stream);

}  // namespace reckon::cuda
