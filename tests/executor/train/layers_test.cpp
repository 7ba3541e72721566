#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "executor/train/graph_runtime.h"
#include "executor/train/layers/layer_runner.h"
#include "executor/train/networks.h"
#include "kernels/reference/layers.h"
#include "sim/model/shapes.h"
#include "sim/model/zoo/zoo.h"

// Each layer that computes more than an element at a time, against its definition in plain loops.
using namespace reckon;

namespace {

std::vector<double> numbers(std::int64_t count, double phase) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::sin(1.7 * static_cast<double>(i) + phase) + 0.1;
  return values;
}

/// (B, C, H, W) <-> (B, H, W, C)
std::vector<double> turned(const std::vector<double>& x, std::int64_t batch, std::int64_t outer,
                           std::int64_t inner) {
  std::vector<double> y(x.size());
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i)
        y[static_cast<std::size_t>((b * inner + i) * outer + o)] =
            x[static_cast<std::size_t>((b * outer + o) * inner + i)];
  return y;
}

/// Runs one layer forward on two threads; images go in and come out as (B, C, H, W).
std::vector<double> run_layer(const LayerOp& op, const Shape& input, std::int64_t batch,
                              const std::vector<std::vector<double>>& inputs,
                              const std::vector<double>& weight, const std::vector<double>& bias,
                              const std::vector<float>& target = {}) {
  LayerGeometry geometry{.batch = batch};
  std::vector<const Shape*> shapes;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const auto count = static_cast<std::int64_t>(inputs[k].size()) / batch;
    geometry.inputs.push_back(input.size() == 3 ? input : Shape{input[0], count / input[0]});
  }
  for (const Shape& shape : geometry.inputs) shapes.push_back(&shape);
  geometry.output = *infer_shape(op, shapes, input);
  const auto runner = make_runner<double>(Layer{.op = op, .output = geometry.output}, geometry);
  Workers workers(2);
  const PassState pass{.workers = &workers, .target = target};
  std::vector<std::vector<double>> in = inputs;
  if (input.size() == 3)
    for (auto& x : in) x = turned(x, batch, input[0], input[1] * input[2]);
  std::vector<double> scratch(static_cast<std::size_t>(runner->scratch_elements(2)));
  std::vector<double> out(static_cast<std::size_t>(batch * elements(geometry.output)));
  LayerMemory<double> memory;
  for (const auto& x : in) memory.inputs.push_back(x.data());
  memory.output = out.data();
  memory.weight = weight.data();
  memory.bias = bias.empty() ? nullptr : bias.data();
  memory.scratch = scratch.data();
  runner->forward(memory, pass);
  const Shape& shape = geometry.output;
  return shape.size() == 3 ? turned(out, batch, shape[1] * shape[2], shape[0]) : out;
}

void check_equal(const std::vector<double>& a, const std::vector<double>& b,
                 double margin = 1e-12) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  CHECK(worst < margin);
}

}  // namespace

TEST_CASE("convolutions of every stride, padding and grouping are what their definition says") {
  struct Case {
    Conv2d op;
    std::int64_t height, width;
  };
  const Case test = GENERATE(
      Case{{.in = 3, .out = 5}, 7, 6}, Case{{.in = 3, .out = 5, .stride = 2}, 7, 6},
      Case{{.in = 3, .out = 8, .kernel_h = 7, .kernel_w = 7, .stride = 2, .padding = 3}, 33, 40},
      Case{{.in = 20, .out = 7, .kernel_h = 3, .kernel_w = 3, .padding = 1, .bias = true}, 30, 31},
      Case{{.in = 6, .out = 9, .kernel_h = 3, .kernel_w = 3, .padding = 1, .groups = 3}, 9, 8},
      Case{
          {.in = 6, .out = 6, .kernel_h = 5, .kernel_w = 5, .stride = 2, .padding = 2, .groups = 6},
          9,
          8},
      Case{{.in = 4, .out = 3, .kernel_h = 1, .kernel_w = 7, .padding = 0, .padding_w = 3}, 9, 8});
  const Conv2d& c = test.op;
  const std::int64_t batch = 3;
  const Shape input{c.in, test.height, test.width};
  const reference::ConvolutionShape shape{
      batch,      c.in,     test.height, test.width,         c.out,   c.kernel_h,
      c.kernel_w, c.stride, c.padding,   c.columns_padded(), c.groups};
  const auto x = numbers(batch * elements(input), 0);
  const auto w = numbers(c.out * c.in / c.groups * c.kernel_h * c.kernel_w, 1);
  const auto bias = numbers(c.bias ? c.out : 0, 2);
  std::vector<double> y(
      static_cast<std::size_t>(batch * c.out * shape.out_height() * shape.out_width()));
  reference::convolution<double>(shape, x, w, bias, y);
  check_equal(run_layer(c, input, batch, {x}, w, bias), y, 1e-10);
}

