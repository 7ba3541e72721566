#include <catch2/catch.hpp>

#include "executor/train/layout_checks.h"
#include "executor/train/parallel_networks.h"

// What the planner may choose beside powers of two in full precision: other degrees, recomputation,
// adapters and 16 bits in products of layouts.
using namespace reckon;
using namespace reckon::test;

namespace {

Layout under_zero(Layout layout, int stage) {
  layout.zero_stage = stage;
  return layout;
}
Layout experts_of(Layout layout, int expert) {
  layout.expert = expert;
  return layout;
}
Layout in_two_rounds(Layout layout) {
  layout.schedule = PipelineSchedule::interleaved;
  layout.interleave = 2;
  return layout;
}
Layout recomputed(Layout layout, Recompute recompute) {
  layout.recompute = recompute;
  return layout;
}

/// Sizes that three ranks share, and two do not.
ModelGraph for_three(bool experts, int layers) {
  TransformerDimensions d = small_dimensions(layers);
  d.hidden = 36;
  d.heads = d.kv_heads = 3;
  d.sequence_length = d.positions = 18;
  if (experts) {
    d.positions = 0;
    d.gated_feed_forward = d.rms_norm = true;
    d.dropout = 0;
    d.experts = 3;
    d.experts_per_token = 2;
    d.expert_feed_forward = 24;
  }
  return made(d);
}

void check_all(const ModelGraph& model, const std::vector<Layout>& layouts, std::int64_t batch) {
  int number = 0;
  for (const Optimizer optimizer : {Optimizer::sgd_momentum, Optimizer::adamw}) {
    const auto job = layout_job(model, optimizer, batch);
    const TrainedLayout alone = train_layout(under(job, {}, 2));
    for (std::size_t k = 0; k < layouts.size(); ++k)
      if (k % 2 == std::size_t(optimizer == Optimizer::adamw))
        check_layout(job, alone, layouts[k], 2, number++ % 2 == 0);
  }
}

}  // namespace

TEST_CASE("degrees of three train what one rank trains") {
  check_all(for_three(false, 6),
            {product_of(1, 3, 1, 1), under_zero(product_of(3, 1, 1, 1), 3), product_of(1, 1, 3, 1),
             product_of(1, 1, 1, 3), under_zero(product_of(3, 3, 1, 1), 2),
             in_two_rounds(product_of(1, 1, 1, 3)), under_zero(product_of(1, 3, 3, 1), 3),
             product_of(1, 3, 1, 2)},
            12);
  check_all(
      for_three(true, 3),
      {experts_of(product_of(3, 1, 1, 1), 3), under_zero(experts_of(product_of(3, 1, 1, 1), 3), 3),
       experts_of(product_of(3, 3, 1, 1), 3), under_zero(experts_of(product_of(3, 1, 1, 3), 3), 2)},
      12);
}

TEST_CASE("recomputation changes no bit of experts, sequence parallelism and interleaved stages") {
  struct Way {
    ModelGraph model;
    Layout layout;
  };
  const ModelGraph mixture = parallel_mixture(true, 4), gpt2 = parallel_gpt2(4, 4);
  for (const Way& way : {Way{mixture, experts_of(product_of(2, 1, 1, 2), 2)},
                         Way{mixture, under_zero(experts_of(product_of(4, 1, 1, 1), 2), 3)},
                         Way{mixture, experts_of(product_of(2, 2, 1, 1), 2)},
                         Way{gpt2, under_zero(product_of(2, 2, 1, 1), 3)},
                         Way{gpt2, in_two_rounds(product_of(1, 2, 1, 2))},
                         Way{gpt2, under_zero(product_of(2, 1, 2, 1), 2)}}) {
    INFO(whole_text_of(way.layout));
    const auto job = layout_job(way.model, Optimizer::adamw);
    const TrainedLayout kept = train_layout(under(job, way.layout, 2));
    for (const Recompute recompute : {Recompute::full, Recompute::selective})
      CHECK(train_layout(under(job, recomputed(way.layout, recompute), 2)) == kept);
  }
}

TEST_CASE(
    "adapters under pipelines, ZeRO among tensor ranks and rings train what one rank trains") {
  check_all(parallel_lora(parallel_llama(2, 4), LoraTargets::all_linear),
            {product_of(1, 1, 1, 2), under_zero(product_of(2, 2, 1, 1), 2), product_of(1, 1, 2, 1),
             under_zero(product_of(2, 2, 1, 1), 3), under_zero(product_of(2, 1, 1, 2), 3),
             under_zero(product_of(1, 2, 2, 1), 1), in_two_rounds(product_of(1, 2, 1, 2)),
             under_zero(product_of(2, 1, 2, 1), 3)},
            8);
}

TEST_CASE("16 bits in products of layouts train what one rank trains in them, to roundings") {
  const auto losses_of = [](const PlannedWorkload& job) { return train_under(job, 6)[0].losses; };
  const auto check = [&](const ModelGraph& model, const std::vector<Layout>& layouts) {
    for (const Precision precision : {Precision::bf16, Precision::fp16}) {
      auto job = layout_job(model, Optimizer::sgd_momentum);
      job.precision = precision;
      const auto expected = losses_of(under(job, {}, 2));
      for (const Layout& layout : layouts) {
        INFO(whole_text_of(layout) << " " << to_text(precision));
        const auto losses = losses_of(under(job, layout, 2));
        REQUIRE(losses.size() == expected.size());
        for (std::size_t k = 0; k < losses.size(); ++k) {
          // Some eighty tensors rounded on the way in each of the steps so far.
          const double u = precision == Precision::bf16 ? 0x1p-8 : 0x1p-11;
          CHECK(losses[k] == Approx(expected[k]).epsilon(u * std::sqrt(80.0) * double(k + 1)));
        }
      }
    }
  };
  check(parallel_gpt2(4, 4),
        {product_of(1, 1, 2, 1), in_two_rounds(product_of(1, 1, 1, 2)),
         under_zero(product_of(2, 2, 1, 1), 3), under_zero(product_of(2, 1, 1, 2), 2)});
  check(parallel_bert(2), {under_zero(product_of(2, 1, 1, 1), 2), product_of(1, 2, 1, 2)});
  check(parallel_mixture(true, 2), {experts_of(product_of(2, 1, 1, 1), 2),
                                    under_zero(experts_of(product_of(2, 2, 1, 1), 2), 3)});
}
