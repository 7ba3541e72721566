#include <catch2/catch.hpp>

#include <algorithm>

#include "sim/model/zoo/language.h"
#include "support/zoo.h"

// Speech, translation, segmentation, generation and records: the layers that the references list,
// counted by hand, where catalogs/models.csv has no published number.
using namespace reckon;
using test::layer;
using test::zoo;

namespace {

/// torch.nn.LSTM (four gates) and GRU (three), both biases.
std::int64_t recurrent(std::int64_t in, std::int64_t hidden, std::int64_t gates = 4) {
  return gates * hidden * (in + hidden + 2);
}

std::int64_t parameters_under(const ModelGraph& net, const std::string& prefix) {
  std::int64_t sum = 0;
  for (const Layer& l : net.layers())
    if (l.name.starts_with(prefix)) sum += net.counts()[index(l.id)].parameters;
  return sum;
}

const LayerCount& layer_count_of(const ModelGraph& net, const std::string& name) {
  return net.counts()[index(layer(net, name).id)];
}

}  // namespace

TEST_CASE("GNMT has the parameters of the reference's layers") {
  // encoder.py and decoder.py: hidden 1,024, vocabulary 32,320, one embedding. Encoder: two
  // directions, then 2,048 -> 1,024, then twice 1,024. Decoder: 1,024, then three of 2,048.
  // attention.py: linear_q, linear_k, linear_att; not here its norm's scalar and bias.
  const std::int64_t h = 1024, v = 32320;
  const std::int64_t encoder = 2 * recurrent(h, h) + recurrent(2 * h, h) + 2 * recurrent(h, h);
  const std::int64_t decoder = recurrent(h, h) + 3 * recurrent(2 * h, h);
  const std::int64_t attention = 2 * h * h + h;
  const ModelGraph net = zoo("gnmt");
  CHECK(net.parameters() == v * h + encoder + decoder + attention + (h + 1) * v);
  CHECK(layer(net, "decoder.att_rnn.attn.sum_qk").output == Shape{30 * 30, h});
  CHECK(layer(net, "decoder.att_rnn.attn.context").output == Shape{30, h});
  // The target's words are looked up in the source's table.
  CHECK(layer_count_of(net, "decoder.embedder").parameters == 0);
}

TEST_CASE("Transformer-XL has the size that its paper prints for its base model") {
  // [Dai 2019, table 1, "Standard"]: 151M; kimiyoung/transformer-xl:pytorch/run_wt103_base.sh.
  const TransformerXlShape paper{.layers = 16,
                                 .hidden = 410,
                                 .heads = 10,
                                 .head_width = 41,
                                 .feed_forward = 2100,
                                 .cutoffs = {19997, 39997, 199997, 267735},
                                 .dropout = 0.1,
                                 .segment = 150};
  const auto net = make_transformer_xl("transformer_xl_paper", paper);
  REQUIRE(net.has_value());
  CHECK(double(net->parameters()) == Approx(151e6).margin(0.5e6));
  // "#params" of lambdal/deeplearning-benchmark:pytorch/results/2xA100_80GB_PCIe, with the two
  // biases of the heads' queries that all layers share.
  CHECK(zoo("transformer_xl_base_softmax").parameters() + 2 * 512 == 191'948'759);
  CHECK(zoo("transformer_xl_large_softmax").parameters() + 2 * 1024 == 519'963'095);
}

TEST_CASE("Transformer-XL attends to as many tokens before its segment, and to distances") {
  const ModelGraph net = zoo("transformer_xl_base");
  const std::int64_t T = 192, D = 512;
  CHECK(layer(net, "layers.0.dec_attn.cat.tokens").output == Shape{2 * T, D});
  CHECK(layer(net, "layers.0.dec_attn").output == Shape{T, D});
  // Scores, scores of distances and values: three products of T x 2T over 8 heads of 64.
  CHECK(layer_count_of(net, "layers.0.dec_attn").matrix.v == 3.0 * 2 * T * 2 * T * D);
  // A layer: q, k, v, r and output of D x D, 2,048 wide feed-forward, two norms.
  CHECK(parameters_under(net, "layers.0.") == 5 * D * D + 2 * D * 2048 + 2048 + D + 4 * D);
  // Most words are among the first 19,997; the others share the rest of the softmax.
  CHECK(layer(net, "crit.0.logits").output == Shape{T, 20000});
  CHECK(layer(net, "crit.2.logits").output == Shape{5, 160000});
  CHECK(layer_count_of(net, "crit.2.logits").parameters ==
        160000);  // the matrix is the embedding's
  CHECK(layer(zoo("transformer_xl_base_softmax"), "crit.0.logits").output == Shape{T, 267735});
}

