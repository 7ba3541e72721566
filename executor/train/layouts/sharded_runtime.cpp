#include "executor/train/layouts/sharded_runtime.h"

#include <optional>

#include "executor/comm/paged_buffer.h"
#include "executor/train/layouts/block_walk.h"
#include "executor/train/layouts/exchange_blocks.h"

namespace reckon {
namespace {

class PagedRuntime final : public ShardedRuntime {
 public:
  PagedRuntime(const ModelGraph& model, RuntimeOptions options, Workers& workers,
               ZeroExchange* gathers)
      : runtime_(model, options, workers),
        values_(runtime_.layout().count),
        gradients_(runtime_.layout().count) {
    if (gathers == nullptr) return;
    const Schedule& schedule = runtime_.schedule();
    const auto blocks = exchange_blocks(model, runtime_.layout());
    const auto uses = [&](std::size_t actions) {
      return block_uses(runtime_.rank_model(), runtime_.layout(), blocks, schedule, actions);
    };
    training_ = uses(schedule.actions.size());
    evaluating_ = uses(schedule.forward_count);
    walk_.emplace(*gathers);
    runtime_.set_hooks({.before = [this](std::size_t action) { walk_->before(action); },
                        .after = [this](std::size_t action) { walk_->after(action); }});
  }

  const ParameterLayout& layout() const override { return runtime_.layout(); }
  ParameterView exchanged() override { return {values_.span(), gradients_.span()}; }
  void begin_step() override {}  // gradients that were exchanged are zero
  double forward(const BatchView& batch, StepPosition position, bool training) override {
    if (walk_) walk_->begin_pass(training ? training_ : evaluating_);
    return runtime_.forward(batch, values_.span(), position, training);
  }
  void backward(double scale, const std::function<void(ParameterRange)>& ready) override {
    runtime_.backward(values_.span(), gradients_.span(), scale, {.ready = ready, .leaves = {}});
  }
  ModelExchanges take_exchanged() override { return runtime_.take_exchanged(); }
  std::span<float> values() override { return values_.span(); }
  std::vector<RunningStatistics<float>> running_statistics() override {
    return runtime_.running_statistics();
  }
  void to_host() override {}
  void to_device() override {}
  Bytes activation_memory() const override { return runtime_.activation_memory(); }
  Bytes parameter_memory() const override { return values_.resident() + gradients_.resident(); }

 private:
  GraphRuntime<float> runtime_;
  PagedBuffer values_, gradients_;
  std::vector<BlockUse> training_, evaluating_;
  std::optional<BlockWalk> walk_;
};

}  // namespace

std::unique_ptr<ShardedRuntime> make_sharded_runtime(const ModelGraph& model,
                                                     RuntimeOptions options, Workers& workers,
                                                     ZeroExchange* gathers) {
  return std::make_unique<PagedRuntime>(model, options, workers, gathers);
}

}  // namespace reckon
