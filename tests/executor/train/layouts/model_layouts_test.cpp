#include <catch2/catch.hpp>

#include "executor/train/layout_checks.h"
#include "executor/train/parallel_networks.h"

// Layouts as the worker trains them: exchange, optimizer, clipping and checkpoints among them.
using namespace reckon;
using namespace reckon::test;

TEST_CASE("the worker's training under tensor, context and pipeline ranks is one rank's") {
  const ModelGraph gpt = parallel_gpt2(), llama = parallel_llama(2);
  for (const Layout& layout :
       {product_of(1, 2, 1, 1), product_of(2, 2, 1, 1), product_of(1, 2, 1, 2),
        product_of(1, 1, 2, 2), product_of(2, 1, 2, 1)}) {
    check_layout(gpt, layout, Optimizer::sgd_momentum);
    check_layout(llama, layout, Optimizer::adamw);
  }
}

TEST_CASE("ZeRO's shards are parts of what a tensor rank holds") {
  const ModelGraph llama = parallel_llama(2);
  for (const int stage : {1, 2, 3}) {
    Layout layout = product_of(2, 2, 1, 1);
    layout.zero_stage = stage;
    check_layout(llama, layout, Optimizer::sgd_momentum);
    check_layout(llama, layout, Optimizer::adamw);
    layout = product_of(1, 1, 2, 1);
    layout.zero_stage = stage;
    check_layout(llama, layout, Optimizer::sgd_momentum);
  }
}

TEST_CASE("all ways to share a dense network at once") {
  Layout layout = product_of(2, 2, 2, 2);
  layout.zero_stage = 1;
  check_layout(parallel_gpt2(), layout, Optimizer::sgd_momentum);
}

TEST_CASE("experts have replicas of their own, and count once in the gradient's norm") {
  const ModelGraph model = parallel_mixture(true);
  for (const int tensor : {1, 2}) {
    Layout layout = product_of(2, tensor, 1, 1);
    layout.expert = 2;
    check_layout(model, layout, Optimizer::sgd_momentum);
    layout.data = 4;
    check_layout(model, layout, Optimizer::adamw);
    layout = product_of(2, tensor, tensor == 1 ? 2 : 1, 2);
    layout.expert = 2;
    check_layout(model, layout, Optimizer::sgd_momentum);
  }
}

TEST_CASE("ZeRO cuts experts over their replicas, and all else over all that have it") {
  const ModelGraph model = parallel_mixture(true);
  for (const int stage : {1, 2, 3}) {
    Layout layout = product_of(4, 1, 1, 1);
    layout.expert = 2;
    layout.zero_stage = stage;
    check_layout(model, layout, Optimizer::sgd_momentum);
    check_layout(model, layout, Optimizer::adamw);
    // Experts without a replica are whole on their rank.
    layout.data = 2;
    check_layout(model, layout, Optimizer::sgd_momentum);
    layout = product_of(2, 2, 1, 1);
    layout.expert = 2;
    layout.zero_stage = stage;
    check_layout(model, layout, Optimizer::sgd_momentum);
    layout = product_of(2, 1, 2, 1);
    layout.expert = 2;
    layout.zero_stage = stage;
    check_layout(model, layout, Optimizer::adamw);
  }
}

TEST_CASE("ZeRO's stages 2 and 3 in pipelines: gradients leave every pass, blocks come for each") {
  const ModelGraph gpt = parallel_gpt2(), llama = parallel_llama(2);
  const ModelGraph mixture = parallel_mixture(true);
  for (const int stage : {2, 3}) {
    Layout layout = product_of(2, 1, 1, 2);
    layout.zero_stage = stage;
    check_layout(gpt, layout, Optimizer::sgd_momentum);  // its table is tied to the head
    // Tensor ranks sum the gradient of the positions in that table's block, once a step.
    for (const ModelGraph& tied : {gpt, parallel_bert()}) {
      Layout shared = product_of(2, 2, 1, 2);
      shared.zero_stage = stage;
      check_layout(tied, shared, Optimizer::sgd_momentum);
    }
    layout.schedule = PipelineSchedule::gpipe;
    check_layout(llama, layout, Optimizer::adamw);
    layout = product_of(2, 2, 1, 2);
    layout.zero_stage = stage;
    check_layout(llama, layout, Optimizer::sgd_momentum);
    layout = product_of(2, 1, 1, 2);
    layout.zero_stage = stage;
    layout.expert = 2;
    check_layout(mixture, layout, Optimizer::sgd_momentum);
  }
}

TEST_CASE(
    "what tensor ranks send in a step is what the forecast counts for blocks, table and loss") {
  const std::int64_t batch = 8, tokens = 16, hidden = 32, blocks = 2;
  Layout layout = product_of(1, 2, 1, 1);
  layout.sequence_parallel = false;
  // Two sums forward and two backward a block (docs/models/step.md), the table's forward, the
  // head's backward; a sum of two ranks sends a tensor once. Of each row the loss has three
  // numbers.
  const auto values = static_cast<double>((4 * blocks + 2) * batch * tokens * hidden);
  const auto of_loss = static_cast<double>(3 * batch * tokens);
  for (const LayoutRun& run :
       train_under(under(layout_job(parallel_gpt2(), Optimizer::sgd_momentum), layout, 2), 3))
    for (const Bytes sent : run.sent) CHECK(sent.v == Approx(4 * (values + of_loss)));
}
