#include "executor/train/graph_runtime.h"

#include <algorithm>
#include <type_traits>

#include "sim/base/check.h"
#include "sim/model/shapes.h"

namespace reckon {
namespace {

bool is_loss(const LayerOp& op) {
  return std::holds_alternative<SoftmaxCrossEntropy>(op) ||
         std::holds_alternative<SigmoidCrossEntropy>(op) ||
         std::holds_alternative<MeanSquaredError>(op);
}

/// Ranks may have the same part of a tensor, or different ones: the sum is that of the whole.
template <class T>
void sum_over_tensor_ranks(const ParameterSlot& slot, Communicator& group, std::span<T> gradients) {
  if (slot.shape == slot.global) return group.all_reduce(gradients.subspan(slot.first, slot.count));
  const Box all = whole_box(slot.global);
  std::vector<T> whole(static_cast<std::size_t>(elements(slot.global)));
  const auto part_of = [&](const SlotPart& part) {
    return gradients.subspan(part.first, static_cast<std::size_t>(elements(part.box.length)));
  };
  for (const SlotPart& part : slot.parts)
    copy_box(part.box, part.box, std::as_bytes(part_of(part)), all,
             std::as_writable_bytes(std::span(whole)), sizeof(T));
  group.all_reduce(std::span(whole));
  for (const SlotPart& part : slot.parts)
    copy_box(part.box, all, std::as_bytes(std::span(whole)), part.box,
             std::as_writable_bytes(part_of(part)), sizeof(T));
}

}  // namespace

template <class T>
GraphRuntime<T>::GraphRuntime(const ModelGraph& model, RuntimeOptions options, Workers& workers)
    : options_(options),
      groups_(options.groups),
      rank_(std::move(*make_rank_model(model, options.place))),
      part_(options.part ? rank_.span_of(*options.part) : all_layers(rank_)),
      layout_(options.layout ? *options.layout : parameter_layout(model, rank_)),
      schedule_(make_schedule(rank_, options.batch, options.recompute,
                              static_cast<std::int64_t>(kCacheLine / sizeof(T)), options.trains,
                              part_)),
      memory_(static_cast<std::size_t>(schedule_.elements)),
      samples_(options.batch) {
  RECKON_CHECK(options.batch > 0);
  RECKON_CHECK(cannot_run(model).empty());
  const auto has = [](Communicator* group, GroupPlace place) {
    return place.ranks == 1 ||
           (group != nullptr && group->size() == place.ranks && group->rank() == place.rank);
  };
  RECKON_CHECK(has(options.groups.tensor, options.place.tensor));
  RECKON_CHECK(has(options.groups.context, options.place.context));
  RECKON_CHECK(has(options.groups.expert, options.place.expert));
  pass_.workers = &workers;
  pass_.groups = groups_.groups();
  pass_.seed = options.seed;
  prepare();
}

template <class T>
void GraphRuntime<T>::prepare() {
  const auto& layers = rank_.layers;
  std::size_t inputs = 0, targets = 0;
  std::int64_t scratch = 0;
  prepared_.resize(layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Layer layer = layers[i].layer;
    layer.id = layers[i].origin;  // decides the dropout masks
    LayerGeometry geometry = geometry_of(rank_, layers[i], options_.batch);
    if (layers[i].part.experts.total > 0)
      geometry.traffic = &traffic_[rank_.layers[index(layer.inputs[1])].origin];
    runners_.push_back(part_.has(i) ? make_runner<T>(layer, geometry) : nullptr);
    if (runners_.back())
      scratch = std::max(scratch, runners_.back()->scratch_elements(pass_.workers->count()));
    input_of_.push_back(std::holds_alternative<InputLayer>(layer.op) ? inputs++ : 0);
    target_of_.push_back(is_loss(layer.op) ? targets++ : 0);
    trained_range_.push_back({});
    find_weights(i);
  }
  batch_.inputs.resize(inputs);
  batch_.targets.resize(targets);
  scratch_ = AlignedBuffer<T>(static_cast<std::size_t>(scratch));
  find_rounded();
  const auto accumulate = accumulating_inputs(rank_);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Prepared& p = prepared_[i];
    point_to_tensors(layers[i].layer.inputs, schedule_, i, false, memory_.data(), p.forward);
    point_to_tensors(layers[i].layer.inputs, schedule_, i, true, memory_.data(), p.late);
    p.forward.scratch = p.late.scratch = scratch_.data();
    p.late.accumulate = accumulate[i];
  }
}

