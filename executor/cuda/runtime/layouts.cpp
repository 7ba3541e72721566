#include "executor/cuda/runtime/layouts.h"

#include <utility>

#include "executor/cuda/exchange/all_reduce.h"
#include "executor/cuda/exchange/offload.h"
#include "executor/cuda/exchange/zero.h"
#include "executor/cuda/runtime/runtime.h"
#include "executor/cuda/runtime/stage.h"
#include "executor/train/layouts/exchange_blocks.h"
#include "executor/train/layouts/pipeline/runtime.h"

namespace reckon::cuda {
namespace {

class DeviceLayouts final : public LayoutMaker {
 public:
  DeviceLayouts(DevicePrecision precision, cudaStream_t stream, GroupMaker groups)
      : precision_(precision), stream_(stream), make_group_(std::move(groups)) {}

  std::unique_ptr<ZeroExchange> make_zero(const RankInLayout& rank, ZeroOptions options) override {
    prepare(rank);
    if (rank.layout.offload_optimizer)
      return make_offloaded_zero_exchange(*replicas_, expert_replicas_.get(), rank.replicas,
                                          std::move(options), *parameters_, rank.workers, stream_);
    return make_device_zero_exchange(*replicas_, expert_replicas_.get(), rank.replicas,
                                     std::move(options), *parameters_, stream_);
  }
  std::unique_ptr<GradientExchange> make_all_reduce(const RankInLayout& rank,
                                                    AllReduceOptions options) override {
    prepare(rank);
    if (rank.layout.offload_optimizer)
      return make_offloaded_exchange(*replicas_, expert_replicas_.get(), rank.replicas,
                                     std::move(options), *parameters_, rank.workers, stream_);
    return make_device_exchange(replicas_.get(), std::move(options), rank.parameters, stream_,
                                expert_replicas_.get());
  }
  std::unique_ptr<StepRuntime> make_runtime(const RankInLayout& rank, const RuntimeOptions& passes,
                                            ZeroExchange* gathers) override {
    DeviceGroups groups;
    if (rank.layout.tensor > 1) {
      tensor_ = make_group_(*rank.groups->tensor);
      groups.tensor = tensor_.get();
    }
    if (rank.layout.context > 1) {
      context_ = make_group_(*rank.groups->context);
      groups.context = context_.get();
    }
    if (rank.layout.expert > 1) {
      expert_ = make_group_(*rank.groups->expert);
      groups.expert = expert_.get();
      groups.expert_hosts = rank.groups->expert.get();
    }
    if (rank.layout.pipeline == 1)
      return make_device_runtime(rank.model, passes, *parameters_, groups, gathers, precision_,
                                 stream_);
    return make_pipeline_runtime(
        rank.model, passes, rank.layout, {*rank.groups->pipeline, *rank.groups->pipeline_back},
        make_device_stage(rank.model, *parameters_, groups, precision_, stream_), gathers);
  }

 private:
  void prepare(const RankInLayout& rank) {
    replicas_ = make_group_(rank.replicas);
    if (rank.layout.expert > 1) expert_replicas_ = make_group_(*rank.groups->expert_state);
    parameters_ = std::make_unique<DeviceParameters>(
        rank.parameters, exchange_blocks(rank.model, rank.parameters), rank.layout.zero_stage,
        precision_, stream_, rank.layout.offload_optimizer);
  }

  const DevicePrecision precision_;
  cudaStream_t stream_;
  const GroupMaker make_group_;
  std::unique_ptr<ReducingGroup> replicas_, tensor_, context_, expert_, expert_replicas_;
  std::unique_ptr<DeviceParameters> parameters_;
};

}  // namespace

std::unique_ptr<LayoutMaker> make_device_layouts(DevicePrecision precision, cudaStream_t stream,
                                                 GroupMaker groups) {
  return std::make_unique<DeviceLayouts>(precision, stream, std::move(groups));
}

}  // namespace reckon::cuda
