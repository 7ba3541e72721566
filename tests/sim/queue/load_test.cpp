#include "sim/queue/packing/load.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "sim/base/mapped_file.h"
#include "sim/base/text/csv.h"
#include "sim/queue/lists/openb_csv.h"
#include "sim/queue/packing/go_random.h"
#include "sim/queue/packing/pod_scheduler.h"
#include "support/skip.h"

using namespace reckon;

namespace {

constexpr std::array kPolicies{
    SchedulingPolicy::fgd,         SchedulingPolicy::best_fit,       SchedulingPolicy::dot_product,
    SchedulingPolicy::gpu_packing, SchedulingPolicy::gpu_clustering, SchedulingPolicy::random};
const std::map<std::string, SchedulingPolicy> kPublishedNames{
    {"01-Random", SchedulingPolicy::random},
    {"02-DotProd", SchedulingPolicy::dot_product},
    {"03-GpuClustering", SchedulingPolicy::gpu_clustering},
    {"04-GpuPacking", SchedulingPolicy::gpu_packing},
    {"05-BestFit", SchedulingPolicy::best_fit},
    {"06-FGD", SchedulingPolicy::fgd}};
const std::string kOpenb = RECKON_SOURCE_DIR "/scenarios/traces/openb/";

template <class Read>
auto read_file(const std::filesystem::path& path, Read read) {
  const MappedFile file(path);
  auto value = read(path.string(), file.bytes());
  REQUIRE(value);
  return std::move(*value);
}

std::vector<PodRequest> random_pods() {
  std::vector<PodRequest> pods;
  const int n = *rc::gen::inRange(1, 120);
  for (int k = 0; k < n; ++k) {
    const int gpus = *rc::gen::element(0, 1, 1, 1, 2, 4);
    const int milli = gpus == 0 ? 0 : gpus > 1 ? 1000 : *rc::gen::inRange(1, 11) * 100;
    pods.push_back({*rc::gen::inRange(0, 9000), *rc::gen::inRange(0, 5000), gpus, milli,
                    *rc::gen::element<std::string>("", "", "T4", "T4|A10")});
  }
  return pods;
}

const std::vector<GpuNode> kNodes{{"a", 16'000, 20'000, 4, "T4"},
                                  {"b", 8'000, 9'000, 1, "A10"},
                                  {"c", 64'000, 50'000, 8, "T4"},
                                  {"d", 4'000, 50'000, 0, ""}};

/// Row of the published table -> value by percent of arrived load.
using PublishedRows =
    std::map<std::pair<std::string, std::string>, std::vector<std::vector<double>>>;
PublishedRows published(const std::filesystem::path& path, std::size_t first) {
  const MappedFile file(path);
  CsvReader csv(file.bytes());
  std::vector<CsvField> row;
  PublishedRows rows;
  csv.next(row);
  while (csv.next(row)) {
    std::vector<double> values;
    for (std::size_t k = first; k < row.size(); ++k)
      values.push_back(std::stod(std::string(row[k].text)));
    rows[{std::string(row[0].text), std::string(row[1].text)}].push_back(std::move(values));
  }
  return rows;
}

}  // namespace

TEST_CASE("draws are those of Go's math/rand") {
  GoRandom random(1);  // what rand.Seed(1) gives, as in the tour of Go
  CHECK(random.int63() == 5577006791947779410);
  CHECK(random.int63() == 8674665223082153551);
  CHECK(random.int63() == 6129484611666145821);
  GoRandom again(1);
  for (const int wanted : {81, 87, 47, 59, 81, 18, 25, 40, 56, 0})
    CHECK(again.below(100) == wanted);
}

TEST_CASE("a load is reached, by leaving pods out or by drawing some again") {
  const std::vector<PodRequest> pods(10, {1000, 1, 1, 1000, ""});
  CHECK(draw_load(pods, 3, 8000, 0.5, 7).pods.size() == 4);
  CHECK(draw_load(pods, 3, 8000, 1.25, 7).pods.size() == 10);
  const LoadDraws more = draw_load(pods, 3, 8000, 2, 7);
  CHECK(more.pods.size() == 16);
  std::vector<int> ranks = more.ranks;
  std::sort(ranks.begin(), ranks.end());
  CHECK(ranks == std::vector<int>{0, 1, 2});
  CHECK(draw_load(pods, 3, 8000, 2, 8).pods != more.pods);
}

TEST_CASE("no node holds more than it has, and what is handed out adds up") {
  const bool held = rc::check("capacity and conservation", [] {
    const std::vector<PodRequest> pods = random_pods();
    const SchedulingPolicy policy = *rc::gen::elementOf(kPolicies);
    GpuModels models;
    for (const GpuNode& node : kNodes) models.add(node.model);
    const Fragmentation fragmentation(typical_pods(pods), models);
    const std::vector<int> ranks{2, 0, 3, 1};
    PodScheduler scheduler(kNodes, models, ranks, pods, fragmentation,
                           make_placement(policy, fragmentation),
                           RandomStream(3, 0, Purpose{"test"}, 0));
    std::vector<std::int64_t> cpu(kNodes.size()), memory(kNodes.size()), gpu(kNodes.size());
    for (std::size_t k = 0; k < pods.size(); ++k) {
      const auto at = scheduler.place(k);
      if (!at) {
        for (const GpuNodeState& s : scheduler.states())
          RC_ASSERT(!fits(s, pods[k], models.allowed(pods[k].models)));
        continue;
      }
      const auto n = std::size_t(at->node);
      cpu[n] += pods[k].cpu_milli;
      memory[n] += pods[k].memory_mib;
      gpu[n] += pods[k].gpu_milli_in_all();
      RC_ASSERT(cpu[n] <= kNodes[n].cpu_milli);
      RC_ASSERT(memory[n] <= kNodes[n].memory_mib);
      RC_ASSERT(gpu[n] <= kNodes[n].gpus * kWholeGpu);
      RC_ASSERT(pods[k].models.empty() || pods[k].gpus == 0 ||
                pods[k].models.find(kNodes[n].model) != std::string::npos);
    }
    double fragmented = 0;
    for (std::size_t n = 0; n < kNodes.size(); ++n) {
      const GpuNodeState& left = scheduler.states()[std::size_t(ranks[n])];
      RC_ASSERT(left.gpu_left_in_all() + gpu[n] == kNodes[n].gpus * kWholeGpu);
      RC_ASSERT(left.cpu_left + cpu[n] == kNodes[n].cpu_milli);
      fragmented += fragmentation.amount(left);
    }
    RC_ASSERT(std::abs(fragmented - scheduler.fragmented_milli()) < 1e-6);
  });
  CHECK(held);
}