TEST_CASE("pools take the largest or the mean of what lies under them") {
  const Pool2d op =
      GENERATE(Pool2d{PoolKind::max, 2, 2, 0}, Pool2d{PoolKind::max, 3, 2, 1},
               Pool2d{PoolKind::average, 3, 1, 1}, Pool2d{PoolKind::average, 2, 3, 0});
  const reference::PoolShape shape{2,         3,         9,          8,
                                   op.kernel, op.stride, op.padding, op.kind == PoolKind::max};
  const auto x = numbers(2 * 3 * 9 * 8, 0);
  const auto y = run_layer(op, {3, 9, 8}, 2, {x}, {}, {});
  std::vector<double> expected(y.size());
  reference::pool<double>(shape, x, expected);
  check_equal(y, expected);
}

TEST_CASE("norms are what their definitions say") {
  const auto w = numbers(12, 1), b = numbers(12, 2);
  SECTION("batch norm of images") {
    const auto x = numbers(4 * 12 * 20 * 19, 0);
    std::vector<double> y(x.size());
    reference::batch_norm<double>(4, 12, 20 * 19, x, w, b, 1e-5, y);
    check_equal(run_layer(BatchNorm{12}, {12, 20, 19}, 4, {x}, w, b), y);
  }
  SECTION("layer norm") {
    const auto x = numbers(3 * 7 * 12, 0);
    std::vector<double> y(x.size());
    reference::layer_norm<double>(21, 12, x, w, b, 1e-5, y);
    check_equal(run_layer(LayerNorm{12}, {7}, 3, {x}, w, b), y);
  }
  SECTION("RMS norm, of three heads") {
    const auto x = numbers(3 * 7 * 36, 0);
    std::vector<double> y(x.size());
    reference::rms_norm<double>(3 * 7 * 3, 12, x, w, 1e-5, y);
    check_equal(run_layer(RmsNorm{12, 3}, {7}, 3, {x}, w, {}), y);
  }
}

TEST_CASE("attention over more than one block of rows is what its definition says") {
  struct Case {
    std::int64_t tokens, seen;
    Attention op;
  };
  const Case test =
      GENERATE(Case{150, 150, {.heads = 2, .kv_heads = 2, .head_width = 4}},
               Case{150, 150, {.heads = 4, .kv_heads = 2, .head_width = 4}},
               Case{150, 150, {.heads = 2, .kv_heads = 1, .head_width = 4, .causal = false}},
               Case{150, 150, {.heads = 2, .kv_heads = 2, .head_width = 4, .window = 70}},
               Case{150, 150, {.heads = 4, .kv_heads = 4, .head_width = 4, .alibi = true}});
  const Attention& a = test.op;
  const auto q = numbers(2 * test.tokens * a.heads * a.head_width, 0);
  const auto k = numbers(2 * test.seen * a.kv_heads * a.head_width, 1);
  const auto v = numbers(2 * test.seen * a.kv_heads * a.head_width, 2);
  std::vector<double> y(q.size());
  reference::attention<double>(
      {2, test.tokens, test.seen, a.heads, a.kv_heads, a.head_width, a.causal, a.window, a.alibi},
      q, k, v, y);
  check_equal(run_layer(a, {test.tokens}, 2, {q, k, v}, {}, {}), y);
}

