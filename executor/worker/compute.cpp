#include "executor/worker/compute.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <utility>

#include "sim/base/standard_streams.h"

#ifdef RECKON_WITH_CUDA
#include "executor/cuda/exchange/all_reduce.h"
#include "executor/cuda/exchange/nccl_communicator.h"
#include "executor/cuda/exchange/peer_loss.h"
#include "executor/cuda/exchange/staged.h"
#include "executor/cuda/libraries/nccl.h"
#include "executor/cuda/libraries/run_time_libraries.h"
#include "executor/cuda/open_device.h"
#include "executor/cuda/runtime/layouts.h"
#include "executor/cuda/runtime/runtime.h"
#include "executor/train/recipe/recipe.h"
#include "sim/scenario/own_program.h"
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
  CudaCompute(const PlannedWorkload& job, const WorkerIdentity& me, const JobPeers& peers)
      : job_(job), of_worker_(peers.of_worker), device_(me.local_rank) {
    // Servers add up what the workers send.
    if (job.strategy.servers && of_worker_ == nullptr) return;
    if (peers.membership != nullptr) watch(*peers.membership, me.local_rank);
    const std::string without = why_not_over_nccl(me, peers.all);
    const auto make_group = [this, nccl = without.empty(), device = me.local_rank](
                                Communicator& hosts) -> std::unique_ptr<cuda::ReducingGroup> {
      if (nccl) return cuda::make_nccl_communicator(hosts, device, loss_ ? &*loss_ : nullptr);
      return cuda::make_staged_group(hosts);
    };
    if (job.strategy.servers) {
      reducer_ = make_group(*of_worker_);
      return;
    }
    if (cuts_the_model(job.strategy)) {
      layouts_ = cuda::make_device_layouts(*precision_of(job_), device_.stream(), make_group);
      return;
    }
    // A gang of one reduces over NCCL too, where it is there: what runs on one GPU is what runs on
    // a hundred.
    const bool gang = job.strategy.kind != StrategyKind::single && without.empty();
    if (peers.all.size() > 1 || gang) reducer_ = make_group(peers.all);
  }
  ComputeName name() const override {
    const bool whole = *precision_of(job_) == cuda::DevicePrecision::fp32;
    return {.precision = whole ? "fp32" : std::string(to_text(job_.precision)),
            .stack = kOwnDeviceStack,
            .accelerator = device_.name()};
  }
  std::unique_ptr<StepRuntime> make_runtime(const RuntimeOptions& options) override {
    return cuda::make_device_runtime(job_.model, options, *precision_of(job_), device_.stream());
  }
  std::unique_ptr<GradientExchange> make_exchange() override {
    return cuda::make_device_exchange(reducer_.get(),
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
        .devices = reducer_.get(), .hosts = of_worker_, .in_lockstep = in_lockstep};
    return cuda::make_staged_exchange(std::move(host), layout, device_.stream(), worker);
  }

 private:
  void watch(Membership& membership, int device) {
    constexpr Seconds kToKnowWho{2};
    loss_.emplace(
        [&membership](std::function<void()> act) { membership.on_loss(std::move(act)); },
        [&membership](const std::string& what) { return membership.lost_peer(what, kToKnowWho); },
        device);
  }
  /// All ranks use it, or none. Collective.
  static std::string why_not_over_nccl(const WorkerIdentity& me, Communicator& all) {
    std::string why = cuda::why_no_nccl();
    if (all.size() == 1) return why;
    std::int64_t without = why.empty() ? 0 : 1;
    all.all_reduce(std::span<std::int64_t>(&without, 1));
    if (without == 0) return "";
    if (why.empty()) why = "another rank has no NCCL";
    if (me.rank == 0)
      print_error(fmt::format(
          "reckon-worker: warning: devices exchange through their hosts' memory: {}\n", why));
    return why;
  }

  const PlannedWorkload& job_;
  Communicator* of_worker_;
  std::optional<cuda::PeerLoss> loss_;  // outlives what it ends
  cuda::OpenDevice device_;
  std::unique_ptr<LayoutMaker> layouts_;
  std::unique_ptr<cuda::ReducingGroup> reducer_;
};

std::unique_ptr<Compute> open(const PlannedWorkload& job, const WorkerIdentity& me,
                              const JobPeers& peers) {
  return std::make_unique<CudaCompute>(job, me, peers);
}

#else

std::optional<Refusal> refusal(const PlannedWorkload&, const WorkerIdentity&) {
  return Refusal{"this reckon-worker was built without CUDA"};
}
std::unique_ptr<Compute> open(const PlannedWorkload&, const WorkerIdentity&, const JobPeers&) {
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
                                       const WorkerIdentity& me, const JobPeers& peers,
                                       bool& on_device) {
  on_device = false;
  if (options.device == DeviceWish::cpu) return nullptr;
  const std::optional<Refusal> mine = refusal(job, me);
  if (options.device == DeviceWish::cuda) {
    on_device = !mine;
    if (!mine) return open(job, me, peers);
    const std::string text = "--device cuda: " + mine->why;
    if (mine->of_job) throw std::invalid_argument(text);
    throw std::runtime_error(text);
  }
#ifdef RECKON_WITH_CUDA
  std::int64_t refusals = mine ? 1 : 0;
  peers.all.all_reduce(std::span<std::int64_t>(&refusals, 1));
  on_device = refusals == 0;
  if (on_device) return open(job, me, peers);
  if (me.rank == 0 && (!mine || mine->of_job))
    print_error(fmt::format("reckon-worker: on the CPU: {}\n",
                            mine ? mine->why : "another rank has no device"));
#endif
  return nullptr;
}

}  // namespace reckon::worker
