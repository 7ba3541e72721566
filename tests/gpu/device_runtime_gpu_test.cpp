#include "executor/cuda/runtime/runtime.h"

#include "executor/cuda/exchange/all_reduce.h"
#include "executor/train/networks.h"
#include "executor/train/parallel_networks.h"
#include "executor/train/recipe/recipe.h"
#include "gpu/device.h"

using namespace reckon;

namespace {

ModelGraph transformer(const std::string& architecture, const TransformerDimensions& shape) {
  return std::move(*make_transformer(architecture, shape));
}

/// Heads of 32 features: attention on tensor cores where activations are bf16.
ModelGraph wide_gpt2() {
  return transformer("gpt2", {.layers = 2,
                              .hidden = 64,
                              .heads = 2,
                              .vocabulary = 61,
                              .sequence_length = 40,
                              .positions = 40,
                              .dropout = 0.1});
}
ModelGraph small_llama() {
  return transformer("llama", {.layers = 2,
                               .hidden = 64,
                               .heads = 4,
                               .kv_heads = 2,
                               .feed_forward = 96,
                               .vocabulary = 61,
                               .sequence_length = 24,
                               .gated_feed_forward = true,
                               .rms_norm = true,
                               .bias = false,
                               .tied_output = false,
                               .activation = ActivationKind::silu});
}

/// Two heads with a loss of their own, one of them scaled, over tokens that the data has masked.
ModelGraph small_bert() {
  return transformer("bert", {.layers = 2,
                              .hidden = 32,
                              .heads = 4,
                              .vocabulary = 61,
                              .sequence_length = 24,
                              .positions = 24,
                              .token_types = 2,
                              .causal = false});
}
ModelGraph two_heads() {
  LayerList net(16);
  LayerId x = net.add("record", InputLayer{}, std::vector<LayerId>{});
  x = net.add("body", Linear{.in = 12, .out = 16}, x);
  x = net.add("body.relu", Activation{ActivationKind::relu}, x);
  const LayerId moves = net.add("policy", Linear{.in = 16, .out = 5}, x);
  const LayerId policy = net.add("policy.loss", SoftmaxCrossEntropy{5}, moves);
  LayerId y = net.add("value", Linear{.in = 16, .out = 3}, x);
  y = net.add("value.loss", MeanSquaredError{}, y);
  y = net.add("value.scaled", ScaleBy{.factor = 0.25}, y);
  net.add("loss", Add{}, {policy, y});
  return test::network(SampleUnit::image, {12}, net);
}

struct Device {
  std::unique_ptr<StepRuntime> runtime;
  std::unique_ptr<GradientExchange> exchange;
  AllReduceOptions options;

  Device(const ModelGraph& model, const RuntimeOptions& o, cuda::DevicePrecision precision,
         const OptimizerRule& rule = SgdMomentum{}, double clip = 0)
      : runtime(cuda::make_device_runtime(model, o, precision, nullptr)) {
    options = {.optimizer = rule, .trained = trained_ranges(runtime->layout()), .clip_norm = clip};
    exchange = cuda::make_device_exchange(nullptr, options, runtime->layout(), nullptr);
  }
  void set(std::span<const float> values) {
    std::ranges::copy(values, runtime->values().begin());
    runtime->to_device();
    exchange->start(runtime->exchanged());
  }
  /// Gradients in the order of the host's layout.
  std::vector<double> gradients() {
    const std::span<float> there = runtime->exchanged().gradients;
    std::vector<float> padded(there.size());
    cuda::copy_to_host(padded.data(), there.data(), there.size_bytes());
    std::vector<double> out;
    const ParameterLayout layout = cuda::device_layout(runtime->layout());
    for (std::size_t s = 0; s < layout.slots.size(); ++s)
      for (std::size_t i = 0; i < runtime->layout().slots[s].count; ++i)
        out.push_back(padded[layout.slots[s].first + i]);
    return out;
  }
};

std::vector<double> doubles(std::span<const double> values) {
  return {values.begin(), values.end()};
}

/// Loss and gradients of one pass against the double-precision runtime, both with the same dropout.
void compare(const ModelGraph& model, cuda::DevicePrecision precision, Recompute recompute) {
  test::Trial<double> expected(model, 3);
  std::vector<float> values;
  for (double& v : expected.values.span()) {
    v = double{to_float(from_float<Bf16>(static_cast<float>(v)))};  // exact in every precision
    values.push_back(static_cast<float>(v));
  }
  const double loss = expected.loss();
  expected.backward();

  Device device(model, {.batch = 3, .recompute = recompute, .seed = 3}, precision);
  device.set(values);
  device.runtime->begin_step();
  const double got = device.runtime->forward(expected.data.view(), {2, 0}, true);
  // Small slopes vanish in fp16 without a scale of the loss.
  const double scale = precision == cuda::DevicePrecision::fp16 ? 1024 : 1;
  device.runtime->backward(scale, {});
  // Some forty tensors are rounded on the way, there and back; their errors are independent, so
  // they add up like the square root of their number, and twice that is the limit. Differences of
  // nearly equal numbers (means that norms take away) lose up to two more bits.
  const double u = precision == cuda::DevicePrecision::bf16   ? 0x1p-8
                   : precision == cuda::DevicePrecision::fp16 ? 0x1p-11
                                                              : 0x1p-22;
  const double share = 4 * 2 * std::sqrt(80.0) * u / 2;
  CHECK(got == Approx(loss).epsilon(share));
  std::vector<double> gradients = device.gradients();
  for (double& g : gradients) g /= scale;
  check_share(gradients, doubles(expected.gradients.span()), share);
}

}  // namespace

