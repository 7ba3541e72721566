#include "executor/worker/compute.h"

#include <fmt/format.h>

#include <optional>
#include <stdexcept>

#include "sim/base/standard_streams.h"

#ifdef RECKON_WITH_CUDA
#include "executor/cuda/exchange/all_reduce.h"
#include "executor/cuda/exchange/nccl_communicator.h"
#include "executor/cuda/exchange/staged.h"
#include "executor/cuda/libraries/nccl.h"
#include "executor/cuda/libraries/run_time_libraries.h"
#include "executor/cuda/open_device.h"
#include "executor/cuda/runtime/layouts.h"
#include "executor/cuda/runtime/runtime.h"
#include "executor/train/recipe/recipe.h"
#endif

namespace reckon::worker {
namespace {

/// Why not, and whose fault it is. With `--device auto` a machine without a device says nothing.
struct Refusal {
  std::string why;
  bool of_job = false;
};

#ifdef RECKON_WITH_CUDA

std::optional<cuda::DevicePrecision> precision_of(const PlannedWorkload& job) {
  switch (job.precision) {
    case Precision::fp32:
    case Precision::tf32:
      return cuda::DevicePrecision::fp32;
    case Precision::bf16:
      return cuda::DevicePrecision::bf16;
    case Precision::fp16:
      return cuda::DevicePrecision::fp16;
    default:
      return std::nullopt;
  }
}

std::optional<Refusal> refusal(const PlannedWorkload& job, const WorkerIdentity& me) {
  if (const std::string why = cuda::why_no_device(me.local_rank); !why.empty()) return Refusal{why};
  if (!precision_of(job))
    return Refusal{fmt::format("the plan's precision is {}; devices train in fp32, bf16 or fp16",
                               to_text(job.precision)),
                   true};
  const Diagnostics errors = cannot_run_on_device(job.model);
  if (!errors.empty()) return Refusal{errors[0].what, true};
  return std::nullopt;
}

class CudaCompute final : public Compute {
 public:
  CudaCompute(const PlannedWorkload& job, const WorkerIdentity& me, Communicator& peers,
              Communicator* of_worker)
      : job_(job), of_worker_(of_worker), device_(me.local_rank) {
    if (job.strategy.servers) {  // which add up what the workers send
      if (of_worker) nccl_ = cuda::make_nccl_communicator(*of_worker, me.local_rank);
      return;
    }
    if (cuts_the_model(job.strategy)) {
      cut(me, peers);
      return;
    }
    // A gang of one reduces over NCCL too, where it is there: what runs on one GPU is what runs on
    // a hundred.
    const bool gang = job.strategy.kind != StrategyKind::single && cuda::why_no_nccl().empty();
    if (peers.size() > 1 || gang) nccl_ = cuda::make_nccl_communicator(peers, me.local_rank);
  }
  ComputeName name() const override {
    const bool whole = *precision_of(job_) == cuda::DevicePrecision::fp32;
    return {.precision = whole ? "fp32" : std::string(to_text(job_.precision)),
            .stack = "reckon-cuda",
            .accelerator = device_.name()};
  }
  std::unique_ptr<StepRuntime> make_runtime(const RuntimeOptions& options) override {
    return cuda::make_device_runtime(job_.model, options, *precision_of(job_), device_.stream());
  }
  std::unique_ptr<GradientExchange> make_exchange() override {
    return cuda::make_device_exchange(nccl_.get(),
                                      {.optimizer = optimizer_rule(job_),
                                       .trained = {},
                                       .clip_norm = job_.optimizer_settings.clip_norm},
                                      parameter_layout(job_.model), device_.stream());
  }
  LayoutMaker& layouts() override { return *layouts_; }
  std::unique_ptr<GradientExchange> stage(std::unique_ptr<GradientExchange> host,
                                          const ParameterLayout& layout) override {
    const bool in_lockstep = job_.strategy.synchronous() && job_.strategy.backup_workers() == 0;
    cuda::StagedWorker worker{
        .devices = nccl_.get(), .hosts = of_worker_, .in_lockstep = in_lockstep};
    return cuda::make_staged_exchange(std::move(host), layout, device_.stream(), worker);
  }

