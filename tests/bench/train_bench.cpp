#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <ctime>

#include "executor/train/data/samples.h"
#include "executor/train/graph_runtime.h"
#include "executor/train/initialise.h"
#include "executor/train/products/matrix.h"
#include "sim/model/zoo/zoo.h"

// A training step of the CPU runtime against what a plain matrix product of Eigen reaches in the
// same run. FLOP/s are those of a second of CPU time, of all threads, so that what else the machine
// does changes the ratio ("gemm_share") little; samples_per_second is wall time on all cores.
namespace {

using namespace reckon;

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// FLOP/s of square products, large enough to be compute bound and small enough to be quick.
double gemm_flops_per_second(Workers& workers) {
  constexpr std::int64_t kSize = 1024;
  static const double best = [&] {
    AlignedBuffer<float> a(kSize * kSize), b(kSize * kSize), c(kSize * kSize);
    for (std::size_t i = 0; i < a.size(); ++i)
      a.data()[i] = b.data()[i] = 0.001f * static_cast<float>(i % 7);
    double least = 1e30;
    for (int k = 0; k < 20; ++k) {
      const double begin = cpu_seconds();
      multiply<float>(workers, {kSize, kSize, kSize}, {a.data(), kSize}, {b.data(), kSize},
                      c.data(), kSize, false);
      least = std::min(least, cpu_seconds() - begin);
    }
    return 2.0 * kSize * kSize * kSize / least;
  }();
  return best;
}

void train_step(benchmark::State& state, const ModelGraph& model, std::int64_t batch) {
  Workers workers;
  const double gemm = gemm_flops_per_second(workers);
  GraphRuntime<float> runtime(model, {.batch = batch}, workers);
  AlignedBuffer<float> values(runtime.layout().count), gradients(runtime.layout().count);
  initialise(model, runtime.layout(), 1, workers, values.span());
  const SampleFormat format = sample_format(model);
  SampleBatch samples(format, batch);
  for (std::int64_t i = 0; i < batch; ++i) fill_synthetic(format, 1, i, samples, i);
  double seconds = 0, cpu = 0;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    const double cpu_begin = cpu_seconds();
    runtime.forward(samples.view(), values.span(), {0, 0}, true);
    runtime.backward(values.span(), gradients.span(), 1, {});
    cpu += cpu_seconds() - cpu_begin;
    seconds += Seconds(std::chrono::steady_clock::now() - begin).count();
  }
  const double steps = static_cast<double>(state.iterations());
  const double flops = model.model_flops().v * static_cast<double>(batch) * steps / cpu;
  state.counters["flops_per_second"] = flops;
  state.counters["gemm_flops_per_second"] = gemm;
  state.counters["gemm_share"] = flops / gemm;
  state.counters["samples_per_second"] = static_cast<double>(batch) * steps / seconds;
  state.SetLabel(matrix_instructions());
}

void resnet18_step(benchmark::State& state) {
  static const ModelGraph model = *zoo_model("resnet18");
  train_step(state, model, state.range(0));
}
BENCHMARK(resnet18_step)->Arg(8)->Unit(benchmark::kMillisecond)->UseRealTime();

void gpt2_small_step(benchmark::State& state) {
  static const ModelGraph model = *zoo_model("gpt2_small", 256);
  train_step(state, model, state.range(0));
}
BENCHMARK(gpt2_small_step)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