TEST_CASE("a device's losses and gradients are those of the double-precision runtime") {
  require_device();
  const auto precision = GENERATE(cuda::DevicePrecision::fp32, cuda::DevicePrecision::bf16,
                                  cuda::DevicePrecision::fp16);
  const auto recompute = GENERATE(Recompute::none, Recompute::full);
  SECTION("ResNet") { compare(test::small_resnet(), precision, recompute); }
  SECTION("GPT-2") { compare(test::small_gpt2(0.1), precision, recompute); }
  SECTION("GPT-2 with heads of 32") { compare(wide_gpt2(), precision, recompute); }
  SECTION("BERT") { compare(small_bert(), precision, recompute); }
  SECTION("a recommender") { compare(test::small_recommender(), precision, recompute); }
  SECTION("two losses") { compare(two_heads(), precision, recompute); }
  SECTION("Llama") { compare(small_llama(), precision, recompute); }
  SECTION("a mixture of experts") { compare(test::parallel_mixture(true), precision, recompute); }
}

TEST_CASE("five steps on a device are the five steps of the CPU, to rounding") {
  require_device();
  const ModelGraph model = test::small_resnet();
  const bool adam = GENERATE(true, false);
  const OptimizerRule rule = adam ? OptimizerRule(AdamW{.weight_decay = 0.1f})
                                  : OptimizerRule(SgdMomentum{.weight_decay = 0.01f});
  Workers workers(1);
  const RuntimeOptions options{.batch = 2, .seed = 3};
  const auto cpu = make_cpu_runtime(model, options, workers);
  for (std::size_t i = 0; i < cpu->values().size(); ++i)
    cpu->values()[i] = static_cast<float>(0.4 * std::sin(static_cast<double>(7 * i + 1)) + 0.05);
  Device device(model, options, cuda::DevicePrecision::fp32, rule, 1.0);
  device.set(cpu->values());
  const AllReduceOptions& plain = device.options;
  FlatOptimizer optimizer(rule, cpu->layout().count, plain.trained);
  SampleBatch data(sample_format(model), 2);
  for (std::int64_t step = 0; step < 5; ++step) {
    cpu->begin_step();
    device.runtime->begin_step();
    double loss = 0, got = 0;
    for (std::int64_t micro = 0; micro < 2; ++micro) {  // gradients add up
      for (std::int64_t b = 0; b < 2; ++b)
        fill_synthetic(sample_format(model), 5, step * 4 + micro * 2 + b, data, b);
      loss += cpu->forward(data.view(), {step, micro * 2}, true) / 2;
      cpu->backward(0.5, {});
      got += device.runtime->forward(data.view(), {step, micro * 2}, true) / 2;
      device.runtime->backward(0.5, {});
    }
    CHECK(got == Approx(loss).epsilon(1e-4));
    const ParameterView view = cpu->exchanged();
    double squares = 0;
    for (const TrainedRange& r : plain.trained)
      squares += squared_norm(view.gradients.subspan(r.first, r.count));
    optimizer.update(step, 0.01, clip_scale(squares, 1.0), view.values, view.gradients);
    CHECK(device.exchange->finish_step(step, 0.01).next_step == step + 1);
  }
  device.runtime->to_host();
  const auto to_doubles = [](std::span<const float> x) {
    return std::vector<double>(x.begin(), x.end());
  };
  // AdamW divides by the root of the second moment: a gradient near zero moves a weight by up to
  // the learning rate whatever its sign, so single weights differ; all together do not.
  check_share(to_doubles(device.runtime->values()), to_doubles(cpu->values()), adam ? 1e-2 : 1e-4);
  const auto there = device.runtime->running_statistics(), here = cpu->running_statistics();
  REQUIRE(there.size() == here.size());
  for (std::size_t i = 0; i < here.size(); ++i) {
    CHECK(there[i].name == here[i].name);
    check_share(to_doubles(there[i].values), to_doubles(here[i].values), 1e-2);
  }
  // What a checkpoint keeps comes back as it was.
  const auto state = device.exchange->optimizer_state();
  REQUIRE(state.size() == (adam ? 2u : 1u));
  REQUIRE(state[0].size() == cpu->layout().count);
  check_share(to_doubles(state[0]), to_doubles(optimizer.state()[0]), 1e-2);
  const std::vector<float> kept(state[0].begin(), state[0].end());
  device.exchange->restore_optimizer_state();
  CHECK(std::ranges::equal(device.exchange->optimizer_state()[0], kept));
}

TEST_CASE("a layer without a kernel is refused by name, with what trains it") {
  const ModelGraph model = [] {
    LayerList net(8);
    LayerId x = net.add("image", InputLayer{}, std::vector<LayerId>{});
    x = net.add("tokens", ImageTokens{}, x);
    net.add("loss", SigmoidCrossEntropy{}, x);
    return test::network(SampleUnit::image, {2, 6, 5}, net);
  }();
  const Diagnostics errors = cannot_run_on_device(model);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].what.find("layer 'tokens'") != std::string::npos);
  CHECK(errors[0].what.find("has no CUDA kernel") != std::string::npos);
}
