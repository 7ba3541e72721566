#include <fmt/format.h>

#include <cstdio>

#include "executor/cuda/layers/runner.h"
#include "executor/probe/device/device_probe.h"
#include "gpu/device.h"
#include "kernels/window/convolution.h"

// Convolutions that write rows of patches, and those that do not: they agree, and which is faster.
using namespace reckon;

namespace {

LayerGeometry convolution_geometry(const Conv2d& op, std::int64_t batch, std::int64_t size) {
  const std::int64_t high = (size + 2 * op.padding - op.kernel_h) / op.stride + 1;
  const std::int64_t wide = (size + 2 * op.columns_padded() - op.kernel_w) / op.stride + 1;
  return {.batch = batch, .inputs = {{op.in, size, size}}, .output = {op.out, high, wide}};
}

/// A bf16 layer by one of the ways, with memory of its own.
struct Way {
  cuda::DeviceRunnerPtr<Bf16> runner;
  cuda::DeviceBuffer<Bf16> x, weight, y, dy, dx;
  cuda::DeviceBuffer<float> dw;
  cuda::DeviceBuffer<std::byte> scratch;
  cuda::DeviceLayerMemory<Bf16> memory;
  cuda::DevicePass pass;

  Way(const Conv2d& op, const LayerGeometry& g, cuda::run::Patches patches,
      cuda::Products& products)
      : runner(cuda::run::convolution<Bf16>(op, g, patches)),
        x(device_numbers<Bf16>(g.batch * elements(g.inputs[0]))),
        weight(device_numbers<Bf16>(op.out * op.in * op.kernel_h * op.kernel_w)),
        y(g.batch * elements(g.output)),
        dy(device_numbers<Bf16>(y.size())),
        dx(x.size()),
        dw(device_numbers<float>(weight.size())),
        scratch(runner->scratch_bytes()) {
    memory.inputs = {x.data()};
    memory.weight = weight.data();
    memory.output = y.data();
    memory.output_gradient = dy.data();
    memory.input_gradients = {nullptr};
    memory.accumulate = {0};
    memory.scratch = scratch.data();
    pass.products = &products;
  }
  void forward() { runner->forward(memory, pass); }
  void weights() { backward(dw.data(), nullptr); }
  void input() { backward(nullptr, dx.data()); }

 private:
  void backward(float* weight_gradient, Bf16* input_gradient) {
    memory.weight_gradient = weight_gradient;
    memory.input_gradients[0] = input_gradient;
    runner->backward(memory, pass);
  }
};

template <class E>
std::vector<double> values_of(cuda::DeviceBuffer<E>& buffer) {
  std::vector<E> host(static_cast<std::size_t>(buffer.size()));
  cuda::copy_to_host(host.data(), buffer.data(), host.size() * sizeof(E));
  std::vector<double> out;
  for (const E x : host) out.push_back(double{to_float(x)});
  return out;
}

/// Microseconds of the forward pass and of the gradients of weights and input.
struct Passes {
  double forward = 0, weights = 0, input = 0;
};
Passes time_passes(Way way, const DeviceBench& bench) {
  const auto microseconds = [&](auto pass) {
    ProbeRecord record;
    measure_queued(bench, pass, record);
    return record.median.count() * 1e6;
  };
  Passes out;
  out.forward = microseconds([&] { way.forward(); });
  out.weights = microseconds([&] { way.weights(); });
  out.input = microseconds([&] { way.input(); });
  return out;
}

/// One row of the table: implicit / patches of each pass.
std::string compare_ways(const Conv2d& op, std::int64_t batch, std::int64_t size,
                         const DeviceBench& bench) {
  using cuda::run::Patches;
  const LayerGeometry g = convolution_geometry(op, batch, size);
  const Passes without = time_passes(Way(op, g, Patches::unwritten, bench.products), bench);
  const Passes with = time_passes(Way(op, g, Patches::written, bench.products), bench);
  const auto pair = [](double a, double b) { return fmt::format("{:.0f} / {:.0f}", a, b); };
  return fmt::format("| {}, {} x {}, {} -> {}, stride {} | {} | {} | {} |\n", size, op.kernel_h,
                     op.kernel_w, op.in, op.out, op.stride, pair(without.forward, with.forward),
                     pair(without.weights, with.weights), pair(without.input, with.input));
}

/// Side of the image, and the convolution.
struct Compared {
  std::int64_t size;
  Conv2d op;
};

}  // namespace

TEST_CASE("convolutions with patches and without agree") {
  require_device();
  require_device_that(gpu::implicit_convolution_takes({}));
  const Compared c = GENERATE(Compared{9, {3, 24, 7, 7, 2, 3}}, Compared{7, {16, 32, 3, 3, 1, 1}},
                              Compared{7, {16, 72, 3, 3, 2, 1}}, Compared{6, {24, 8, 1, 1, 2, 0}});
  const LayerGeometry g = convolution_geometry(c.op, 2, c.size);
  cuda::Products products(nullptr);
  Way with(c.op, g, cuda::run::Patches::written, products);
  Way without(c.op, g, cuda::run::Patches::unwritten, products);
  for (Way* way : {&with, &without}) {
    way->forward();
    way->weights();
    way->input();
  }
  finish(cudaSuccess);
  // Each rounds what it stores, the input's gradient with patches the sums of each window too.
  check_share(values_of(without.y), values_of(with.y), 2 * kRoundoff<Bf16>);
  check_share(values_of(without.dw), values_of(with.dw), 1e-6);
  check_share(values_of(without.dx), values_of(with.dx), 3 * kRoundoff<Bf16>);
}

TEST_CASE("what times convolutions with patches and without runs") {
  require_device();
  require_device_that(gpu::implicit_convolution_takes({}));
  cuda::Products products(nullptr);
  const DeviceBench bench{nullptr, products, "a device", {Seconds{1e-3}, 2, 3}};
  const std::string row = compare_ways({8, 8, 3, 3, 1, 1}, 1, 5, bench);
  CHECK(row.rfind("| 5, 3 x 3, 8 -> 8, stride 1 | ", 0) == 0);
}

// For tests/gpu/run: decides from how many outputs on patches are written.
TEST_CASE("ResNet-50's convolutions are timed with patches and without", "[.convolutions]") {
  require_device();
  require_device_that(gpu::implicit_convolution_takes({}));
  cuda::Products products(nullptr);
  const DeviceBench bench{nullptr, products, "a device", {Seconds{0.02}, 3, 10}};
  const std::int64_t batch = 64;
  fmt::print(
      "| batch {}: side, window, channels | forward: without / with patches (us) | weights | input "
      "|\n|---|---|---|---|\n",
      batch);
  for (const Compared& c :
       {Compared{224, {3, 64, 7, 7, 2, 3}}, Compared{56, {64, 64, 3, 3, 1, 1}},
        Compared{56, {128, 128, 3, 3, 2, 1}}, Compared{28, {128, 128, 3, 3, 1, 1}},
        Compared{28, {256, 256, 3, 3, 2, 1}}, Compared{14, {256, 256, 3, 3, 1, 1}},
        Compared{14, {512, 512, 3, 3, 2, 1}}, Compared{7, {512, 512, 3, 3, 1, 1}},
        Compared{56, {256, 512, 1, 1, 2, 0}}, Compared{28, {512, 1024, 1, 1, 2, 0}},
        Compared{14, {1024, 2048, 1, 1, 2, 0}}})
    fmt::print("{}", compare_ways(c.op, batch, c.size, bench));
  std::fflush(stdout);
}
