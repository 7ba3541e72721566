#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "executor/cuda/layers/runner.h"
#include "executor/train/device/layers.h"
#include "executor/train/gradient_cases.h"
#include "executor/train/layers/layer_runner.h"
#include "executor/train/parallel/token_parts.h"
#include "executor/train/parameters.h"
#include "executor/train/products/aligned_buffer.h"
#include "gpu/device.h"

// NaN and infinity in each tensor that a layer reads, at its beginning, middle and end: what comes
// out is NaN, infinite or finite at the same places on the CPU in float and in double and, where
// the layer has a kernel, on the device. And a NaN comes out wherever the number in its place would
// have made a difference: comparisons do not hide it.
using namespace reckon;

namespace {

constexpr std::int64_t kBatch = 2;

/// What a layer reads and, but for the last two, what its results are added up from.
struct Numbers {
  std::vector<std::vector<float>> inputs;
  std::vector<float> weight, bias, slope;  // slope: the gradient of its output
  std::vector<float> target, record;
};
/// Forward: the output; backward: gradients of inputs, weight and bias.
struct Results {
  std::vector<double> output, gradients;
};

struct LayerCase {
  std::string name;
  Layer layer;
  LayerGeometry geometry;
  std::size_t weights = 0, biases = 0;
  bool on_device = false;

  bool is_loss() const {
    return std::holds_alternative<SoftmaxCrossEntropy>(layer.op) ||
           std::holds_alternative<SigmoidCrossEntropy>(layer.op) ||
           std::holds_alternative<MeanSquaredError>(layer.op);
  }
  /// How many ids its first input may hold; 0: it holds numbers.
  std::int64_t ids() const {
    if (const auto* table = std::get_if<Embedding>(&layer.op)) return table->rows;
    if (const auto* table = std::get_if<EmbeddingBag>(&layer.op)) return table->rows;
    return 0;
  }
};

std::size_t count_of(const LayerCase& c, const Shape& shape) {
  return static_cast<std::size_t>(c.geometry.batch * elements(shape));
}

/// In -1.1..1.1 and none twice, so that there is one largest.
std::vector<float> numbers(std::size_t count, double phase) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(1.1 * std::sin(1.7 * static_cast<double>(i) + phase));
  return values;
}

Numbers numbers_of(const LayerCase& c) {
  Numbers n;
  for (std::size_t k = 0; k < c.geometry.inputs.size(); ++k)
    n.inputs.push_back(numbers(count_of(c, c.geometry.inputs[k]), static_cast<double>(k)));
  for (std::size_t i = 0; c.ids() > 0 && i < n.inputs[0].size(); ++i)
    n.inputs[0][i] = static_cast<float>(static_cast<std::int64_t>(5 * i) % c.ids());
  n.weight = numbers(c.weights, 3);
  n.bias = numbers(c.biases, 4);
  const std::size_t outputs = count_of(c, c.geometry.output);
  n.slope = numbers(outputs, 5);
  if (const auto* loss = std::get_if<SoftmaxCrossEntropy>(&c.layer.op))
    for (std::size_t i = 0; i < n.inputs[0].size() / std::size_t(loss->classes); ++i)
      n.target.push_back(static_cast<float>(static_cast<std::int64_t>(3 * i) % loss->classes));
  else if (c.is_loss())
    n.target = numbers(n.inputs[0].size(), 6);
  if (std::holds_alternative<InputLayer>(c.layer.op)) n.record = numbers(outputs, 7);
  return n;
}

/// The tensors of `n` that may hold any number, by name.
std::vector<std::pair<std::string, std::vector<float>*>> tensors_of(const LayerCase& c,
                                                                    Numbers& n) {
  std::vector<std::pair<std::string, std::vector<float>*>> all;
  for (std::size_t k = 0; k < n.inputs.size(); ++k)
    if (k > 0 || c.ids() == 0) all.emplace_back(fmt::format("input {}", k), &n.inputs[k]);
  const bool classes = std::holds_alternative<SoftmaxCrossEntropy>(c.layer.op);
  all.insert(all.end(), {{"weight", &n.weight}, {"bias", &n.bias}, {"record", &n.record}});
  if (!classes) all.emplace_back("target", &n.target);
  all.emplace_back("slope", &n.slope);
  std::erase_if(all, [](const auto& tensor) { return tensor.second->empty(); });
  return all;
}