template <class T>
void GraphRuntime<T>::find_weights(std::size_t i) {
  const Layer& layer = rank_.layers[i].layer;
  if (rank_.layers[i].is_exchange()) return;
  ParameterRange& trained = trained_range_[i];
  for (const ParameterSlot& slot : layout_.slots) {
    const bool owned = slot.layer == rank_.layers[i].origin;
    const bool is_bias = slot.name.ends_with(".bias");
    const auto first = static_cast<std::ptrdiff_t>(slot.first);
    if (owned && is_bias) prepared_[i].bias = first, prepared_[i].biases = slot.count;
    if (!is_bias && (owned || layer.tied_to == slot.layer))
      prepared_[i].weight = first, prepared_[i].weights = slot.count;
    if (!owned || !slot.trained) continue;
    if (trained.count == 0) trained.first = slot.first;
    trained.count += slot.count;
  }
}

template <class T>
void GraphRuntime<T>::set_parameters(std::span<const T> values) {
  RECKON_CHECK(values.size() == layout_.count);
  values_ = values;
  for (Prepared& p : prepared_) {
    if (p.reads_rounded) continue;
    p.forward.weight = p.late.weight = p.weight < 0 ? nullptr : values.data() + p.weight;
    p.forward.bias = p.late.bias = p.bias < 0 ? nullptr : values.data() + p.bias;
  }
}

template <class T>
void GraphRuntime<T>::set_data(std::size_t layer) {
  const LayerOp& op = rank_.layers[layer].layer.op;
  if (std::holds_alternative<InputLayer>(op)) pass_.record = batch_.inputs[input_of_[layer]];
  if (is_loss(op)) pass_.target = batch_.targets[target_of_[layer]];
}

/// Rows of a table are rounded where they come out; whole numbers that name rows never, nor the
/// record that these are taken from. Losses, and what adds them up, are numbers of fp32.
template <class T>
void GraphRuntime<T>::find_rounded() {
  if (options_.rounding == Rounding::none) return;
  RECKON_CHECK((std::is_same_v<T, float>));
  const auto& layers = rank_.layers;
  const auto is_table = [](const LayerOp& op) {
    return std::holds_alternative<Embedding>(op) || std::holds_alternative<EmbeddingBag>(op);
  };
  std::size_t most = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Prepared& p = prepared_[i];
    const LayerOp& op = layers[i].layer.op;
    const bool computes = !layers[i].is_exchange();
    p.reads_rounded = computes && p.weights + p.biases > 0 && !is_table(op);
    const auto& inputs = layers[i].layer.inputs;
    const auto is_of_loss = [&](LayerId input) { return prepared_[index(input)].of_loss; };
    p.of_loss =
        computes && (is_loss(op) || (!inputs.empty() && std::ranges::all_of(inputs, is_of_loss)));
    p.makes_rounded = !p.of_loss;
    if (p.reads_rounded) most = std::max(most, p.weights + p.biases);
  }
  std::vector<bool> names_rows(layers.size());
  for (std::size_t i = layers.size(); i-- > 0;) {
    if (names_rows[i]) prepared_[i].makes_rounded = false;
    if (!names_rows[i] && (layers[i].is_exchange() || !is_table(layers[i].layer.op))) continue;
    for (const LayerId input : layers[i].layer.inputs) names_rows[index(input)] = true;
  }
  rounded_ = AlignedBuffer<T>(most);
  for (Prepared& p : prepared_) {
    if (!p.reads_rounded) continue;
    if (p.weight >= 0) p.forward.weight = p.late.weight = rounded_.data();
    if (p.bias >= 0) p.forward.bias = p.late.bias = rounded_.data() + p.weights;
  }
}

