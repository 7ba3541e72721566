#include <catch2/catch.hpp>

#include "support/zoo.h"

using namespace reckon;
using test::layer;
using test::zoo;

namespace {

std::int64_t conv(std::int64_t in, std::int64_t out, std::int64_t kernel, bool bias) {
  return in * out * kernel * kernel + (bias ? out : 0);
}

}  // namespace

TEST_CASE("RetinaNet has the published multiply-adds of its convolutions at 800 x 800") {
  // torchvision, meta["_ops"] of retinanet_resnet50_fpn: 151.54 GMACs.
  CHECK(zoo("retinanet").forward_macs() == Approx(151.54e9).margin(0.005e9));
}

TEST_CASE("MLPerf's RetinaNet differs from torchvision's by its backbone and its classes") {
  // ResNeXt-50 32x4d has 25,028,904 - 25,557,032 = -528,128 parameters more, 15,104 of them in
  // batch norms, which are frozen (resnext50's are 68,224, resnet50's 53,120); 264 classes for 91
  // at nine anchors are 9 * 173 more outputs of 256 * 9 weights and a bias.
  const std::int64_t classes = 9 * 173 * (256 * 9 + 1);
  CHECK(zoo("retinanet_mlperf").parameters() - zoo("retinanet").parameters() == classes - 528'128);
}

TEST_CASE("A detector's stem, first stage and batch norms are frozen and the rest is trained") {
  const ModelGraph net = zoo("retinanet");
  // conv1 (3 x 64 x 49) and layer1's convolutions: 64*64 + 64*64*9 + 64*256 + 64*256 and twice
  // 256*64 + 64*64*9 + 64*256.
  const std::int64_t first = 3 * 64 * 49 + (4096 + 36864 + 2 * 16384) + 2 * (2 * 16384 + 36864);
  const std::int64_t norms = 53'120;
  CHECK(net.parameters() - net.trainable_parameters() == first + norms);
  CHECK_FALSE(net.counts()[index(layer(net, "layer1.2.conv3").id)].has_backward);
  CHECK(net.counts()[index(layer(net, "layer2.0.conv1").id)].has_backward);
}

TEST_CASE("RetinaNet's levels share the kernels of their heads") {
  const ModelGraph net = zoo("retinanet");
  CHECK(layer(net, "fpn.layer_blocks.0").output == Shape{256, 100, 100});
  CHECK(layer(net, "fpn.extra_blocks.p7").output == Shape{256, 7, 7});
  const Layer& first = layer(net, "head.regression_head.conv.0.0");
  const Layer& last = layer(net, "head.regression_head.conv.0.4");
  CHECK(last.tied_to == first.id);
  CHECK(net.counts()[index(first.id)].parameters == conv(256, 256, 3, true));
  CHECK(net.counts()[index(last.id)].parameters == 0);
}

TEST_CASE("Mask R-CNN samples its regions from the pyramid") {
  const ModelGraph net = zoo("mask_rcnn_mlperf");
  CHECK(layer(net, "fpn.layer_blocks.0").output == Shape{256, 200, 272});
  CHECK(layer(net, "fpn.pool").output == Shape{256, 13, 17});
  CHECK(layer(net, "box_roi_pool.tokens").output == Shape{512, 256 * 7 * 7});
  CHECK(layer(net, "mask_predictor.mask_fcn_logits").output == Shape{81, 128 * 28, 28});
}

TEST_CASE("SSD300 on ResNet-34 has the parameters of the reference's layers") {
  // ssd300.py: ResNet-34 (21,797,672) without its last stage (13,114,368) and classifier (513,000).
  std::int64_t expected = 21'797'672 - 13'114'368 - 513'000;
  const std::int64_t in[] = {256, 512, 512, 256, 256}, inner[] = {256, 256, 128, 128, 128},
                     out[] = {512, 512, 256, 256, 256};
  for (int i = 0; i < 5; ++i)
    expected += conv(in[i], inner[i], 1, true) + conv(inner[i], out[i], 3, true);
  const std::int64_t channels[] = {256, 512, 512, 256, 256, 256}, boxes[] = {4, 6, 6, 6, 4, 4};
  for (int i = 0; i < 6; ++i) expected += conv(channels[i], boxes[i] * (4 + 81), 3, true);
  const ModelGraph net = zoo("ssd300_resnet34");
  CHECK(net.parameters() == expected);

  // 8,732 boxes [Liu 2016, section 3.1].
  std::int64_t labelled = 0;
  for (int i = 0; i < 6; ++i)
    labelled += layer(net, "conf." + std::to_string(i) + ".boxes").output.front();
  CHECK(labelled == 8732);
}

TEST_CASE("The 3D U-Net has the parameters of the reference's layers") {
  // unet3d.py: pairs of 3^3 convolutions without biases, each with an instance norm of two numbers
  // a channel; 2^3 transposed ones with biases; 1^3 to three classes.
  const auto pair = [](std::int64_t in, std::int64_t out) {
    return 27 * (in * out + out * out) + 4 * out;
  };
  const auto up = [&](std::int64_t in, std::int64_t out) {
    return 8 * in * out + out + pair(2 * out, out);
  };
  const std::int64_t expected = pair(1, 32) + pair(32, 64) + pair(64, 128) + pair(128, 256) +
                                pair(256, 320) + pair(320, 320) + up(320, 320) + up(320, 256) +
                                up(256, 128) + up(128, 64) + up(64, 32) + 32 * 3 + 3;
  const ModelGraph net = zoo("unet3d_kits19");
  CHECK(net.parameters() == expected);
  CHECK(layer(net, "bottleneck.conv2").output == Shape{320, 4, 4, 4});
  CHECK(layer(net, "upsample.4.concat").output == Shape{64, 128, 128, 128});
}

TEST_CASE("The RNN transducer has the parameters of the reference's layers") {
  // model.py and baseline_v3-1023sp.yaml; an LSTM of torch: 4 h (in + h + 2).
  const auto lstm = [](std::int64_t in, std::int64_t h) { return 4 * h * (in + h + 2); };
  const auto linear = [](std::int64_t in, std::int64_t out) { return (in + 1) * out; };
  const std::int64_t encoder = lstm(240, 1024) + 3 * lstm(1024, 1024) + lstm(2048, 1024);
  const std::int64_t prediction = 1023 * 512 + 2 * lstm(512, 512);
  const std::int64_t joint = linear(1024, 512) + linear(512, 512) + linear(512, 1024);
  const ModelGraph net = zoo("rnnt");
  CHECK(net.parameters() == encoder + prediction + joint);
  CHECK(net.sequence_length() == 410);
  CHECK(layer(net, "encoder.stack_time").output == Shape{205, 2048});
  CHECK(layer(net, "joint").output == Shape{205 * 51, 512});
  // Twice the sound has twice the text: four times the pairs.
  CHECK(layer(zoo("rnnt", 820), "joint").output == Shape{410 * 101, 512});
}

TEST_CASE("A recurrence's steps wait for each other") {
  const ModelGraph net = zoo("rnnt");
  const LayerCount& pre = net.counts()[index(layer(net, "encoder.pre_rnn.0").id)];
  CHECK(pre.steps == 410);
  // 2 * 4 h * h a step, and 4 for each element of the gates.
  CHECK(pre.forward.v == 410.0 * (2 * 4 * 1024.0 * 1024 + 4 * 4 * 1024));
  CHECK(net.counts()[index(layer(net, "encoder.pre_rnn.0.gates").id)].steps == 1);
}

TEST_CASE("YOLOv3 has the published operations") {
  // pjreddie.com/darknet/yolo: 65.86 billion for YOLOv3-416, two a multiply-add.
  CHECK(2 * zoo("yolov3").forward_macs() == Approx(65.86e9).epsilon(0.005));
}

TEST_CASE("NeuMF and the LSTM over words have the parameters of their references' layers") {
  // neumf.py on MovieLens 20M: two tables of 64 and two of 128 for 138,493 users and 26,744 films.
  const std::int64_t tables = (138'493 + 26'744) * (64 + 128);
  const std::int64_t layers = 257 * 256 + 257 * 128 + 129 * 64 + 129;
  CHECK(zoo("ncf").parameters() == tables + layers);
  // adaptdl's model.py on MovieLens 1M, 32 factors, three layers.
  const std::int64_t small = 257 * 128 + 129 * 64 + 65 * 32 + 65;
  CHECK(zoo("ncf_ml1m").parameters() == (6'040 + 3'706) * (32 + 128) + small);
  // word_language_model: embedding, two LSTMs of torch (4 h (in + h + 2)), decoder.
  const std::int64_t lstms = 2 * 4 * 200 * (200 + 200 + 2);
  CHECK(zoo("lstm_lm_wikitext2").parameters() == 33'278 * 200 + lstms + 33'278 * 201);
}