template <class T>
AlignedBuffer<T> held(const std::vector<float>& values) {
  AlignedBuffer<T> buffer(values.size());
  std::ranges::copy(values, buffer.data());
  return buffer;
}
template <class T>
void append(std::vector<double>& to, AlignedBuffer<T>& from) {
  to.insert(to.end(), from.span().begin(), from.span().end());
}

/// Positions of tokens, where the layer selects those that the data has masked.
std::vector<std::int32_t> masked_of(const LayerCase& c) {
  std::vector<std::int32_t> masked;
  if (const auto* select = std::get_if<SelectTokens>(&c.layer.op); select && select->masked)
    for (std::int64_t i = 0; i < kBatch * select->count; ++i)
      masked.push_back(static_cast<std::int32_t>(2 * i % c.geometry.inputs[0][0]));
  return masked;
}

template <class T>
Results run_on_cpu(const LayerCase& c, const Numbers& n) {
  static Workers workers(1);
  const auto runner = make_runner<T>(c.layer, c.geometry);
  std::vector<AlignedBuffer<T>> inputs, input_gradients;
  LayerMemory<T> m;
  for (const auto& values : n.inputs) {
    inputs.push_back(held<T>(values));
    input_gradients.emplace_back(values.size());
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    m.inputs.push_back(inputs[k].data());
    m.input_gradients.push_back(k == 0 && c.ids() > 0 ? nullptr : input_gradients[k].data());
  }
  m.accumulate.assign(inputs.size(), 0);
  AlignedBuffer<T> weight = held<T>(n.weight), bias = held<T>(n.bias), slope = held<T>(n.slope);
  AlignedBuffer<T> weight_gradient(n.weight.size()), bias_gradient(n.bias.size());
  AlignedBuffer<T> output(n.slope.size());
  AlignedBuffer<T> scratch(static_cast<std::size_t>(runner->scratch_elements(1)));
  m.output = output.data();
  m.weight = n.weight.empty() ? nullptr : weight.data();
  m.bias = n.bias.empty() ? nullptr : bias.data();
  m.weight_gradient = n.weight.empty() ? nullptr : weight_gradient.data();
  m.bias_gradient = n.bias.empty() ? nullptr : bias_gradient.data();
  m.output_gradient = slope.data();
  m.scratch = scratch.data();
  const std::vector<std::int32_t> masked = masked_of(c);
  const PassState pass{.workers = &workers,
                       .seed = 3,
                       .step = 2,
                       .masked = masked,
                       .target = n.target,
                       .record = n.record};
  runner->forward(m, pass);
  Results r;
  append(r.output, output);
  runner->backward(m, pass);
  for (auto& gradient : input_gradients) append(r.gradients, gradient);
  append(r.gradients, weight_gradient);
  append(r.gradients, bias_gradient);
  return r;
}

cuda::DeviceBuffer<float> on_device(const std::vector<float>& values) {
  cuda::DeviceBuffer<float> buffer(static_cast<std::int64_t>(values.size()));
  if (!values.empty()) cuda::copy_to_device(buffer.data(), values.data(), values.size() * 4);
  return buffer;
}
void append(std::vector<double>& to, const cuda::DeviceBuffer<float>& from) {
  std::vector<float> here(static_cast<std::size_t>(from.size()));
  if (!here.empty()) cuda::copy_to_host(here.data(), from.data(), here.size() * 4);
  to.insert(to.end(), here.begin(), here.end());
}