template <class T>
void GraphRuntime<T>::round_weights(Prepared& p) {
  if constexpr (std::is_same_v<T, float>) {
    const auto round = [&](std::ptrdiff_t first, std::size_t count, std::size_t to) {
      if (first >= 0)
        round_elements(*pass_.workers, options_.rounding, values_.data() + first,
                       rounded_.data() + to, static_cast<std::int64_t>(count));
    };
    if (!p.reads_rounded) return;
    round(p.weight, p.weights, 0);
    round(p.bias, p.biases, p.weights);
  }
}

template <class T>
void GraphRuntime<T>::round_results(const Action& action) {
  if constexpr (std::is_same_v<T, float>) {
    if (options_.rounding == Rounding::none) return;
    Prepared& p = prepared_[action.layer];
    const auto round = [&](T* values, std::size_t layer) {
      round_elements(*pass_.workers, options_.rounding, values, values,
                     samples_ * elements(rank_.layers[layer].layer.output));
    };
    if (action.kind != Action::Kind::backward) {
      if (p.makes_rounded)
        round(action.kind == Action::Kind::forward ? p.forward.output : p.late.output,
              action.layer);
      return;
    }
    const auto& inputs = rank_.layers[action.layer].layer.inputs;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (T* gradient = p.late.input_gradients[k];
          gradient != nullptr && !prepared_[index(inputs[k])].of_loss)
        round(gradient, index(inputs[k]));
  }
}

template <class T>
void GraphRuntime<T>::run(std::size_t at) {
  const Action& action = schedule_.actions[at];
  if (hooks_.before) hooks_.before(at);
  set_data(action.layer);
  Prepared& p = prepared_[action.layer];
  LayerRunner<T>& runner = *runners_[action.layer];
  pass_.recomputing = action.kind == Action::Kind::recompute;
  round_weights(p);
  switch (action.kind) {
    case Action::Kind::forward:
      runner.forward(p.forward, pass_);
      break;
    case Action::Kind::recompute:
      runner.forward(p.late, pass_);
      break;
    case Action::Kind::backward:
      runner.backward(p.late, pass_);
      break;
  }
  round_results(action);
  if (hooks_.after) hooks_.after(at);
}

template <class T>
void GraphRuntime<T>::use_batch(std::int64_t samples) {
  if (samples == samples_) return;
  for (const auto& runner : runners_)
    if (runner) runner->set_batch(samples);
  samples_ = samples;
}

template <class T>
std::span<const T> GraphRuntime<T>::predict(const BatchView& batch, std::int64_t samples,
                                            std::span<const T> values, LayerId last) {
  RECKON_CHECK(samples >= 1);
  RECKON_CHECK(samples <= options_.batch);
  RECKON_CHECK(batch.inputs.size() == batch_.inputs.size());
  for (std::size_t k = 0; k < batch.inputs.size(); ++k) {
    const std::size_t each = batch.inputs[k].size() / static_cast<std::size_t>(options_.batch);
    batch_.inputs[k] = batch.inputs[k].first(each * static_cast<std::size_t>(samples));
  }
  const std::size_t masked = batch.masked.size() / static_cast<std::size_t>(options_.batch);
  pass_.masked = batch.masked.first(masked * static_cast<std::size_t>(samples));
  pass_.training = false;
  set_parameters(values);
  use_batch(samples);
  for (std::size_t t = 0; t <= place_of(last); ++t) {
    RECKON_CHECK(!is_loss(rank_.layers[t].layer.op));
    run(t);
  }
  return output(last);
}