 private:
  /// All ranks over NCCL, or none.
  void cut(const WorkerIdentity& me, Communicator& peers) {
    const std::string mine = cuda::why_no_nccl();
    std::int64_t without = mine.empty() ? 0 : 1;
    peers.all_reduce(std::span<std::int64_t>(&without, 1));
    const bool nccl = without == 0;
    if (!nccl && me.rank == 0)
      print_error(
          fmt::format("reckon-worker: warning: devices exchange through their hosts' memory: {}\n",
                      mine.empty() ? "another rank has no NCCL" : mine));
    layouts_ =
        cuda::make_device_layouts(*precision_of(job_), device_.stream(),
                                  [nccl, device = me.local_rank](
                                      Communicator& hosts) -> std::unique_ptr<cuda::ReducingGroup> {
                                    if (nccl) return cuda::make_nccl_communicator(hosts, device);
                                    return cuda::make_staged_group(hosts);
                                  });
  }

  const PlannedWorkload& job_;
  Communicator* of_worker_;
  cuda::OpenDevice device_;
  std::unique_ptr<LayoutMaker> layouts_;
  std::unique_ptr<cuda::NcclCommunicator> nccl_;
};

std::unique_ptr<Compute> open(const PlannedWorkload& job, const WorkerIdentity& me,
                              Communicator& peers, Communicator* of_worker) {
  return std::make_unique<CudaCompute>(job, me, peers, of_worker);
}

#else

std::optional<Refusal> refusal(const PlannedWorkload&, const WorkerIdentity&) {
  return Refusal{"this reckon-worker was built without CUDA"};
}
std::unique_ptr<Compute> open(const PlannedWorkload&, const WorkerIdentity&, Communicator&,
                              Communicator*) {
  return nullptr;
}

#endif

}  // namespace

std::string why_too_few_devices(DeviceWish wish, int ranks) {
#ifdef RECKON_WITH_CUDA
  return why_too_few_devices(wish, ranks, cuda::device_count());
#else
  return why_too_few_devices(wish, ranks, 0);
#endif
}

std::string what_is_apart(DeviceWish wish, int ranks, const PlannedPool& pool) {
#ifdef RECKON_WITH_CUDA
  if (wish != DeviceWish::cpu && cuda::device_count() >= ranks)
    return reckon::what_is_apart(cuda::pairs_apart(ranks), pool.peer_link.name);
#endif
  static_cast<void>(wish), static_cast<void>(ranks), static_cast<void>(pool);
  return "";
}

std::string device_libraries() {
  std::string text;
#ifdef RECKON_WITH_CUDA
  for (const cuda::LoadedLibrary& library : cuda::run_time_libraries()) {
    if (!library.problem().empty()) throw std::runtime_error(library.problem());
    text += fmt::format("{} => {}\n", library.name(), library.path());
  }
#endif
  return text;
}

std::unique_ptr<Compute> choose_device(const JobOptions& options, const PlannedWorkload& job,
                                       const WorkerIdentity& me, Communicator& peers,
                                       Communicator* of_worker) {
  if (options.device == DeviceWish::cpu) return nullptr;
  const std::optional<Refusal> mine = refusal(job, me);
  if (options.device == DeviceWish::cuda) {
    if (!mine) return open(job, me, peers, of_worker);
    const std::string text = "--device cuda: " + mine->why;
    if (mine->of_job) throw std::invalid_argument(text);
    throw std::runtime_error(text);
  }
#ifdef RECKON_WITH_CUDA
  std::int64_t refusals = mine ? 1 : 0;
  peers.all_reduce(std::span<std::int64_t>(&refusals, 1));
  if (refusals == 0) return open(job, me, peers, of_worker);
  if (me.rank == 0 && (!mine || mine->of_job))
    print_error(fmt::format("reckon-worker: on the CPU: {}\n",
                            mine ? mine->why : "another rank has no device"));
#endif
  return nullptr;
}

}  // namespace reckon::worker