TEST_CASE("a curve has a value for each percent of arrived load") {
  const std::vector<PodRequest> pods(4, {1000, 1, 2, 1000, ""});  // a pod is 15 % of 13 GPUs
  const LoadRun run = run_load(kNodes, pods, SchedulingPolicy::best_fit, 1.0, 1);
  REQUIRE(run.curve.gpu_percent.size() == 100);
  CHECK(run.arrived == 7);  // only the share of one GPU decides whether the last is drawn
  CHECK(run.placed == 6);
  CHECK(run.curve.gpu_percent[14] == Approx(200.0 / 13));  // after the first
  CHECK(run.curve.gpu_percent[20] == Approx(200.0 / 13));  // nothing came meanwhile
  CHECK(run.curve.gpu_percent[99] == Approx(1200.0 / 13));
}

TEST_CASE("Alibaba's cluster under FGD's policies: each seed's published curve") {
  // fgd_published.csv: seeds 42 .. 44 of openb_pod_list_default, from
  // experiments/analysis/expected_results of hkust-adsl/kubernetes-scheduler-simulator
  // (Apache-2.0).
  const auto nodes = read_file(kOpenb + "openb_node_list_gpu_node.csv", read_openb_nodes);
  const auto pods = read_file(kOpenb + "openb_pod_list_default.csv", read_openb_pods);
  CHECK(nodes.size() == 1213);
  CHECK(pods.size() == 8152);
  const std::filesystem::path table = RECKON_SOURCE_DIR "/tests/sim/queue/fgd_published.csv";
  constexpr std::array kLoads{80, 90, 95, 100, 110, 120, 130};
  for (const auto& [key, seeds] : published(table, 3)) {
    const SchedulingPolicy policy = kPublishedNames.at(key.second);
    if (policy == SchedulingPolicy::random) continue;  // draws of its own: see below
    for (std::size_t s = 0; s < seeds.size(); ++s) {
      const LoadRun run = run_load(nodes, pods, policy, 1.3, 42 + s);
      CHECK(run.gpu_milli == 6'212'000);
      for (std::size_t k = 0; k < kLoads.size(); ++k) {
        INFO(key.second << " seed " << 42 + s << " at " << kLoads[k] << " %");
        const auto at = std::size_t(kLoads[k]) - 1;
        CHECK(std::abs(run.curve.gpu_percent[at] - seeds[s][2 * k]) < 0.011);  // printed with 0.01
        CHECK(std::abs(run.curve.fragmentation_percent[at] - seeds[s][2 * k + 1]) < 0.011);
      }
    }
  }
}

TEST_CASE("ten seeds of every policy on every workload whose pods are known") {
  const char* data = std::getenv("RECKON_DATA");
  if (data == nullptr) return skip_test("RECKON_DATA names no folder of published data");
  const auto traces = std::filesystem::path(data) / "traces";
  const auto expected = traces / "fgd_expected";
  if (!std::filesystem::exists(expected)) return skip_test(expected.string() + " is not there");
  const auto nodes = read_file(kOpenb + "openb_node_list_gpu_node.csv", read_openb_nodes);
  const auto allocation = published(expected / "analysis_allo_discrete.csv", 5);
  const auto fragmentation = published(expected / "analysis_frag_ratio_discrete.csv", 4);
  int compared = 0;
  for (const auto& [key, seeds] : allocation) {
    const auto list = traces / "openb" / (key.first + ".csv");
    if (!std::filesystem::exists(list)) continue;
    const auto pods = read_file(list, read_openb_pods);
    std::vector<LoadCurve> ours;
    for (std::size_t s = 0; s < seeds.size(); ++s)
      ours.push_back(run_load(nodes, pods, kPublishedNames.at(key.second), 1.3, 42 + s).curve);
    const double n = double(seeds.size());
    for (int load = 1; load <= 130; ++load) {
      const auto at = std::size_t(load);  // the published table begins with 0 %
      double theirs = 0, square = 0, mine = 0, fragmented = 0;
      for (std::size_t s = 0; s < seeds.size(); ++s) {
        theirs += seeds[s][at] / n;
        square += seeds[s][at] * seeds[s][at] / n;
        mine += ours[s].gpu_percent[at - 1] / n;
        fragmented += (ours[s].fragmentation_percent[at - 1] - fragmentation.at(key)[s][at]) / n;
      }
      const double deviation = std::sqrt(std::max(0.0, square - theirs * theirs) * n / (n - 1));
      INFO(key.first << ", " << key.second << " at " << load << " %");
      CHECK(std::abs(mine - theirs) <= std::max(0.3, 3 * deviation * std::sqrt(2 / n)));
      CHECK(std::abs(fragmented) <= 1);
    }
    ++compared;
  }
  CHECK(compared >= 6);
}
