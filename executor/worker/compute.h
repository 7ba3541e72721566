#pragma once
#include <memory>
#include <string>

#include "executor/comm/communicator.h"
#include "executor/comm/gradient_exchange.h"
#include "executor/comm/rendezvous/rendezvous.h"
#include "executor/comm/rendezvous/worker_identity.h"
#include "executor/train/layouts/layout_training.h"
#include "executor/train/step_runtime.h"
#include "executor/worker/job_options.h"
#include "sim/scenario/plan.h"

// What this process trains on: the CPU, or a CUDA device.
namespace reckon::worker {

/// As measurements name it.
struct ComputeName {
  std::string precision = "fp32", stack, accelerator;  // accelerator: empty on a CPU
};

class Compute {
 public:
  virtual ~Compute() = default;
  virtual ComputeName name() const = 0;
  virtual std::unique_ptr<StepRuntime> make_runtime(const RuntimeOptions& options) = 0;
  /// Over all devices of the job.
  virtual std::unique_ptr<GradientExchange> make_exchange() = 0;
  /// Of a layout that cuts state or model.
  virtual LayoutMaker& layouts() = 0;
  /// Through parameter servers: over `host`, which works in this machine's memory, in the layout of
  /// its runtime; null on all ranks of a worker but the first.
  virtual std::unique_ptr<GradientExchange> stage(std::unique_ptr<GradientExchange> host,
                                                  const ParameterLayout& layout) = 0;
};

/// The shared libraries that training on a device loads when it needs them, a line each as ldd(1)
/// prints them; "" where this build has no CUDA. Throws std::runtime_error where one is not here.
std::string device_libraries();

/// Why the ranks of a worker cannot have a device each, where some are here; "": they can, or there
/// are none at all and they compute on CPUs, or were told to.
std::string why_too_few_devices(DeviceWish wish, int ranks);

/// What of the links that the plan counts on between a worker's devices is not here; "": nothing,
/// or its ranks have no devices.
std::string what_is_apart(DeviceWish wish, int ranks, const PlannedPool& pool);

/// Whom a rank trains with.
struct JobPeers {
  Communicator& all;
  Communicator* of_worker = nullptr;  // this worker's ranks, of several under parameter servers
  Membership* membership = nullptr;   // null: this rank is alone
};

/// The device of `me.local_rank` where options.device says so: null: the CPU. `peers`: all ranks
/// choose the same, the CPU where one of them cannot have a device; where the job is the reason, it
/// is said on standard error. Devices exchange over NCCL, or where a rank has none through their
/// hosts' memory, which rank 0 says.
/// With --device cuda it throws instead: std::invalid_argument where the job is the reason,
/// std::runtime_error where the machine is. All must outlive it. `on_device`: set once it is a
/// device, which may then fail to open.
std::unique_ptr<Compute> choose_device(const JobOptions& options, const PlannedWorkload& job,
                                       const WorkerIdentity& me, const JobPeers& peers,
                                       bool& on_device);

}  // namespace reckon::worker