TEST_CASE("rotary embedding turns pairs by their position") {
  const auto x = numbers(2 * 9 * 3 * 8, 0);
  std::vector<double> y(x.size());
  const std::int64_t rotated = GENERATE(8, 4);
  reference::rotary<double>(2, 9, 3, 8, rotated, 100, x, y);
  check_equal(run_layer(RotaryEmbedding{8, 100, rotated}, {9}, 2, {x}, {}, {}), y);
}

TEST_CASE("a linear layer and the loss behind it are what their definitions say") {
  const auto x = numbers(300 * 20, 0), w = numbers(37 * 20, 1), b = numbers(37, 2);
  std::vector<double> y(300 * 37);
  reference::linear<double>(300, 20, 37, x, w, b, y);
  check_equal(run_layer(Linear{20, 37}, {100}, 3, {x}, w, b), y);

  std::vector<std::int32_t> classes(300);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int32_t>(i % 37);
  std::vector<double> rows(300), mean(3);
  reference::softmax_cross_entropy<double>(300, 37, y, classes, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) mean[i / 100] += rows[i] / 100;
  const std::vector<float> target(classes.begin(), classes.end());
  check_equal(run_layer(SoftmaxCrossEntropy{37}, {100}, 3, {y}, {}, {}, target), mean);
}

TEST_CASE("activations are what their definitions say") {
  const auto x = numbers(200, 0);
  std::vector<double> gelu, silu;
  for (const double value : x) {
    gelu.push_back(reference::gelu(value));
    silu.push_back(reference::silu(value));
  }
  check_equal(run_layer(Activation{ActivationKind::gelu}, {20}, 1, {x}, {}, {}), gelu);
  check_equal(run_layer(Activation{ActivationKind::silu}, {20}, 1, {x}, {}, {}), silu);
}

TEST_CASE("layers that are only simulated are refused by name before anything runs") {
  for (const char* name : {"rnnt", "retinanet", "unet3d_kits19"}) {
    CAPTURE(name);
    const Diagnostics errors = cannot_run(zoo_model(name).value());
    REQUIRE_FALSE(errors.empty());
    CHECK(errors.front().what.find("it cannot be trained here") != std::string::npos);
  }
  CHECK(cannot_run(zoo_model("resnext50_32x4d").value()).empty());
}

namespace {

/// Kinds that no runtime trains, whatever their attributes are, and all others.
struct KindsOfLayers {
  std::vector<std::string> simulated, trained;
};

template <std::size_t... kIndex>
KindsOfLayers kinds_of_layers(std::index_sequence<kIndex...>) {
  KindsOfLayers kinds;
  const auto see = [&](const LayerOp& op) {
    (only_simulated(op) ? kinds.simulated : kinds.trained).emplace_back(kind_name(op));
  };
  (see(LayerOp{std::in_place_index<kIndex>}), ...);
  return kinds;
}

}  // namespace

TEST_CASE("the worker's page names each kind of layer that it refuses, and none that it trains") {
  std::ifstream file(RECKON_SOURCE_DIR "/docs/worker.md");
  const std::string page(std::istreambuf_iterator<char>(file), {});
  const std::size_t begin = page.find("- **kinds of layers**: ");
  REQUIRE(begin != std::string::npos);
  const std::string list = page.substr(begin, page.find(';', begin) - begin);
  const KindsOfLayers kinds =
      kinds_of_layers(std::make_index_sequence<std::variant_size_v<LayerOp>>{});
  REQUIRE(kinds.simulated.size() > 10);
  for (const std::string& name : kinds.simulated) {
    CAPTURE(name);
    CHECK(list.find('`' + name + '`') != std::string::npos);
  }
  for (const std::string& name : kinds.trained) {
    CAPTURE(name);
    CHECK(list.find('`' + name + '`') == std::string::npos);
  }
}