TEST_CASE("a Transformer-XL segment is long enough to hold a word of each part") {
  CHECK(zoo("transformer_xl_base", 1).sequence_length() == 8);
  CHECK(zoo("transformer_xl_base", 1).parameters() == zoo("transformer_xl_base").parameters());
}

TEST_CASE("ELECTRA's discriminator is BERT-base without its pooler") {
  // huggingface.co/google/electra-base-discriminator: 108,891,648, BERT-base's 109,482,240 without
  // 768 * 768 + 768. Its embeddings' tables stand at the generator, which is built first.
  const ModelGraph net = zoo("electra_base");
  const std::int64_t tables = (30522 + 2) * 768;
  CHECK(parameters_under(net, "discriminator.") + tables == 109'482'240 - 590'592);
  // The generator's encoder is a third as wide.
  CHECK(layer(net, "generator.encoder.layer.0.attention").output == Shape{512, 256});
}

TEST_CASE("BART writes as many words as it is asked to, a summary fewer than it reads") {
  const ModelGraph pre_training = zoo("bart_large", 128), summary = zoo("bart_large_xsum");
  CHECK(layer(pre_training, "lm_head").output == Shape{128, 50265});
  CHECK(layer(summary, "lm_head").output == Shape{60, 50265});
  CHECK(layer(summary, "model.decoder.layers.0.encoder_attn").output == Shape{60, 1024});
  CHECK(pre_training.parameters() == summary.parameters());
}

TEST_CASE("DeepSpeech2's second convolution has the work of the reference's, which keeps time") {
  // model.py: (32, 41, T/2) outputs of 32 * 21 * 11 products each.
  const ModelGraph net = zoo("deepspeech2");
  CHECK(net.sequence_length() == 500);
  CHECK(layer_count_of(net, "conv.3").matrix.v == 2.0 * 32 * 21 * 11 * 32 * 41 * 250);
  CHECK(layer(net, "conv.times").output == Shape{250, 32 * 41});
  // Five bidirectional GRUs, 800 wide, the first over 1,312 features; norms between them.
  std::int64_t rnns = 2 * recurrent(1312, 800, 3) + 4 * (2 * recurrent(800, 800, 3) + 2 * 800);
  CHECK(parameters_under(net, "rnns.") == rnns);
}

TEST_CASE("sound halves its frames once in Jasper and QuartzNet") {
  for (const char* name : {"jasper", "quartznet"}) {
    CAPTURE(name);
    const ModelGraph net = zoo(name, 1000);
    CHECK(net.sequence_length() == 1000);
    CHECK(layer(net, "decoder.frames").output == Shape{500, 29});
  }
  // Jasper's tenth block adds the inputs of all ten; QuartzNet's blocks add their own.
  CHECK(layer(zoo("jasper"), "encoder.layers.10.add").inputs.size() == 11);
  CHECK(layer(zoo("quartznet"), "encoder.layers.10.add").inputs.size() == 2);
  CHECK(layer_count_of(zoo("quartznet"), "encoder.layers.1.conv.0.depthwise").depthwise);
}

TEST_CASE("nnU-Net plans the network of MLPerf's 3D U-Net for four channels and classes") {
  // The first convolution has three channels more, the last one class more.
  CHECK(zoo("nnunet_3d").parameters() - zoo("unet3d_kits19").parameters() == 27 * 32 * 3 + 33);
  // BraTS: three classes from a last kernel of 3^3.
  CHECK(zoo("unet3d_brats").parameters() - zoo("unet3d_kits19").parameters() ==
        27 * 32 * 3 + 26 * 32 * 4 + 33);
  const auto pair = [](std::int64_t in, std::int64_t out) {
    return 9 * (in * out + out * out) + 4 * out;
  };
  const auto up = [&](std::int64_t in, std::int64_t out) {
    return 4 * in * out + out + pair(2 * out, out);
  };
  CHECK(zoo("nnunet_2d").parameters() == pair(4, 32) + pair(32, 64) + pair(64, 128) +
                                             pair(128, 256) + pair(256, 512) + pair(512, 512) +
                                             up(512, 512) + up(512, 256) + up(256, 128) +
                                             up(128, 64) + up(64, 32) + 32 * 4 + 4);
  CHECK(layer(zoo("nnunet_2d"), "bottleneck.conv2").output == Shape{512, 6, 5});
}

TEST_CASE("V-Net has the parameters of the reference's layers") {
  // layers.py: convolutions of 3^3 with biases and batch norms, poolings and transposed ones of
  // 2^3, residual blocks of three.
  const auto conv = [](std::int64_t in, std::int64_t out, std::int64_t kernel) {
    return in * out * kernel * kernel * kernel + out + 2 * out;
  };
  std::int64_t expected = conv(1, 16, 3);
  for (const std::int64_t c : {16, 32, 64})
    expected += conv(c, 2 * c, 2) + 3 * conv(2 * c, 2 * c, 3);
  // On the way up 128 channels become 64 and, beside the 64 of the way down, 128 again.
  expected += conv(128, 64, 2) + 3 * conv(128, 128, 3) + conv(128, 32, 2) + 3 * conv(64, 64, 3);
  expected += conv(64, 16, 2) + 16 * 3 * 27 + 3;
  CHECK(zoo("vnet").parameters() == expected);
}

TEST_CASE("WideSE squeezes what a block expands to, not what it gets") {
  // B0's sixteen blocks by their input channels and expansion; a squeeze to s: (2 c + 1) s + c.
  struct Blocks {
    std::int64_t in, expand;
    int count;
  };
  std::int64_t more = 0;
  for (const Blocks& b : {Blocks{32, 1, 1}, Blocks{16, 6, 1}, Blocks{24, 6, 2}, Blocks{40, 6, 2},
                          Blocks{80, 6, 3}, Blocks{112, 6, 3}, Blocks{192, 6, 4}})
    more += b.count * (2 * b.in * b.expand + 1) * (b.in * b.expand / 4 - b.in / 4);
  CHECK(zoo("efficientnet_widese_b0").parameters() - zoo("efficientnet_b0").parameters() == more);
}

TEST_CASE("Stable Diffusion's tokens become the image that they were made of") {
  const ModelGraph net = zoo("stable_diffusion_v2");
  CHECK(net.sample_unit() == SampleUnit::image);
  CHECK(layer(net, "input_blocks.1.1.tokens").output == Shape{64 * 64, 320});
  CHECK(layer(net, "input_blocks.1.1.image").output == Shape{320, 64, 64});
  CHECK(layer(net, "input_blocks.1.1.transformer_blocks.0.attn2.to_k").output == Shape{77, 320});
  CHECK(layer(net, "middle_block.2.add").output == Shape{1280, 8, 8});
  // Nothing before the text is trained: its projections have a gradient of their weights alone.
  const LayerCount& text = layer_count_of(net, "middle_block.1.transformer_blocks.0.attn2.to_k");
  CHECK(text.backward.v == text.forward.v);
}

TEST_CASE(
    "a GAN's discriminator is one network that sees real images, made ones and the generator") {
  // gen_models/resnet_32.py: 128 -> 4 x 4 x 256, three blocks of two norms, two 3x3 and a 1x1 of
  // 256 channels, a norm, 3x3 to 3 channels.
  const std::int64_t block = 2 * 512 + 2 * (256 * 256 * 9 + 256) + 256 * 256 + 256;
  const std::int64_t generator = 129 * 4096 + 3 * block + 512 + 256 * 3 * 9 + 3;
  // dis_models/snresnet_32.py: a first block of 3 channels, one with a 1x1, two without; 128 -> 1.
  const std::int64_t conv = 128 * 128 * 9 + 128, point = 128 * 128 + 128;
  const std::int64_t first = 3 * 128 * 9 + 128 + conv + 3 * 128 + 128;
  const std::int64_t discriminator = first + (2 * conv + point) + 4 * conv + 128;
  const ModelGraph net = zoo("sngan_cifar10");
  CHECK(net.parameters() == generator + discriminator);
  CHECK(parameters_under(net, "fake.") == 0);
  CHECK(parameters_under(net, "generator.") == 0);
  CHECK(layer(net, "gen.tanh").output == Shape{3, 32, 32});
  CHECK(layer(net, "real.dis.block4.add").output == Shape{128, 8, 8});
  // The images of the data have no gradient, those of the generator have.
  const LayerCount& real = layer_count_of(net, "real.dis.block1.c1");
  const LayerCount& made = layer_count_of(net, "generator.dis.block1.c1");
  CHECK(real.backward.v == real.forward.v);
  CHECK(made.backward.v == 2 * made.forward.v);
}

TEST_CASE("the autoencoder for films reads a user's films and ranks all") {
  // vae.py: I -> 600 -> 2 * 200, 200 -> 600 -> I; the first layer here without its bias.
  const std::int64_t films = 20108;
  const ModelGraph net = zoo("vae_cf");
  CHECK(net.parameters() == films * 600 + 601 * 400 + 201 * 600 + 601 * films);
  CHECK(layer(net, "latent").output == Shape{200});
  CHECK(layer(net, "decoder_films").output == Shape{films});
}
