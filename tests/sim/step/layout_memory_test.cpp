#include "sim/step/memory/layout_memory.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

#include "sim/model/zoo/zoo.h"

// Published breakdowns of memory.
using namespace reckon;

namespace {

constexpr double kImbalance = 0.1;
constexpr double kTokens = 2048, kHidden = 6144, kHeads = 64;

/// GPT with dropout, as Korthikanti et al. count it: 48 blocks of 6,144 with 64 heads, their 22B.
ModelGraph gpt(std::int64_t layers = 48) {
  TransformerDimensions d;
  d.layers = layers;
  d.hidden = std::int64_t(kHidden);
  d.heads = std::int64_t(kHeads);
  d.vocabulary = 51200;
  d.sequence_length = d.positions = std::int64_t(kTokens);
  d.dropout = 0.1;
  return make_transformer("gpt_22b", d).value();
}

ElementSizes half_precision() {
  return element_sizes(Precision::fp16, optimizer_cost(TrainableShapes{}, Optimizer::adamw), false);
}

/// Saved by one block, one sample, without the statistics that fused attention and LayerNorm keep
/// (4 bytes a token and head; 8 a token, twice).
double saved_by_block(const FoldedModel& model, const Layout& l, double statistics) {
  const auto states = block_states(model, l, half_precision(), kImbalance);
  for (std::size_t b = 0; b < states.size(); ++b)
    if (model.blocks()[b].attention) return states[b].saved.v - statistics;
  return 0;
}

ModelGraph large_gpt(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  TransformerDimensions d;
  d.layers = layers;
  d.hidden = hidden;
  d.heads = heads;
  d.vocabulary = 51200;
  d.sequence_length = d.positions = 2048;
  d.dropout = 0.1;
  return make_transformer("gpt", d).value();
}

double state_of_parameter(const FoldedModel& model, const Layout& l, double parameters) {
  const auto m = memory_of(model, l, half_precision(), kImbalance);
  return (m.parameters + m.gradients + m.optimizer).v / parameters;
}

}  // namespace

TEST_CASE("a block saves 34 s b h bytes, shared out as Korthikanti et al. say") {
  // [Korthikanti et al. 2022, eq. 1, 2, 4] without the 5 a s / h of attention scores, which a fused
  // kernel does not write: 34; 10 + 24 / t with tensor parallelism; 34 / t with sequence
  // parallelism too.
  const FoldedModel model(gpt(2));
  const double sh = kTokens * kHidden, attention = 4 * kTokens * kHeads, norms = 2 * 8 * kTokens;
  Layout l;
  CHECK(saved_by_block(model, l, attention + norms) == Approx(34 * sh));
  l.tensor = 8;
  CHECK(saved_by_block(model, l, attention / 8 + norms) == Approx((10 + 24.0 / 8) * sh));
  l.sequence_parallel = true;
  CHECK(saved_by_block(model, l, (attention + norms) / 8) == Approx(34.0 / 8 * sh));
  // Context parallelism shares out tokens like it.
  l.tensor = 1;
  l.context = 4;
  CHECK(saved_by_block(model, l, (attention + norms) / 4) == Approx(34.0 / 4 * sh));
  // Full recomputation keeps the block's input, 2 s b h [Sec. 5].
  l.context = 1;
  l.recompute = Recompute::full;
  CHECK(saved_by_block(model, l, 0) == Approx(2 * sh));
}

TEST_CASE("ZeRO's stages keep what the paper prints for 7.5 B parameters on 64 GPUs") {
  // [Rajbhandari et al. 2020, Fig. 1 and Table 1]: 120, 31.4, 16.6 and 1.9 GB.
  const ModelGraph graph = large_gpt(36, 4096, 32);
  const FoldedModel model(graph);
  const double parameters = double(graph.parameters());
  Layout l;
  l.data = 64;
  const double published[] = {120, 31.4, 16.6, 1.88};
  for (int stage = 0; stage <= 3; ++stage) {
    l.zero_stage = stage;
    CAPTURE(stage);
    CHECK(7.5 * state_of_parameter(model, l, parameters) ==
          Approx(published[stage]).epsilon(0.005));
  }
  // Table 1, 128 B parameters on 1,024 GPUs: 2,048, 513, 257 and 2 GB.
  l.data = 1024;
  const double larger[] = {2048, 513.5, 257.5, 2.0};
  for (int stage = 0; stage <= 3; ++stage) {
    l.zero_stage = stage;
    CHECK(128 * state_of_parameter(model, l, parameters) == Approx(larger[stage]).epsilon(0.005));
  }
}

TEST_CASE("a stage of 1F1B holds as many micro-batches as stages follow it, GPipe all") {
  Layout l;
  l.pipeline = 4;
  l.micro_batches = 16;
  for (int stage = 0; stage < 4; ++stage) CHECK(passes_in_flight(l, stage, 0) == 4 - stage);
  l.micro_batches = 2;
  CHECK(passes_in_flight(l, 0, 0) == 2);
  l.schedule = PipelineSchedule::gpipe;
  l.micro_batches = 16;
  CHECK(passes_in_flight(l, 3, 0) == 16);
}

TEST_CASE("an interleaved first stage keeps L (1 + (p - 1) / (p v)) layers") {
  // [Korthikanti et al. 2022, Sec. 4.2.3]: v parts of L / (p v) layers, p v + p - 1 passes.
  Layout l;
  l.pipeline = 8;
  l.micro_batches = 64;
  l.schedule = PipelineSchedule::interleaved;
  for (const int v : {2, 3, 12}) {
    l.interleave = v;
    std::int64_t passes = 0;
    for (int part = 0; part < v; ++part) passes += passes_in_flight(l, 0, part);
    CHECK(passes == 8 * v + 7);
    // The head is in the last part of the last stage, whose backward pass begins at once.
    CHECK(passes_in_flight(l, 7, v - 1) == 1);
  }
}

