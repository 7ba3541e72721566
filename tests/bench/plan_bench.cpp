#include <benchmark/benchmark.h>

#include <stdexcept>

#include "planner/planner.h"
#include "sim/step/network.h"

// The search of `reckon plan`, on two threads: GPT-3 175B on up to 4,096 H100s in every layout (at
// most 2 s), and ResNet-50 over everything the catalog offers (at most 1 s). Counters: candidates
// a second, and the share of them that rules and memory, limits, and the bound on the score leave
// out. Without pruning: no bound excludes anything.
namespace {
using namespace reckon;

constexpr const char* kGpt3 = R"(
name: gpt3
workload: {model: gpt3_175b, dataset: openwebtext, train: {tokens: 300B}, precision: bf16,
           global_batch: 1536, strategy: {kind: sharded}}
cluster: {provider: gcp, region: us-central1,
          pools: [{name: workers, machine: a3-highgpu-8g, nodes: 128}]}
plan:
  vary: {provider: [gcp, aws, azure], accelerator: [H100-SXM5-80], nodes: 1..512,
         pricing: [on_demand, spot], strategy: [sharded, model_parallel], layout: any,
         recompute: any}
  objective: cost
)";
constexpr const char* kResnet = R"(
name: resnet50
workload: {model: resnet50, dataset: imagenet, train: {epochs: 90}, batch_per_accelerator: 1,
           strategy: {kind: single}}
cluster: {provider: gcp, region: us-central1,
          pools: [{name: workers, machine: n1-standard-8, accelerator: {type: T4, count: 1},
                   nodes: 1}]}
plan:
  vary: {provider: [gcp, aws, azure], nodes: 1..64, pricing: [on_demand, spot], strategy: any,
         precision: any, global_batch: 1..8192}
  objective: cost
)";

const Catalog& catalog() {
  static const Catalog kCatalog = [] {
    const std::vector<std::filesystem::path> layers{
        std::filesystem::path(RECKON_SOURCE_DIR "/catalogs")};
    return load_catalog(layers).value();
  }();
  return kCatalog;
}

planner::Question question_of(const char* text) {
  planner::Base base;
  base.text = text;
  base.name = "bench.yaml";
  auto question = planner::make_question(std::move(base), catalog());
  if (!question) throw std::runtime_error(format(question.error()));
  return std::move(*question);
}

void whole_answer(benchmark::State& state, const char* text) {
  const planner::Question question = question_of(text);
  const auto network = make_fluid_network();
  planner::PlannerOptions how;
  how.threads = 2;
  how.prune = state.range(0) == 1;
  double considered = 0, feasible = 0, proven = 0, lives = 0;
  for (auto _ : state) {
    const auto answer = planner::plan(question, catalog(), *network, how);
    if (!answer) throw std::runtime_error(format(answer.error()));
    considered += double(answer->considered);
    feasible += double(answer->feasible);
    proven += double(answer->search.proven_worse);
    lives += double(answer->lives);
  }
  using benchmark::Counter;
  state.counters["candidates_per_second"] = Counter(considered, Counter::kIsRate);
  state.counters["left_out_by_rules"] = 1 - feasible / considered;
  state.counters["feasible_pruned_by_bound"] = proven / feasible;
  state.counters["lives"] = Counter(lives, Counter::kAvgIterations);
}

/// Candidates with their bounds, nothing simulated.
void space_alone(benchmark::State& state, const char* text) {
  const planner::Question question = question_of(text);
  const auto network = make_fluid_network();
  double considered = 0;
  for (auto _ : state)
    considered +=
        double(planner::make_space(question, catalog(), *network, {1, 1000, 2, 4e6}).considered);
  state.counters["candidates_per_second"] =
      benchmark::Counter(considered, benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(whole_answer, gpt3_4096_h100, kGpt3)
    ->ArgName("pruned")
    ->Arg(1)
    ->Arg(0)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(whole_answer, resnet50_everything, kResnet)
    ->ArgName("pruned")
    ->Arg(1)
    ->Arg(0)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(space_alone, gpt3_4096_h100, kGpt3)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(space_alone, resnet50_everything, kResnet)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
