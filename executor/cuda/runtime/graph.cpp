#include "executor/cuda/runtime/graph.h"

#include <algorithm>
#include <map>
#include <optional>

#include "executor/cuda/layers/expert_route.h"
#include "executor/cuda/layers/runner.h"
#include "executor/cuda/layers/token_blocks.h"
#include "executor/cuda/memory/streams.h"
#include "executor/cuda/runtime/logit_strides.h"
#include "executor/cuda/runtime/losses.h"
#include "executor/cuda/runtime/tensor_sums.h"
#include "executor/train/device/layers.h"
#include "executor/train/parallel/token_parts.h"
#include "sim/base/check.h"
#include "sim/model/shapes.h"

namespace reckon::cuda {
namespace {

template <class E>
class Graph final : public DeviceGraph {
 public:
  Graph(const ModelGraph& model, const RuntimeOptions& options, DeviceParameters& parameters,
        const DeviceGroups& groups, cudaStream_t stream)
      : options_(options),
        parameters_(parameters),
        rank_(std::move(*make_rank_model(model, options.place))),
        part_(options.part ? rank_.span_of(*options.part) : all_layers(rank_)),
        logit_strides_(logit_strides(rank_, part_)),
        schedule_(make_schedule(with_strides(rank_, logit_strides_), options.batch,
                                options.recompute, kLineElements, true, part_)),
        products_(stream),
        memory_(schedule_.elements),
        losses_(model, rank_, part_, options.batch) {
    pass_.products = &products_;
    pass_.stream = stream;
    pass_.seed = options.seed;
    pass_.tensor = groups.tensor;
    pass_.context = groups.context;
    if (groups.context != nullptr) pass_.round = round_.emplace().get();
    pass_.expert = groups.expert;
    pass_.expert_hosts = groups.expert_hosts;
    pass_.taken = &taken_;
    RECKON_CHECK((options.place.tensor.ranks > 1) == (groups.tensor != nullptr));
    RECKON_CHECK((options.place.context.ranks > 1) == (groups.context != nullptr));
    RECKON_CHECK((options.place.expert.ranks > 1) == (groups.expert != nullptr));
    RECKON_CHECK((groups.expert != nullptr) == (groups.expert_hosts != nullptr));
    prepare();
    in_ = crossing_at(part_.first);
    out_ = crossing_at(part_.end);
  }

  const Schedule& schedule() const override { return schedule_; }
  const RankModel& rank_model() const override { return rank_; }
  void set_hooks(ActionHooks hooks) override { hooks_ = std::move(hooks); }

  double forward(const BatchView& batch, StepPosition position, bool training) override {
    pass_.training = training;
    pass_.step = position.step;
    pass_.first_sample = position.first_sample;
    if (is_part()) statistics_to_device();
    set_data(batch);
    for (const Cut& cut : in_)
      queue_to_device(cut.value, cut.values.span(), pass_.stream, "activations");
    for (std::size_t t = 0; t < schedule_.forward_count; ++t) run(t);
    for (const Cut& cut : out_)
      queue_to_host(cut.values.span(), cut.value, pass_.stream, "activations");
    const double loss = part_.end == rank_.layers.size() ? losses_.value(pass_.stream) : 0;
    check(cudaStreamSynchronize(pass_.stream), "forward pass");
    if (is_part()) statistics_to_host();
    return loss;
  }

  void backward(double scale, const GradientTaker& taker) override {
    RECKON_CHECK(pass_.training);
    const bool ends = part_.end == rank_.layers.size();
    if (ends && schedule_.gradients.back().first < 0) return;  // nothing is trained
    for (const Cut& cut : out_)
      if (cut.gradient != nullptr)
        queue_to_device(cut.gradient, cut.gradients.span(), pass_.stream, "gradients");
    losses_.set_slopes(scale, pass_.stream);
    for (std::size_t t = schedule_.forward_count; t < schedule_.actions.size(); ++t) {
      const Action& action = schedule_.actions[t];
      run(t);
      const ParameterRange range = prepared_[action.layer].trained;
      if (action.kind != Action::Kind::backward || range.count == 0 || !taker.takes(range))
        continue;
      if (const RankLayer& layer = rank_.layers[action.layer]; layer.sums_weights)
        sums_.sum(layer.origin, parameters_, pass_);
      taker.ready(range);
    }
    for (const Cut& cut : in_)
      if (cut.gradient != nullptr)
        queue_to_host(cut.gradients.span(), cut.gradient, pass_.stream, "gradients");
    // The step's parts are what the device takes, not what queueing takes.
    check(cudaStreamSynchronize(pass_.stream), "backward pass");
  }

