#include <catch2/catch.hpp>

#include "executor/train/parallel/token_parts.h"
#include "executor/train/parallel_cases.h"
#include "executor/train/parallel_networks.h"

using namespace reckon;
using test::check_pass;
using test::check_training;

namespace {

Layout layout_of(int context, int tensor = 1, bool sequence_parallel = false) {
  Layout layout;
  layout.context = context;
  layout.tensor = tensor;
  layout.sequence_parallel = sequence_parallel;
  return layout;
}

/// A window that is narrower than a rank's pieces, and one that is wider.
ModelGraph windowed(std::int64_t window) {
  TransformerDimensions d = test::small_dimensions();
  d.kv_heads = 2;
  d.positions = 0;
  d.window = window;
  return test::made(d);
}
/// All tokens see all, and their loss is that of each: an encoder with a head for every token.
ModelGraph encoder() {
  LayerList net(16);
  LayerId x = net.add("ids", InputLayer{}, std::vector<LayerId>{});
  x = net.add("embed", Embedding{13, 8}, x);
  x = net.add("places", SinusoidalPositions{8}, x);
  const LayerId qkv = net.add("qkv", Linear{8, 24}, x);
  const LayerId y = net.add("attention", Attention{2, 2, 4, false, 0.2}, qkv);
  x = net.add("sum", Add{}, {x, net.add("out", Linear{8, 8}, y)});
  x = net.add("head", Linear{8, 5}, x);
  net.add("loss", SoftmaxCrossEntropy{5}, x);
  return test::network(SampleUnit::sequence, {16}, net);
}

}  // namespace

TEST_CASE("each context rank has a piece from the front and one from the back") {
  for (const int rank : {0, 1, 2}) {
    const TokenPart part = tokens_of_context(24, {rank, 3});
    REQUIRE(part.runs.size() == 2);
    CHECK(part.place_of(0) == 4 * rank);
    CHECK(part.place_of(3) == 4 * rank + 3);
    CHECK(part.place_of(4) == 20 - 4 * rank);
    // Tokens that its own see: of a causal model as many on every rank.
    std::int64_t seen = 0;
    for (std::int64_t row = 0; row < 8; ++row) seen += part.place_of(row) + 1;
    CHECK(seen == 8 * 25 / 2);
  }
  const TokenPart shared = part_of_tokens(tokens_of_context(24, {1, 3}), 24, {1, 2});
  REQUIRE(shared.runs.size() == 1);
  CHECK(shared.place_of(0) == 16);
}

TEST_CASE("context ranks have the loss and the gradients of one rank") {
  const std::vector<test::NamedNetwork> networks{
      {"gpt2", test::parallel_gpt2()},
      {"gpt2 with shared key-value heads", test::parallel_gpt2(2)},
      {"llama", test::parallel_llama(2)},
      {"qwen", test::parallel_qwen()},
      {"mpt", test::parallel_mpt()},
      {"mixture of experts", test::parallel_mixture(true)},
      {"narrow window", windowed(3)},
      {"wide window", windowed(9)},
      {"encoder", encoder()}};
  for (const test::NamedNetwork& network : networks)
    for (const int context : {2, 4}) {
      INFO(network.name);
      check_pass(network.model, layout_of(context));
    }
}

TEST_CASE("context ranks that recompute and share heads have them too") {
  const ModelGraph gpt = test::parallel_gpt2(), llama = test::parallel_llama(2);
  for (const Recompute recompute : {Recompute::full, Recompute::selective})
    check_pass(llama, layout_of(2), recompute);
  check_pass(gpt, layout_of(2, 2));
  check_pass(gpt, layout_of(2, 2, true));
  check_pass(llama, layout_of(2, 4, true));
}

TEST_CASE("ten steps of context ranks are those of one rank") {
  const ModelGraph gpt = test::parallel_gpt2(), llama = test::parallel_llama(2);
  check_training(gpt, layout_of(2), test::kSgd, test::kSgdBound);
  check_training(gpt, layout_of(2), test::kAdamW, test::kAdamWBound);
  check_training(llama, layout_of(2), test::kSgd, test::kSgdBound);
  check_training(llama, layout_of(4), test::kAdamW, test::kAdamWBound);
}