TEST_CASE("Korthikanti's models fit A100-80 with their techniques") {
  // [Korthikanti et al. 2022, Fig. 1, Table 3]: sequence parallelism and selective recomputation
  // fit 22B, 175B, 530B and 1T into 80 GB; Megatron keeps gradients in fp32 (18 bytes a parameter
  // beside our 16), which leaves room here.
  struct Published {
    std::int64_t layers, hidden, heads;
    int tensor, pipeline, interleave, micro_batch;
  };
  const Published rows[] = {{48, 6144, 64, 8, 1, 1, 4},
                            {96, 12288, 96, 8, 8, 3, 1},
                            {105, 20480, 128, 8, 35, 3, 1},
                            {128, 25600, 160, 8, 64, 1, 1}};
  for (const Published& p : rows) {
    CAPTURE(p.hidden);
    const FoldedModel model(large_gpt(p.layers, p.hidden, p.heads));
    Layout l;
    l.tensor = p.tensor;
    l.pipeline = p.pipeline;
    l.interleave = p.interleave;
    if (p.interleave > 1) l.schedule = PipelineSchedule::interleaved;
    l.micro_batch = p.micro_batch;
    l.micro_batches = 280;
    l.sequence_parallel = true;
    l.recompute = Recompute::selective;
    ElementSizes size = half_precision();
    size.gradient = Bytes{4};
    CHECK(memory_of(model, l, size, kImbalance).required() < 80.0_GiB);
    // "each ... requires more than 80 GB" without them: their attention is not fused.
    l.sequence_parallel = false;
    const double scores = 5.0 * double(p.heads) * 2048 * 2048 / p.tensor * p.micro_batch;
    const double held =
        double(p.layers) / p.pipeline *
        (p.interleave > 1 ? p.pipeline * (1 + (p.pipeline - 1.0) / (p.pipeline * p.interleave))
                          : p.pipeline);
    CHECK(memory_of(model, l, size, kImbalance).required().v + scores * held > 80e9);
  }
}

TEST_CASE("full fine-tuning of Llama 2 7B needs ZeRO to fit on 8 x A100-40") {
  // 16 bytes of each of 6.74 B parameters are 108 GB; ZeRO-3 over 8 is 13.5 GB.
  const FoldedModel model(zoo_model("llama2_7b", 2048).value());
  Layout l;
  l.data = 8;
  l.recompute = Recompute::full;
  const auto needs = [&](int stage) {
    l.zero_stage = stage;
    return memory_of(model, l, half_precision(), kImbalance).required();
  };
  CHECK(needs(0) > 100.0_GB);
  CHECK(needs(3) < 40.0_GB);
  CHECK(needs(3) < needs(2));
  CHECK(needs(2) < needs(1));
  CHECK(needs(1) < needs(0));
  l.zero_stage = 3;
  l.recompute = Recompute::none;
  l.micro_batch = 8;
  CHECK(memory_of(model, l, half_precision(), kImbalance).required() > 80.0_GB);
}

TEST_CASE("more ranks never need more memory of one") {
  const FoldedModel gpt2(zoo_model("gpt2_small").value());
  CHECK(rc::check([&] {
    Layout l;
    l.data = 1 << *rc::gen::inRange(0, 4);
    l.zero_stage = *rc::gen::inRange(0, 4);
    l.micro_batch = *rc::gen::inRange(1, 9);
    l.micro_batches = 12;
    l.recompute = *rc::gen::element(Recompute::none, Recompute::selective, Recompute::full);
    const auto required = [&] {
      return memory_of(gpt2, l, half_precision(), kImbalance).required();
    };
    const Bytes before = required();
    Layout more = l;
    more.tensor = 4;
    more.sequence_parallel = *rc::gen::arbitrary<bool>();
    RC_ASSERT(memory_of(gpt2, more, half_precision(), kImbalance).required() < before);
    more = l;
    more.context = 2;
    RC_ASSERT(memory_of(gpt2, more, half_precision(), kImbalance).required() <= before);
    more = l;
    more.data *= 2;
    if (l.data > 1)
      RC_ASSERT(memory_of(gpt2, more, half_precision(), kImbalance).required() <= before);
    more = l;
    ++more.micro_batch;
    RC_ASSERT(memory_of(gpt2, more, half_precision(), kImbalance).required() > before);
  }));
}

TEST_CASE("experts are shared out over expert ranks, and their state over fewer replicas") {
  const FoldedModel moe(zoo_model("mixtral_8x7b", 4096).value());
  Layout l;
  l.data = 8;
  const auto state = [&] {
    const auto m = memory_of(moe, l, half_precision(), kImbalance);
    return (m.parameters + m.gradients + m.optimizer).v;
  };
  // 46.7 B parameters, of which 32 x 8 x 3 x 4096 x 14336 = 45.1 B are experts'.
  const double experts = 32.0 * 8 * 3 * 4096 * 14336, all = 46.7e9;
  CHECK(state() == Approx(16 * all).epsilon(0.002));
  l.expert = 8;
  CHECK(state() == Approx(16 * (all - experts + experts / 8)).epsilon(0.01));
  // Full sharding leaves every rank an eighth of everything either way.
  l.zero_stage = 3;
  CHECK(state() == Approx(16 * all / 8).epsilon(0.002));
}
