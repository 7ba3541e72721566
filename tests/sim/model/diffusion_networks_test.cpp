#include <catch2/catch.hpp>

#include "sim/model/blocks/networks.h"
#include "sim/model/zoo/zoo.h"

using namespace reckon;

TEST_CASE("DiT has the parameters of its reference, its multiply-adds those of the paper") {
  // facebookresearch/DiT:models.py, counted by hand: a block 12 D D + 10 D + 6 (D D + D) (attention
  // with biases, MLP of 4 D, modulation), patches, table of positions, time step, classes, last
  // layer.
  const auto by_hand = [](std::int64_t layers, std::int64_t d) {
    const std::int64_t block = 4 * (d * d + d) + 8 * d * d + 5 * d + 6 * (d * d + d);
    const std::int64_t rest = (16 * d + d) + 256 * d + (256 * d + d + d * d + d) + 1001 * d +
                              2 * (d * d + d) + (32 * d + 32);
    return layers * block + rest;
  };
  CHECK(zoo_model("dit_xl_2")->parameters() == by_hand(28, 1152));
  CHECK(zoo_model("dit_b_2")->parameters() == by_hand(12, 768));
  // Table 4 of the paper prints 675 M parameters and 118.64 Gflops, which are multiply-adds, of
  // 256 x 256; attention's own products are among them.
  const ModelGraph xl = zoo_model("dit_xl_2").value();
  CHECK(double(xl.parameters()) == Approx(675e6).epsilon(0.001));
  CHECK(xl.model_flops().v / 3 / 2 == Approx(118.64e9).epsilon(0.01));
  // The table of sines and cosines is stored and not trained.
  CHECK(xl.parameters() - xl.trainable_parameters() == 256 * 1152);
}

TEST_CASE("FLUX's two streams attend jointly: each query sees image and text") {
  FluxTransformer small{.double_blocks = 1, .single_blocks = 1, .heads = 2, .head_width = 8};
  small.text_tokens = 32;
  const ModelGraph model = make_network("flux", small, 96).value();
  double scores = 0;
  for (const Layer& layer : model.layers())
    if (std::holds_alternative<Attention>(layer.op))
      scores += model.counts()[index(layer.id)].matrix.v / (2 * 2 * 8);
  // Two heads, 128 tokens with 128 in the double block and again in the single one.
  CHECK(scores == 2. * 2 * 128 * 128);
  CHECK(model.sample_unit() == SampleUnit::image);
}

TEST_CASE("EfficientDet-D0 has the parameters of its reference") {
  // efficientdet-pytorch's tf_efficientdet_d0, counted by hand: 3.88 M in its README, 3.9 M in
  // [Tan 2020, table 2].
  const std::int64_t backbone = 5'288'548 - 1'281'000 - (320 * 1280 + 2560);
  const auto resample = [](std::int64_t channels) { return channels * 64 + 64 + 128; };
  const std::int64_t inputs = resample(40) + 2 * resample(112) + 3 * resample(320);
  const std::int64_t node = 9 * 64 + 64 * 64 + 64 + 128;
  const std::int64_t cells = 3 * (8 * node + 5 * 2 + 3 * 3);
  const std::int64_t repeats = 3 * (9 * 64 + 64 * 64 + 64) + 3 * 5 * 128;
  const std::int64_t heads = 2 * repeats + 2 * 9 * 64 + 65 * (9 * 90 + 9 * 4);
  const ModelGraph d0 = zoo_model("efficientdet_d0").value();
  CHECK(d0.parameters() == backbone + inputs + cells + heads);
  CHECK(d0.parameters() == 3'880'067);
  // [Tan 2020, table 2]: 2.5 B multiply-adds.
  CHECK(d0.forward_macs() == Approx(2.5e9).epsilon(0.05));
}
