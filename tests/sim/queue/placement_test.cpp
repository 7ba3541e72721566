#include "sim/queue/packing/placement.h"

#include <catch2/catch.hpp>

#include "sim/queue/packing/pod_scheduler.h"

using namespace reckon;

namespace {

constexpr Purpose kTest{"test"};

GpuModels one_model() {
  GpuModels models;
  models.add("T4");
  return models;
}

GpuNodeState node_with(std::int64_t cpu, std::vector<std::int32_t> left) {
  GpuNodeState node = empty_state({"n", cpu, 100'000, int(left.size()), "T4"}, 0);
  std::copy(left.begin(), left.end(), node.gpu_left.begin());
  return node;
}

PodRequest share(std::int32_t milli, std::int64_t cpu = 1000) { return {cpu, 1, 1, milli, ""}; }
PodRequest whole(int gpus, std::int64_t cpu = 1000) { return {cpu, 1, gpus, kWholeGpu, ""}; }

std::int64_t score(SchedulingPolicy policy, const GpuNodeState& node, const PodRequest& pod) {
  const Fragmentation none({}, one_model());
  return make_placement(policy, none)->score(node, pod);
}

}  // namespace

TEST_CASE("a pod fits where CPU, memory and enough GPUs of an allowed model are left") {
  GpuModels models = one_model();
  models.add("A10");
  const GpuNodeState node = node_with(4000, {1000, 300, 500});
  CHECK(fits(node, share(500), models.allowed("")));
  CHECK(fits(node, share(500), models.allowed("A10|T4")));
  CHECK_FALSE(fits(node, share(500), models.allowed("A10")));
  CHECK_FALSE(fits(node, share(500), models.allowed("V100")));  // which no node has
  CHECK(fits(node, whole(1), models.allowed("")));
  CHECK_FALSE(fits(node, whole(2), models.allowed("")));
  CHECK_FALSE(fits(node, share(100, 4001), models.allowed("")));
  CHECK_FALSE(fits(node, {1000, 100'001, 0, 0, ""}, models.allowed("")));
  CHECK(fits(node, {4000, 100'000, 0, 0, ""}, models.allowed("A10")));  // asks for no GPU
}

TEST_CASE("best_fit weighs what is left of CPU and GPU alike") {
  // CPU: (64 - 8) / 128 = 0.4375; GPU: (1.5 - 0.5) / 8 = 0.125; 100 (1 - 0.28125) = 71.875.
  CHECK(score(SchedulingPolicy::best_fit, node_with(64'000, {1000, 500}), share(500, 8000)) == 71);
}

TEST_CASE("dot_product avoids nodes whose free resources look like the request") {
  // 64/128 x 8/128 = 0.03125; 1.5/8 x 0.5/8 = 0.01171875; 100 (1 - 0.02148) = 97.85.
  CHECK(score(SchedulingPolicy::dot_product, node_with(64'000, {1000, 500}), share(500, 8000)) ==
        97);
}

TEST_CASE("gpu_packing prefers GPUs in use, then free GPUs of nodes in use, then free nodes") {
  const auto packing = SchedulingPolicy::gpu_packing;
  CHECK(score(packing, node_with(64'000, {1000, 400}), share(300)) == 96);          // 100 - 40 / 10
  CHECK(score(packing, node_with(64'000, {1000, 200}), share(300)) == 49);          // 50 - 1
  CHECK(score(packing, node_with(64'000, {1000, 1000, 0}), whole(2)) == 48);        // 50 - 2
  CHECK(score(packing, node_with(64'000, {1000, 1000}), share(300)) == 31);         // 33 - 2
  CHECK(score(packing, node_with(64'000, {1000, 200}), {1000, 1, 0, 0, ""}) == 0);  // no GPU
}

TEST_CASE("gpu_clustering puts pods of a kind together") {
  const auto clustering = SchedulingPolicy::gpu_clustering;
  GpuNodeState node = node_with(64'000, {1000, 1000, 1000, 1000});
  CHECK(score(clustering, node, share(500)) == 37);  // 25 x 4 / 8, + 25: empty
  take(node, share(500), 0);
  CHECK(score(clustering, node, share(500)) == 89);  // 25 x 4.5 / 8 = 14, + 75
  CHECK(score(clustering, node, whole(1)) == 14);    // other pods only
  take(node, whole(1), -1);
  CHECK(score(clustering, node, share(500)) == 67);  // 25 x 5.5 / 8 = 17, + 50
}

TEST_CASE("fragmentation counts what the usual pods cannot use") {
  // Half of the pods want 0.5 GPU and 4 CPUs, a quarter 2 GPUs and 8 CPUs, a quarter no GPU.
  const std::vector<PodRequest> pods{
      share(500, 4000), share(500, 4000), whole(2, 8000), {2000, 1, 0, 0, ""}};
  const auto typical = typical_pods(pods, 1);
  REQUIRE(typical.size() == 3);
  CHECK(typical[0].share == Approx(0.5));
  const Fragmentation f(typical, one_model());
  // Of the 2,300 left, 300 are too little for half a GPU and for whole ones; all are for no GPU.
  CHECK(f.amount(node_with(64'000, {1000, 300, 1000, 0})) ==
        Approx(0.5 * 300 + 0.25 * 300 + 0.25 * 2300));
  CHECK(f.amount(node_with(64'000, {1000, 300, 600})) == Approx(0.5 * 300 + 0.5 * 1900));
  // With 4 CPUs only the share runs; with 3 nothing does.
  CHECK(f.amount(node_with(4000, {1000, 1000})) == Approx(0.5 * 2000));
  CHECK(f.amount(node_with(3000, {1000, 1000})) == Approx(2000));
  CHECK(f.amount(node_with(64'000, {0, 0})) == 0);
}

TEST_CASE("the most frequent requests that make up 95 % are typical") {
  std::vector<PodRequest> pods(96, share(500));
  pods.resize(99, share(200));
  pods.push_back(whole(8));
  const auto typical = typical_pods(pods);
  REQUIRE(typical.size() == 1);
  CHECK(typical.front().request.gpu_milli == 500);
  CHECK(typical.front().share == Approx(1));
  CHECK(typical_pods(pods, 0.97).size() == 2);
}

TEST_CASE("fgd takes the GPU whose use fragments least, and scores it by a sigmoid") {
  const std::vector<PodRequest> pods{whole(1), share(500)};
  const GpuModels models = one_model();
  const Fragmentation f(typical_pods(pods, 1), models);
  const auto fgd = make_placement(SchedulingPolicy::fgd, f);
  RandomStream luck(1, 0, kTest, 0);
  GpuNodeState node = node_with(64'000, {1000, 500});
  node.fragmented = f.amount(node);
  // Now: the whole GPU's pod leaves 500 unused: 0.5 x 500. With the share on GPU 1 nothing is left
  // over: F falls by 250, 100 / (1 + e^-0.25) = 56.2; on GPU 0 it grows: 0.5 x 1000, 43.8.
  CHECK(node.fragmented == Approx(250));
  CHECK(fgd->gpu_to_share(node, share(500), luck) == 1);
  CHECK(fgd->score(node, share(500)) == 56);
  CHECK(fgd->score(node, whole(1)) == 50);  // leaves 500 for the share: 0.5 x 500 as before
}

TEST_CASE("a share goes to the fullest GPU that has room, unless the policy says otherwise") {
  RandomStream luck(1, 0, kTest, 0);
  const Fragmentation none({}, one_model());
  const GpuNodeState node = node_with(64'000, {1000, 300, 300, 100});
  CHECK(make_placement(SchedulingPolicy::best_fit, none)->gpu_to_share(node, share(200), luck) ==
        1);
  const auto any = make_placement(SchedulingPolicy::random, none);
  std::array<int, 4> seen{};
  for (int k = 0; k < 300; ++k) ++seen[std::size_t(any->gpu_to_share(node, share(200), luck))];
  CHECK(seen[3] == 0);
  for (const std::size_t g : {0, 1, 2}) CHECK(seen[g] > 60);  // 100 each on average
}

TEST_CASE("of equally good nodes the one with the lowest rank is taken") {
  const std::vector<GpuNode> nodes{{"a", 8000, 10, 1, "T4"}, {"b", 8000, 10, 1, "T4"}};
  const std::vector<int> ranks{1, 0};
  const std::vector<PodRequest> requests{whole(1)};
  const GpuModels models = one_model();
  const Fragmentation none({}, models);
  PodScheduler scheduler(nodes, models, ranks, requests, none,
                         make_placement(SchedulingPolicy::best_fit, none),
                         RandomStream(1, 0, kTest, 0));
  CHECK(scheduler.place(0)->node == 1);
  CHECK(scheduler.place(0)->node == 0);
  CHECK_FALSE(scheduler.place(0));
  CHECK(scheduler.gpu_milli_used() == 2000);
}
