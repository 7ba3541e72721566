#include <benchmark/benchmark.h>

#include <cmath>
#include <filesystem>
#include <vector>

#include "sim/accuracy/evidence/files.h"
#include "sim/accuracy/plan_evidence.h"
#include "sim/step/step_model.h"
#include "support/plans.h"

// Step predictions of layouts, each another one: what a search over layouts asks. Issue 5 asks for
// 50,000 a second on one core.
namespace reckon::bench {
namespace {

StepSetting setting() {
  PlannedPool pool = test::round_pool("workers", Role::worker, 128, 8, Precision::bf16);
  StepSetting s;
  s.processor = processor_of(pool, Precision::bf16);
  s.memory = 80.0_GiB;
  s.fabric = {.nodes = 128,
              .ranks_per_node = 8,
              .peer = 200.0_GBps,
              .nic = 100.0_GBps,
              .peer_latency = Seconds{5e-6},
              .nic_latency = Seconds{1e-5}};
  s.framework.step_jitter = Fact<double>{0.03};
  return s;
}

std::vector<Layout> layouts() {
  std::vector<Layout> all;
  for (const int tensor : {1, 2, 4, 8})
    for (const int pipeline : {1, 2, 4, 8, 16, 32})
      for (const int context : {1, 2})
        for (const int zero : {0, 1, 2, 3})
          for (const int micro_batch : {1, 2, 4})
            for (const Recompute recompute : {Recompute::none, Recompute::full}) {
              Layout l;
              l.tensor = tensor;
              l.pipeline = pipeline;
              l.context = context;
              l.data = 1024 / (tensor * pipeline * context);
              l.zero_stage = zero;
              l.micro_batch = micro_batch;
              l.micro_batches = 64 / micro_batch;
              l.sequence_parallel = tensor > 1;
              l.recompute = recompute;
              all.push_back(l);
            }
  return all;
}

void predict_layouts(benchmark::State& state) {
  const StepModel model(zoo_model("gpt3_175b").value(), setting());
  const auto all = layouts();
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(model.estimate(all[next]));
    next = (next + 1) % all.size();
  }
  state.SetItemsProcessed(state.iterations());
}

void predict_layouts_with_memory(benchmark::State& state) {
  const StepModel model(zoo_model("gpt3_175b").value(), setting());
  const auto all = layouts();
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(model.memory(all[next]));
    benchmark::DoNotOptimize(model.estimate(all[next]));
    next = (next + 1) % all.size();
  }
  state.SetItemsProcessed(state.iterations());
}

/// The same, each moved by what the shipped evidence says of it.
void predict_layouts_with_evidence(benchmark::State& state) {
  const std::filesystem::path catalogs = std::filesystem::path(RECKON_SOURCE_DIR) / "catalogs";
  const auto catalog = load_catalog({&catalogs, 1}).value();
  EvidenceFiles files;
  if (!files.add_catalog(catalogs) || !files.kernel()) return state.SkipWithError("no evidence");
  const Evidence evidence(files.runs(), catalog, *files.kernel());
  EvidenceFeatures question;
  question.accelerator = word_id("A100-SXM4-80");
  question.architecture = word_id("Ampere");
  question.year = 2020;
  question.precision = Precision::bf16;
  question.domain = Domain::language;
  question.network = word_id("dense language model");
  question.log_parameters = std::log(175e9);
  question.accelerators = 1024;
  question.many_nodes = true;
  const ResidualTable table = evidence.table(question);
  const StepModel model(zoo_model("gpt3_175b").value(), setting());
  const auto all = layouts();
  const auto predicted = [&](const Layout& l) {
    const double accelerators = double(l.accelerators());
    return table.at(std::log(accelerators), std::log(double(l.global_batch()) / accelerators),
                    device_share(model.estimate(l)));
  };
  for (const Layout& l : all) benchmark::DoNotOptimize(predicted(l));  // solves what is near
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(predicted(all[next]));
    next = (next + 1) % all.size();
  }
  state.SetItemsProcessed(state.iterations());
}

void look_up_layouts(benchmark::State& state) {
  const StepModel model(zoo_model("gpt3_175b").value(), setting());
  LayoutCache cache(model);
  const auto all = layouts();
  for (const Layout& l : all) cache.at(l);
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(cache.at(all[next]).step);
    next = (next + 1) % all.size();
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(predict_layouts);
BENCHMARK(predict_layouts_with_evidence);
BENCHMARK(predict_layouts_with_memory);
BENCHMARK(look_up_layouts);

}  // namespace
}  // namespace reckon::bench

BENCHMARK_MAIN();