template <class T>
double GraphRuntime<T>::forward(const BatchView& batch, std::span<const T> values,
                                StepPosition position, bool training) {
  RECKON_CHECK(batch.inputs.size() == batch_.inputs.size());
  RECKON_CHECK(batch.targets.size() == batch_.targets.size());
  std::ranges::copy(batch.inputs, batch_.inputs.begin());
  std::ranges::copy(batch.targets, batch_.targets.begin());
  pass_.masked = batch.masked;
  pass_.training = training;
  pass_.step = position.step;
  pass_.first_sample = position.first_sample;
  use_batch(options_.batch);
  set_parameters(values);
  for (std::size_t t = 0; t < schedule_.forward_count; ++t) run(t);
  if (part_.end < rank_.layers.size()) return 0;
  const T* losses = memory_.data() + schedule_.values.back().first;
  double sum = 0;
  for (std::int64_t b = 0; b < options_.batch; ++b) sum += double{losses[b]};
  return sum / static_cast<double>(options_.batch);
}

template <class T>
void GraphRuntime<T>::backward(std::span<const T> values, std::span<T> gradients, double scale,
                               const GradientTaker& taker) {
  RECKON_CHECK(pass_.training);
  RECKON_CHECK(options_.trains);
  RECKON_CHECK(gradients.size() == layout_.count);
  set_parameters(values);
  for (std::size_t i = 0; i < rank_.layers.size(); ++i) {
    Prepared& p = prepared_[i];
    const auto gradient = [&](std::ptrdiff_t first) {
      return first < 0 || rank_.layers[i].layer.frozen ? nullptr : gradients.data() + first;
    };
    p.late.weight_gradient = gradient(p.weight);
    p.late.bias_gradient = gradient(p.bias);
  }
  const TensorPlace& loss = schedule_.gradients.back();
  if (part_.end == rank_.layers.size()) {
    if (loss.first < 0) return;  // nothing is trained
    std::fill_n(memory_.data() + loss.first, options_.batch,
                static_cast<T>(scale / static_cast<double>(options_.batch)));
  }
  for (std::size_t t = schedule_.forward_count; t < schedule_.actions.size(); ++t) {
    const Action& action = schedule_.actions[t];
    run(t);
    const ParameterRange range = trained_range_[action.layer];
    if (action.kind != Action::Kind::backward || range.count == 0 || !taker.takes(range)) continue;
    sum_gradients(action.layer, gradients);
    taker.ready(range);
  }
}

template <class T>
void GraphRuntime<T>::sum_gradients(std::size_t i, std::span<T> gradients) const {
  for (const ParameterSlot& slot : layout_.slots)
    if (slot.layer == rank_.layers[i].origin && slot.sums_gradient)
      sum_over_tensor_ranks(slot, *pass_.groups.tensor, gradients);
}

template <class T>
auto GraphRuntime<T>::crossing_at(std::size_t cut) -> Crossing {
  Crossing found;
  for (const std::size_t layer : crossing(rank_, cut)) {
    const auto count =
        static_cast<std::size_t>(options_.batch * elements(rank_.layers[layer].layer.output));
    const TensorPlace &value = schedule_.values[layer], &gradient = schedule_.gradients[layer];
    RECKON_CHECK(value.first >= 0);
    found.values.push_back({memory_.data() + value.first, count});
    found.gradients.push_back(
        gradient.first < 0 ? std::span<T>() : std::span<T>(memory_.data() + gradient.first, count));
  }
  return found;
}

template <class T>
std::vector<RunningStatistics<T>> GraphRuntime<T>::running_statistics() {
  std::vector<RunningStatistics<T>> all;
  for (std::size_t i = part_.first; i < part_.end; ++i)
    add_statistics(rank_.layers[i].layer.name, runners_[i]->running_statistics(), all);
  return all;
}

template <class T>
std::span<const T> GraphRuntime<T>::output(LayerId layer) const {
  const auto count = samples_ * elements(rank_.layers[place_of(layer)].layer.output);
  return {memory_.data() + schedule_.values[place_of(layer)].first,
          static_cast<std::size_t>(count)};
}

template <class T>
Bytes GraphRuntime<T>::activation_memory() const {
  return Bytes{static_cast<double>(memory_.size() * sizeof(T))};
}

template class GraphRuntime<float>;
template class GraphRuntime<double>;

}  // namespace reckon