  Crossing crossing_in() override { return spans_of(in_); }
  Crossing crossing_out() override { return spans_of(out_); }

  std::vector<RunningStatistics<float>> running_statistics() override {
    std::vector<RunningStatistics<float>> all;
    for (std::size_t i = part_.first; i < part_.end; ++i)
      add_statistics<float>(rank_.layers[i].layer.name, prepared_[i].statistics, all);
    return all;
  }
  void statistics_to_host() override {
    for_statistics(
        [](float* here, float* there, std::size_t bytes) { copy_to_host(here, there, bytes); });
  }
  void statistics_to_device() override {
    for_statistics([](const float* here, float* there, std::size_t bytes) {
      copy_to_device(there, here, bytes);
    });
  }
  ModelExchanges take_exchanged() override { return std::exchange(taken_, {}); }
  Bytes activation_memory() const override {
    return Bytes{static_cast<double>(memory_.size()) * sizeof(E)};
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct Prepared {
    DeviceLayerMemory<E> forward, late;
    DeviceRunnerPtr<E> runner;                 // null: a layer of another part
    std::size_t weight = kNone, bias = kNone;  // slots
    ParameterRange trained;                    // in the padded layout
    DeviceBuffer<float> record;                // of an input layer
    std::vector<float> own_tokens;             // of its numbers, where context ranks have others
    std::vector<float> statistics;             // on the host
  };
  /// What crosses the begin or the end of a part, of one layer.
  struct Cut {
    E *value = nullptr, *gradient = nullptr;
    PinnedBuffer<std::byte> values, gradients;
  };

  bool is_part() const { return options_.part.has_value(); }

  void prepare() {
    const auto& layers = rank_.layers;
    std::int64_t scratch = 0;
    prepared_ = std::vector<Prepared>(layers.size());
    for (std::size_t i = part_.first; i < part_.end; ++i) {
      Prepared& p = prepared_[i];
      Layer layer = layers[i].layer;
      layer.id = layers[i].origin;  // decides the dropout masks
      p.runner = make_device_runner<E>(layer, geometry_of(rank_, layers[i], options_.batch),
                                       route_of(layer));
      scratch = std::max(scratch, p.runner->scratch_bytes());
      if (std::holds_alternative<InputLayer>(layer.op))
        p.record = DeviceBuffer<float>(options_.batch * elements(layer.output));
      p.statistics.resize(p.runner->running_statistics().size());
      find_weights(i);
    }
    scratch_ = DeviceBuffer<std::byte>(scratch);
    const auto accumulate = accumulating_inputs(rank_);
    for (std::size_t i = part_.first; i < part_.end; ++i) {
      for (const bool late : {false, true}) {
        DeviceLayerMemory<E>& memory = late ? prepared_[i].late : prepared_[i].forward;
        point_to_tensors(layers[i].layer.inputs, schedule_, i, late, memory_.data(), memory);
        memory.output_stride = logit_strides_[i];
        if (const auto& inputs = layers[i].layer.inputs; !inputs.empty())
          memory.input_stride = logit_strides_[index(inputs[0])];
        point_to_shared(memory, i);
      }
      prepared_[i].late.accumulate = accumulate[i];
    }
    statistics_to_host();  // as runners begin with them
  }

  /// All layers of a mixture read the same scores.
  ExpertRoute* route_of(const Layer& layer) {
    if (experts_of(layer.op) == 0) return nullptr;
    return &routes_[rank_.layers[index(layer.inputs[1])].origin];
  }

  void find_weights(std::size_t i) {
    const RankLayer& layer = rank_.layers[i];
    if (layer.is_exchange()) return;
    Prepared& p = prepared_[i];
    const auto& slots = parameters_.padded().slots;
    for (std::size_t s = 0; s < slots.size(); ++s) {
      const bool owned = slots[s].layer == layer.origin, is_bias = slots[s].name.ends_with(".bias");
      if (owned && is_bias) p.bias = s;
      if (!is_bias && (owned || layer.layer.tied_to == slots[s].layer)) p.weight = s;
      if (!owned || !slots[s].trained) continue;
      if (p.trained.count == 0) p.trained.first = slots[s].first;
      p.trained.count = slots[s].first + slots[s].count - p.trained.first;
    }
  }

  /// What all layers share, and the numbers of the input as they came.
  void point_to_shared(DeviceLayerMemory<E>& memory, std::size_t i) {
    memory.scratch = scratch_.data();
    if (DeviceLoss* loss = losses_.at(i); loss != nullptr) memory.losses = loss->values.data();
    const Source source = source_of(i);
    if (prepared_[source.layer].record.size() == 0) return;
    memory.record = prepared_[source.layer].record.data();
    memory.record_width = elements(rank_.layers[source.layer].layer.output);
    memory.record_first = source.first;
  }
  /// Where a layer's first input comes from: of an input layer, or of some of its fields, which of
  /// a sample's numbers come first.
  struct Source {
    std::size_t layer = 0;
    std::int64_t first = 0;
  };
  Source source_of(std::size_t i) const {
    const auto& inputs = rank_.layers[i].layer.inputs;
    if (inputs.empty()) return {i};
    const std::size_t from = index(inputs[0]);
    const auto* fields = std::get_if<SelectFeatures>(&rank_.layers[from].layer.op);
    if (fields == nullptr) return {from};
    return {index(rank_.layers[from].layer.inputs[0]), fields->first};
  }

  /// They may be elsewhere in each pass.
  void point_to_weights(const Prepared& p, DeviceLayerMemory<E>& memory, bool backward,
                        bool frozen) {
    const auto point = [&](std::size_t slot, const E*& weight, float*& gradient) {
      if (slot == kNone) return;
      weight = static_cast<const E*>(parameters_.weight(slot));
      gradient = backward && !frozen ? parameters_.gradient(slot) : nullptr;
    };
    point(p.weight, memory.weight, memory.weight_gradient);
    point(p.bias, memory.bias, memory.bias_gradient);
  }

  std::vector<Cut> crossing_at(std::size_t at) {
    std::vector<Cut> cuts;
    for (const std::size_t layer : crossing(rank_, at)) {
      const std::size_t bytes =
          static_cast<std::size_t>(options_.batch * elements(rank_.layers[layer].layer.output)) *
          sizeof(E);
      const TensorPlace &value = schedule_.values[layer], &gradient = schedule_.gradients[layer];
      RECKON_CHECK(value.first >= 0);
      Cut cut;
      cut.value = memory_.data() + value.first;
      cut.values = PinnedBuffer<std::byte>(bytes);
      if (gradient.first >= 0) {
        cut.gradient = memory_.data() + gradient.first;
        cut.gradients = PinnedBuffer<std::byte>(bytes);
      }
      cuts.push_back(std::move(cut));
    }
    return cuts;
  }
  static Crossing spans_of(const std::vector<Cut>& cuts) {
    Crossing crossing;
    for (const Cut& cut : cuts) {
      crossing.values.push_back(cut.values.span());
      crossing.gradients.push_back(cut.gradients.span());
    }
    return crossing;
  }

  template <class Copy>
  void for_statistics(Copy copy) {
    for (std::size_t i = part_.first; i < part_.end; ++i)
      if (std::vector<float>& here = prepared_[i].statistics; !here.empty())
        copy(here.data(), prepared_[i].runner->running_statistics().data(),
             here.size() * sizeof(float));
  }

  void set_data(const BatchView& batch) {
    std::size_t input = 0;
    for (std::size_t i = 0; i < rank_.layers.size(); ++i) {
      const bool is_input = std::holds_alternative<InputLayer>(rank_.layers[i].layer.op);
      const std::size_t data = is_input ? input++ : 0;
      if (!part_.has(i)) continue;
      Prepared& p = prepared_[i];
      if (is_input) {
        std::span<const float> numbers = batch.inputs[data];
        if (const TokenPart& tokens = rank_.layers[i].part.tokens; !tokens.all())
          numbers = p.own_tokens = own_tokens(numbers, options_.batch, tokens);
        RECKON_CHECK(count_of(numbers.size()) == p.record.size());
        queue_to_device(p.record.data(), std::as_bytes(numbers), pass_.stream, "copying the batch");
        p.forward.record_here = numbers;
      }
      const std::span<const float> here = prepared_[source_of(i).layer].forward.record_here;
      p.forward.record_here = p.late.record_here = here;
    }
    losses_.set_targets(batch.targets, pass_.stream);
    if (masked_.size() != count_of(batch.masked.size()))
      masked_ = DeviceBuffer<std::int32_t>(count_of(batch.masked.size()));
    if (!batch.masked.empty())
      queue_to_device(masked_.data(), std::as_bytes(batch.masked), pass_.stream,
                      "copying the batch");
    pass_.masked = batch.masked.empty() ? nullptr : masked_.data();
  }

  void run(std::size_t at) {
    const Action& action = schedule_.actions[at];
    Prepared& p = prepared_[action.layer];
    if (hooks_.before) hooks_.before(at);
    if (!losses_.combines(action.layer)) run(action, p);
    if (hooks_.after) hooks_.after(at);
  }
  void run(const Action& action, Prepared& p) {
    if (const DeviceLoss* loss = losses_.at(action.layer); loss != nullptr) {
      pass_.target = loss->targets.data();
      pass_.slopes = loss->slopes.data();
    }
    DeviceLayerMemory<E>& memory = action.kind == Action::Kind::forward ? p.forward : p.late;
    point_to_weights(p, memory, action.kind == Action::Kind::backward,
                     rank_.layers[action.layer].layer.frozen);
    pass_.recomputing = action.kind == Action::Kind::recompute;
    if (action.kind == Action::Kind::backward)
      p.runner->backward(memory, pass_);
    else
      p.runner->forward(memory, pass_);
  }

  RuntimeOptions options_;
  DeviceParameters& parameters_;
  RankModel rank_;
  LayerSpan part_;
  std::vector<std::int64_t> logit_strides_;
  Schedule schedule_;
  ActionHooks hooks_;
  Products products_;
  std::map<LayerId, ExpertRoute> routes_;  // by scores of experts
  std::vector<Prepared> prepared_;         // by layer
  DeviceBuffer<E> memory_;
  DeviceLosses losses_;
  TensorSums sums_;
  DeviceBuffer<std::byte> scratch_;
  DeviceBuffer<std::int32_t> masked_;
  std::vector<Cut> in_, out_;
  ModelExchanges taken_;
  std::optional<OwnStream> round_;
  DevicePass pass_;
};

}  // namespace

std::unique_ptr<DeviceGraph> make_device_graph(const ModelGraph& model,
                                               const RuntimeOptions& options,
                                               DeviceParameters& parameters,
                                               const DeviceGroups& groups,
                                               DevicePrecision precision, cudaStream_t stream) {
  RECKON_CHECK(cannot_run(model).empty());
  RECKON_CHECK(cannot_run_on_device(model).empty());
  if (precision == DevicePrecision::bf16)
    return std::make_unique<Graph<Bf16>>(model, options, parameters, groups, stream);
  if (precision == DevicePrecision::fp16)
    return std::make_unique<Graph<Half>>(model, options, parameters, groups, stream);
  return std::make_unique<Graph<float>>(model, options, parameters, groups, stream);
}

}  // namespace reckon::cuda