Results run_on_device(const LayerCase& c, const Numbers& n) {
  using Buffer = cuda::DeviceBuffer<float>;
  cuda::Products products(nullptr);
  const auto runner = cuda::make_device_runner<float>(c.layer, c.geometry);
  cuda::DeviceLayerMemory<float> m;
  std::vector<Buffer> inputs, input_gradients;
  for (const auto& values : n.inputs) {
    inputs.push_back(on_device(values));
    input_gradients.emplace_back(static_cast<std::int64_t>(values.size()));
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    m.inputs.push_back(inputs[k].data());
    m.input_gradients.push_back(k == 0 && c.ids() > 0 ? nullptr : input_gradients[k].data());
  }
  m.accumulate.assign(inputs.size(), 0);
  const std::vector<float>& record = c.ids() > 0 ? n.inputs[0] : n.record;
  Buffer weight = on_device(n.weight), bias = on_device(n.bias), slope = on_device(n.slope);
  Buffer target = on_device(n.target), record_there = on_device(record);
  Buffer weight_gradient(weight.size()), bias_gradient(bias.size()), output(slope.size());
  cuda::DeviceBuffer<std::byte> scratch(runner->scratch_bytes());
  m.output = c.is_loss() ? nullptr : output.data();
  m.losses = c.is_loss() ? output.data() : nullptr;
  m.weight = n.weight.empty() ? nullptr : weight.data();
  m.bias = n.bias.empty() ? nullptr : bias.data();
  m.weight_gradient = n.weight.empty() ? nullptr : weight_gradient.data();
  m.bias_gradient = n.bias.empty() ? nullptr : bias_gradient.data();
  m.output_gradient = c.is_loss() ? nullptr : slope.data();
  m.record = record.empty() ? nullptr : record_there.data();
  m.record_here = record;
  m.record_width = static_cast<std::int64_t>(record.size()) / c.geometry.batch;
  m.scratch = scratch.data();
  const std::vector<std::int32_t> masked = masked_of(c);
  cuda::DeviceBuffer<std::int32_t> masked_there(static_cast<std::int64_t>(masked.size()));
  if (!masked.empty()) cuda::copy_to_device(masked_there.data(), masked.data(), masked.size() * 4);
  const cuda::DevicePass pass{.products = &products,
                              .seed = 3,
                              .step = 2,
                              .target = target.data(),
                              .slopes = slope.data(),
                              .masked = masked.empty() ? nullptr : masked_there.data()};
  runner->forward(m, pass);
  Results r;
  append(r.output, output);
  runner->backward(m, pass);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  for (const auto& gradient : input_gradients) append(r.gradients, gradient);
  append(r.gradients, weight_gradient);
  append(r.gradients, bias_gradient);
  return r;
}

/// One letter a number: n, + and - of infinity, or a dot.
std::string kinds_of(const std::vector<double>& values) {
  std::string kinds;
  for (const double x : values)
    kinds += std::isnan(x) ? 'n' : std::isfinite(x) ? '.' : x > 0 ? '+' : '-';
  return kinds;
}

/// Compares two machines' kinds of numbers; says both where they differ.
void check_same(const std::string& what, const Results& expected, const Results& got) {
  const std::string a = kinds_of(expected.output), b = kinds_of(got.output);
  if (a != b) FAIL_CHECK(what << ": output " << b << " for " << a);
  const std::string c = kinds_of(expected.gradients), d = kinds_of(got.gradients);
  if (c != d) FAIL_CHECK(what << ": gradients " << d << " for " << c);
}

/// The results that a number is a part of: [first, last).
struct Part {
  std::size_t first = 0, last = 0;
};
/// Of the outputs, what tensor `name` at `at` is a part of: all, but for the scores of experts.
/// These choose where rows go; a score enters only the sum of its own token.
Part part_of(const LayerCase& c, const std::string& name, std::size_t at, std::size_t outputs) {
  if (name != "input 1") return {0, outputs};
  if (std::holds_alternative<ExpertDispatch>(c.layer.op)) return {};
  if (std::holds_alternative<ExpertLinear>(c.layer.op)) return {};
  const auto* combine = std::get_if<ExpertCombine>(&c.layer.op);
  if (combine == nullptr) return {0, outputs};
  const auto width = static_cast<std::size_t>(c.geometry.output[1]);
  const std::size_t token = at / static_cast<std::size_t>(combine->experts);
  return {token * width, (token + 1) * width};
}

/// Where another number in its place changes a result, a NaN makes it NaN.
void check_not_hidden(const std::string& what, Part part, const std::vector<double>& before,
                      const std::vector<double>& changed, const std::vector<double>& of_nan) {
  std::size_t hidden = 0;
  for (std::size_t i = part.first; i < part.last; ++i)
    if (std::abs(changed[i] - before[i]) > 1e-9 && !std::isnan(of_nan[i])) ++hidden;
  if (hidden > 0) FAIL_CHECK(what << ": NaN is hidden from " << hidden << " results");
}

void try_tensor(const LayerCase& c, const Results& before, Numbers& n, const std::string& name,
                std::vector<float>& tensor) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::size_t at : std::set<std::size_t>{0, tensor.size() / 2, tensor.size() - 1}) {
    const float kept = tensor[at];
    for (const float poison : {kNan, kInfinity, -kInfinity}) {
      tensor[at] = poison;
      const std::string what = fmt::format("{}: {} in {} at {}", c.name, poison, name, at);
      const Results cpu = run_on_cpu<float>(c, n);
      check_same(what + ", double and float", run_on_cpu<double>(c, n), cpu);
      if (c.on_device) check_same(what + ", CPU and device", cpu, run_on_device(c, n));
      if (!std::isnan(poison)) continue;
      for (const float other : {kept + 7, kept - 7}) {
        tensor[at] = other;
        const Results changed = run_on_cpu<double>(c, n);
        const Part part = part_of(c, name, at, before.output.size());
        check_not_hidden(what, part, before.output, changed.output, cpu.output);
        if (name == "slope")
          check_not_hidden(what, {0, before.gradients.size()}, before.gradients, changed.gradients,
                           cpu.gradients);
      }
    }
    tensor[at] = kept;
  }
}

