#include <benchmark/benchmark.h>

#include <stdexcept>
#include <string>
#include <utility>

#include "planner/planner.h"
#include "sim/step/network/network.h"

// The search of `reckon plan`, on two threads: GPT-3 175B on up to 4,096 H100s in every layout (at
// most 2 s), and ResNet-50 over everything the catalog offers, mixes with spot included (at most
// 1 s); each with and without limits, and a small question that is answered exactly. Counters:
// candidates a second; of all that is considered the share that rules, prices and memory leave out;
// of what is left (feasible) the share that each bound excludes: of the deadline, the budget and
// the score; and whether no candidate is left that nothing excludes. pruned:0: no bound excludes
// anything.
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
constexpr const char* kGpt3Limits = "  deadline: 60d@95%\n  budget: 6000000 USD@90%\n";
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
constexpr const char* kResnetLimits = "  deadline: 12h@95%\n  budget: 100 USD@90%\n";
constexpr const char* kMixes =
    "base: [25% on_demand, 50% on_demand], fallback: [10min], strategy: any";
/// One provider's attachable GPUs on up to four nodes: few enough to forecast all that no bound
/// excludes.
constexpr const char* kSmall = R"(
name: small
workload: {model: resnet50, dataset: imagenet, train: {epochs: 90}, batch_per_accelerator: 64,
           strategy: {kind: single}}
cluster: {provider: gcp, region: us-central1,
          pools: [{name: workers, machine: n1-standard-16,
                   accelerator: {type: T4, count: 1}, nodes: 1}]}
forecast: {replications: 200}
plan:
  vary: {machine: [n1-standard-16, n1-standard-32],
         accelerator: [T4, V100-SXM2-16, P100-PCIE-16], region: [us-central1], nodes: 1..4,
         pricing: [on_demand, spot], strategy: any, precision: any}
  objective: cost
  deadline: 36h@95%
  budget: 400 USD@90%
)";

const Catalog& catalog() {
  static const Catalog kCatalog = [] {
    const std::vector<std::filesystem::path> layers{
        std::filesystem::path(RECKON_SOURCE_DIR "/catalogs")};
    return load_catalog(layers).value();
  }();
  return kCatalog;
}

planner::Question question_of(std::string text) {
  planner::Base base;
  base.text = std::move(text);
  base.name = "bench.yaml";
  auto question = planner::make_question(std::move(base), catalog());
  if (!question) throw std::runtime_error(format(question.error()));
  return std::move(*question);
}

std::string with_mixes(std::string text) {
  const std::string before = "strategy: any";
  return text.replace(text.find(before), before.size(), kMixes);
}

void whole_answer(benchmark::State& state, const std::string& text, bool exact = false) {
  const planner::Question question = question_of(text);
  const auto network = make_fluid_network();
  planner::PlannerOptions how;
  how.threads = 2;
  how.prune = state.range(0) == 1;
  if (exact) how.exact_up_to = 1'000'000;
  double considered = 0, feasible = 0, late = 0, dear = 0, worse = 0, lives = 0, vouched = 0;
  for (auto _ : state) {
    const auto answer = planner::plan(question, catalog(), *network, how);
    if (!answer) throw std::runtime_error(format(answer.error()));
    considered += double(answer->considered);
    feasible += double(answer->feasible);
    late += double(answer->search.proven_late);
    dear += double(answer->search.proven_dear);
    worse += double(answer->search.proven_worse);
    vouched += answer->search.exact ? 1 : 0;
    lives += double(answer->lives);
  }
  using benchmark::Counter;
  state.counters["candidates_per_second"] = Counter(considered, Counter::kIsRate);
  state.counters["left_out_by_rules"] = 1 - feasible / considered;
  state.counters["by_deadline"] = late / feasible;
  state.counters["by_budget"] = dear / feasible;
  state.counters["by_score"] = worse / feasible;
  state.counters["exact"] = Counter(vouched, Counter::kAvgIterations);
  state.counters["lives"] = Counter(lives, Counter::kAvgIterations);
}

/// Candidates with their bounds, nothing simulated.
void space_alone(benchmark::State& state, const std::string& text) {
  const planner::Question question = question_of(text);
  const auto network = make_fluid_network();
  double considered = 0;
  for (auto _ : state)
    considered +=
        double(planner::make_space(question, catalog(), *network, {1, 1000, 2, 4e6}).considered);
  state.counters["candidates_per_second"] =
      benchmark::Counter(considered, benchmark::Counter::kIsRate);
}

void pruned_and_not(benchmark::internal::Benchmark* bench) {
  bench->ArgName("pruned")->Arg(1)->Arg(0)->Unit(benchmark::kMillisecond)->UseRealTime();
}

BENCHMARK_CAPTURE(whole_answer, gpt3_4096_h100, kGpt3)->Apply(pruned_and_not);
BENCHMARK_CAPTURE(whole_answer, gpt3_with_limits, std::string(kGpt3) + kGpt3Limits)
    ->Apply(pruned_and_not);
BENCHMARK_CAPTURE(whole_answer, resnet50_everything, kResnet)->Apply(pruned_and_not);
BENCHMARK_CAPTURE(whole_answer, resnet50_with_mixes, with_mixes(kResnet))->Apply(pruned_and_not);
BENCHMARK_CAPTURE(whole_answer, resnet50_with_limits, std::string(kResnet) + kResnetLimits)
    ->Apply(pruned_and_not);
BENCHMARK_CAPTURE(whole_answer, small_exact, kSmall, true)->Apply(pruned_and_not);
BENCHMARK_CAPTURE(space_alone, gpt3_4096_h100, kGpt3)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(space_alone, resnet50_everything, kResnet)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(space_alone, resnet50_with_mixes, with_mixes(kResnet))
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
