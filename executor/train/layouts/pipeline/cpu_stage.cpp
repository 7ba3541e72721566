#include <algorithm>
#include <optional>
#include <utility>

#include "executor/comm/paged_buffer.h"
#include "executor/train/layouts/pipeline/stage_compute.h"

namespace reckon {
namespace {

/// Of the parameters or the gradients: on pages that may be given back, where parts of them go.
class StageBuffer {
 public:
  StageBuffer(std::size_t count, bool paged) {
    if (paged)
      paged_ = PagedBuffer(count);
    else
      whole_.emplace(count);
  }
  std::span<float> span() { return whole_ ? whole_->span() : paged_.span(); }

 private:
  std::optional<AlignedBuffer<float>> whole_;
  PagedBuffer paged_;
};

class CpuPart final : public PartRuntime {
 public:
  CpuPart(const ModelGraph& model, const RuntimeOptions& options, Workers& workers,
          std::span<float> values, std::span<float> gradients)
      : runtime_(model, options, workers), values_(values), gradients_(gradients) {}

  const Schedule& schedule() const override { return runtime_.schedule(); }
  const RankModel& rank_model() const override { return runtime_.rank_model(); }
  void set_hooks(ActionHooks hooks) override { runtime_.set_hooks(std::move(hooks)); }
  double forward(const BatchView& batch, StepPosition position, bool training) override {
    return runtime_.forward(batch, values_, position, training);
  }
  void backward(double scale, const GradientTaker& taker) override {
    runtime_.backward(values_, gradients_, scale, taker);
  }
  Crossing crossing_in() override { return bytes_of(runtime_.crossing_in()); }
  Crossing crossing_out() override { return bytes_of(runtime_.crossing_out()); }
  std::vector<RunningStatistics<float>> running_statistics() override {
    return runtime_.running_statistics();
  }
  ModelExchanges take_exchanged() override { return runtime_.take_exchanged(); }
  Bytes activation_memory() const override { return runtime_.activation_memory(); }

 private:
  static Crossing bytes_of(const GraphRuntime<float>::Crossing& crossing) {
    Crossing bytes;
    for (const auto& v : crossing.values) bytes.values.push_back(std::as_writable_bytes(v));
    for (const auto& g : crossing.gradients) bytes.gradients.push_back(std::as_writable_bytes(g));
    return bytes;
  }
  GraphRuntime<float> runtime_;
  std::span<float> values_, gradients_;
};

class CpuStage final : public StageCompute {
 public:
  CpuStage(const ModelGraph& model, ParameterLayout layout, int zero_stage, Workers& workers)
      : model_(model),
        layout_(std::move(layout)),
        zero_stage_(zero_stage),
        workers_(workers),
        values_(layout_.count, zero_stage >= 3),
        gradients_(layout_.count, zero_stage >= 2) {}

  std::unique_ptr<PartRuntime> make_part(const RuntimeOptions& options) override {
    RuntimeOptions of_stage = options;
    of_stage.layout = layout_;
    return std::make_unique<CpuPart>(model_, of_stage, workers_, values_.span(), gradients_.span());
  }
  const ParameterLayout& layout() const override { return layout_; }
  const ParameterLayout& exchanged_layout() const override { return layout_; }
  ParameterView exchanged() override { return {values_.span(), gradients_.span()}; }
  void begin_step() override {
    if (zero_stage_ < 2) std::ranges::fill(gradients_.span(), 0.0F);
    for (const ParameterSlot& slot : layout_.slots)  // all else was exchanged, and is zero
      if (slot.copied) std::ranges::fill(of(gradients_, slot), 0.0F);
  }
  std::span<const float> value(std::size_t slot) override {
    return of(values_, layout_.slots[slot]);
  }
  void set_value(std::size_t slot, std::span<const float> value) override {
    std::ranges::copy(value, of(values_, layout_.slots[slot]).begin());
  }
  std::span<const float> gradient(std::size_t slot) override {
    return of(gradients_, layout_.slots[slot]);
  }
  void add_gradient(std::size_t slot, std::span<const float> summand) override {
    const std::span<float> ours = of(gradients_, layout_.slots[slot]);
    for (std::size_t i = 0; i < ours.size(); ++i) ours[i] += summand[i];
  }
  std::span<float> values() override { return values_.span(); }

 private:
  static std::span<float> of(StageBuffer& buffer, const ParameterSlot& slot) {
    return buffer.span().subspan(slot.first, slot.count);
  }
  const ModelGraph& model_;
  const ParameterLayout layout_;
  const int zero_stage_;
  Workers& workers_;
  StageBuffer values_, gradients_;
};

}  // namespace

std::unique_ptr<StageCompute> make_cpu_stage(const ModelGraph& model, ParameterLayout layout,
                                             int zero_stage, Workers& workers) {
  return std::make_unique<CpuStage>(model, std::move(layout), zero_stage, workers);
}

}  // namespace reckon