/// Causal attention over more rows than the CPU takes at once.
void add_long_attention(std::vector<LayerCase>& all) {
  constexpr std::int64_t kTokens = 70;
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    const auto* op = std::get_if<Attention>(&all[i].layer.op);
    if (op == nullptr || !op->causal || op->dropout > 0) continue;
    if (op->heads != 2 || all[i].layer.inputs.size() != 1) continue;
    LayerCase c = all[i];
    c.name += fmt::format(", {} tokens", kTokens);
    for (Shape& shape : c.geometry.inputs) shape[0] = kTokens;
    c.geometry.output[0] = c.layer.output[0] = kTokens;
    all.push_back(std::move(c));
  }
}

/// Each layer of the gradient tests' networks, once.
std::vector<LayerCase> all_layers() {
  std::vector<LayerCase> all;
  std::set<std::string> seen;
  for (const test::GradientCase& test : test::all_gradient_cases()) {
    const ModelGraph model = test.make();
    const ParameterLayout layout = parameter_layout(model);
    for (const Layer& layer : model.layers()) {
      const bool is_loss_part = !layer.inputs.empty() && layer.output == Shape{1} &&
                                std::ranges::any_of(layer.inputs, [&](LayerId id) {
                                  return model.layers()[index(id)].output == Shape{1};
                                });
      LayerCase c{.name = test.name + ", layer " + layer.name,
                  .layer = layer,
                  .geometry = geometry_of(model, layer, kBatch)};
      for (const ParameterSlot& slot : layout.slots) {
        const bool is_bias = slot.name.ends_with(".bias");
        if (slot.layer == layer.id) (is_bias ? c.biases : c.weights) = slot.count;
        if (!is_bias && layer.tied_to == slot.layer) c.weights = slot.count;
      }
      c.on_device = reason_not_on_device(layer, model.layers()).empty() && !is_loss_part;
      // What stands around the layer that a network is for is tried once for each form.
      const bool own = layer.name == "op" || layer.name == "attention" || layer.name == "gate" ||
                       layer.name == "combine";
      const std::string key =
          fmt::format("{} {} {} {} {} {} {}", layer.op.index(), layer.inputs.size(),
                      layer.inputs.empty() ? 0 : c.geometry.inputs[0].size(), layer.output.size(),
                      c.weights > 0, c.biases > 0, own ? test.name : "");
      if (!seen.insert(key).second) continue;
      const bool reorders = c.on_device && experts_of(layer.op) > 0;  // the rows of several samples
      if (reorders) c.on_device = false;
      all.push_back(c);
      if (!reorders) continue;
      c.on_device = true;
      c.geometry.batch = 1;
      c.name += ", one sample";
      all.push_back(std::move(c));
    }
  }
  add_long_attention(all);
  return all;
}

template <std::size_t... I>
std::size_t trained_kinds(std::index_sequence<I...>) {
  return ((only_simulated(LayerOp{std::in_place_index<I>}) ? 0u : 1u) + ...);
}

}  // namespace

TEST_CASE("NaN and infinity come out of every kind of layer as on the CPU, and are not hidden") {
  require_device();
  std::set<std::size_t> kinds;
  for (const LayerCase& c : all_layers()) {
    kinds.insert(c.layer.op.index());
    Numbers n = numbers_of(c);
    const Results before = run_on_cpu<double>(c, n);
    REQUIRE(kinds_of(before.output).find_first_not_of('.') == std::string::npos);
    REQUIRE(kinds_of(before.gradients).find_first_not_of('.') == std::string::npos);
    for (const auto& [name, tensor] : tensors_of(c, n)) try_tensor(c, before, n, name, *tensor);
  }
  // A kind that is trained and not in the list above is not tried: add its case there.
  CHECK(kinds.size() == trained_kinds(std::make_index_sequence<std::variant_size_v<LayerOp>>{}));
}
