#include "sim/step/memory/folded_model.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "sim/model/zoo/zoo.h"

using namespace reckon;

namespace {

std::uint32_t blocks_in(const Part& part) {
  std::uint32_t n = 0;
  for (const Run& run : part) n += run.times;
  return n;
}

double flops_of(const FoldedModel& model, const Part& part) {
  double sum = 0;
  for (const Run& run : part) sum += run.times * model.blocks()[run.what].flops.v;
  return sum;
}

}  // namespace

TEST_CASE("a transformer folds into few layers and three blocks") {
  const ModelGraph gpt = zoo_model("gpt3_175b").value();
  const FoldedModel folded(gpt);
  CHECK(folded.blocks().size() == 3);  // embeddings, a block, the head
  CHECK(folded.layers().size() <= 20);
  CHECK(folded.units() == 96);
  // Nothing is lost: every layer has a class with its counts.
  for (std::size_t i = 0; i < gpt.layers().size(); ++i) {
    const LayerCount& c = folded.layers()[folded.class_of_layer()[i]].count;
    CHECK(c.forward == gpt.counts()[i].forward);
    CHECK(c.parameters == gpt.counts()[i].parameters);
  }
  double flops = 0;
  for (const Run& run : folded.partition(1).kinds[0])
    flops += run.times * folded.blocks()[run.what].flops.v;
  CHECK(flops == Approx((gpt.forward_flops() + gpt.backward_flops()).v));
}

TEST_CASE("blocks that can be shared out evenly are, embeddings first and the head last") {
  const FoldedModel folded(zoo_model("gpt3_175b").value());
  const Partition& p = folded.partition(8);
  REQUIRE(p.parts.size() == 8);
  CHECK(p.kinds.size() == 3);
  CHECK(blocks_in(p.kinds[p.parts[0]]) == 13);  // 12 and the embeddings
  for (std::size_t s = 1; s < 7; ++s) CHECK(blocks_in(p.kinds[p.parts[s]]) == 12);
  CHECK(blocks_in(p.kinds[p.parts[7]]) == 13);
}

TEST_CASE("other numbers of parts keep the largest part small") {
  const FoldedModel folded(zoo_model("resnet50").value());
  for (int parts = 1; parts <= folded.units(); ++parts) {
    const Partition& p = folded.partition(parts);
    REQUIRE(p.parts.size() == std::size_t(parts));
    double all = 0, largest = 0, block = 0;
    for (const auto kind : p.parts) {
      const double flops = flops_of(folded, p.kinds[kind]);
      CHECK(flops >= 0);
      all += flops;
      largest = std::max(largest, flops);
    }
    for (const BlockClass& b : folded.blocks()) block = std::max(block, b.flops.v);
    // A greedy cut exceeds the mean by at most one block.
    CHECK(largest <= all / parts + 2 * block);
  }
  const FoldedModel llama(zoo_model("llama3_8b").value());  // 32 blocks into 5
  std::uint32_t blocks = 0;
  for (const auto kind : llama.partition(5).parts)
    blocks += blocks_in(llama.partition(5).kinds[kind]);
  CHECK(blocks == 34);
}
