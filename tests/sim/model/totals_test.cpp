#include <catch2/catch.hpp>

#include "sim/model/zoo/vision/images.h"
#include "support/zoo.h"

// Totals of the zoo's networks against what is published of them.
using namespace reckon;
using test::zoo;

namespace {

/// Multiply-adds of all matrix products, attention's included, as torchvision counts "_ops".
double all_macs(const ModelGraph& net) { return net.model_flops().v / 6; }

}  // namespace

TEST_CASE("AlexNet and Inception v3 are torchvision's") {
  // torchvision/models/alexnet.py and inception.py, meta: num_params, _ops in GMACs. Inception's
  // are those of evaluation, without the auxiliary classifier.
  CHECK(zoo("alexnet").parameters() == 61'100'840);
  CHECK(zoo("alexnet").forward_macs() == Approx(0.714e9).margin(0.5e6));
  const ModelGraph inception = zoo("inception_v3");
  CHECK(inception.parameters() == 27'161'264);
  double auxiliary = 0;
  for (const Layer& layer : inception.layers()) {
    if (layer.group == "AuxLogits") auxiliary += inception.counts()[index(layer.id)].matrix.v / 2;
  }
  CHECK(inception.forward_macs() - auxiliary == Approx(5.713e9).margin(0.5e6));
}

TEST_CASE("EfficientNets have torchvision's parameters and multiply-adds") {
  // torchvision/models/efficientnet.py, meta: num_params and, at its crop size, _ops.
  struct Row {
    const char* name;
    EfficientNetShape shape;
    std::int64_t parameters;
    double gmacs;
  };
  const Row rows[] = {{"efficientnet_b0", {1.0, 1.0, 224}, 5'288'548, 0.386},
                      {"efficientnet_b1", {1.0, 1.1, 240}, 7'794'184, 0.687},
                      {"efficientnet_b2", {1.1, 1.2, 288}, 9'109'994, 1.088},
                      {"efficientnet_b3", {1.2, 1.4, 300}, 12'233'232, 1.827},
                      {"efficientnet_b4", {1.4, 1.8, 380}, 19'341'616, 4.394},
                      {"efficientnet_b5", {1.6, 2.2, 456}, 30'389'784, 10.266}};
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(zoo(row.name).parameters() == row.parameters);
    const Expected<ModelGraph> at_crop = make_efficientnet(row.name, row.shape);
    REQUIRE(at_crop.has_value());
    CHECK(at_crop->forward_macs() == Approx(row.gmacs * 1e9).margin(0.5e6));
  }
  // The paper's table 2 prints 1.0 for B2 at its own 260 pixels.
  CHECK(zoo("efficientnet_b2").forward_macs() == Approx(1.0e9).margin(0.15e9));
}

TEST_CASE("DenseNets and MobileNet v2 have torchvision's parameters and multiply-adds") {
  // torchvision/models/densenet.py and mobilenetv2.py, meta: num_params, _ops.
  struct Row {
    const char* name;
    std::int64_t parameters;
    double gmacs;
  };
  for (const Row& row :
       {Row{"densenet121", 7'978'856, 2.834}, Row{"densenet161", 28'681'000, 7.728},
        Row{"densenet201", 20'013'928, 4.291}, Row{"mobilenet_v2", 3'504'872, 0.301}}) {
    CAPTURE(row.name);
    CHECK(zoo(row.name).parameters() == row.parameters);
    CHECK(zoo(row.name).forward_macs() == Approx(row.gmacs * 1e9).margin(0.6e6));
  }
}

TEST_CASE("ConvNeXts have torchvision's multiply-adds, and its parameters but the blocks' scales") {
  // torchvision/models/convnext.py, meta: num_params, _ops; a scale a channel of each block.
  struct Row {
    const char* name;
    std::int64_t parameters, first;
    std::int64_t third_stage;  // blocks; the others have three
    double gmacs;
  };
  for (const Row& row : {Row{"convnext_tiny", 28'589'128, 96, 9, 4.456},
                         Row{"convnext_small", 50'223'688, 96, 27, 8.684},
                         Row{"convnext_base", 88'591'464, 128, 27, 15.355},
                         Row{"convnext_large", 197'767'336, 192, 27, 34.361}}) {
    CAPTURE(row.name);
    const std::int64_t scales = row.first * (3 + 3 * 2 + row.third_stage * 4 + 3 * 8);
    CHECK(zoo(row.name).parameters() + scales == row.parameters);
    CHECK(zoo(row.name).forward_macs() == Approx(row.gmacs * 1e9).margin(0.6e6));
  }
}

TEST_CASE("vision transformers have torchvision's parameters and multiply-adds") {
  // torchvision/models/vision_transformer.py, meta: num_params, _ops; H/14 at 224 pixels is
  // IMAGENET1K_SWAG_LINEAR_V1.
  struct Row {
    const char* name;
    std::int64_t parameters;
    double gmacs;
  };
  for (const Row& row : {Row{"vit_b_16", 86'567'656, 17.564}, Row{"vit_b_32", 88'224'232, 4.409},
                         Row{"vit_l_16", 304'326'632, 61.555}, Row{"vit_l_32", 306'535'400, 15.378},
                         Row{"vit_h_14", 632'045'800, 167.295}}) {
    CAPTURE(row.name);
    CHECK(zoo(row.name).parameters() == row.parameters);
    CHECK(all_macs(zoo(row.name)) == Approx(row.gmacs * 1e9).margin(0.5e6));
    CHECK(zoo(row.name).sample_unit() == SampleUnit::image);
  }
}

TEST_CASE("GPT-3 has the FLOPs of its paper") {
  // [Brown 2020, table D.1]: 6 FLOPs a parameter and token, 3.14e23 for 300 billion tokens, without
  // attention's own products.
  CHECK(zoo("gpt3_175b").model_flops().v / 2048 * 300e9 == Approx(3.14e23).epsilon(0.04));
}

TEST_CASE("a mixture of experts meets a token with few of its parameters") {
  // huggingface.co/mistral-community/Mixtral-8x22B-v0.1, discussion 6, without 6 of 8 experts in 56
  // layers: 39,152,031,744 by its own arithmetic from 140,620,634,112.
  CHECK(zoo("mixtral_8x22b").active_parameters() ==
        140'620'634'112 - std::int64_t{56} * 6 * 3 * 6144 * 16384);
  CHECK(zoo("mixtral_8x22b").active_parameters() == 39'152'031'744);
  // [Jiang 2024, section 1]: "13B active"; 12.9B at mistral.ai/news/mixtral-of-experts.
  CHECK(double(zoo("mixtral_8x7b").active_parameters()) == Approx(12.9e9).margin(0.05e9));
  // [Yang 2025, table 2]: 3B of 30B and 22B of 235B; the model cards: 3.3B and 22B.
  CHECK(double(zoo("qwen3_30b_a3b").active_parameters()) == Approx(3.3e9).margin(0.06e9));
  CHECK(double(zoo("qwen3_235b_a22b").active_parameters()) == Approx(22e9).margin(0.5e9));
  // [Yang 2024, table 1]: 14B of 57B; the model card: 57.41B.
  CHECK(double(zoo("qwen2_57b_a14b").parameters()) == Approx(57.41e9).margin(0.01e9));
  CHECK(double(zoo("qwen2_57b_a14b").active_parameters()) == Approx(14e9).margin(0.5e9));
  // A dense model is active as a whole.
  CHECK(zoo("llama3_8b").active_parameters() == zoo("llama3_8b").parameters());
}

TEST_CASE("model FLOPs of a mixture of experts follow the active parameters") {
  // (6 N + 12 L H Q T) T [Chowdhery 2022, appendix B], N the active ones that are multiplied: all
  // but the embedding and the norms. Mixtral-8x7B, 8,192 tokens.
  const ModelGraph net = zoo("mixtral_8x7b");
  const double T = 8192, L = 32, D = 4096, V = 32000;
  const double N = double(net.active_parameters()) - V * D - (2 * L + 1) * D;
  CHECK(net.model_flops().v == Approx((6 * N + 12 * L * D * T) * T).epsilon(1e-12));
}

TEST_CASE("Transformer-big has the paper's size") {
  // [Vaswani 2017, table 3]: 213 * 10^6. By hand, without the norms' 2 D: V D + 6 (4 D^2) + 6 (8
  // D^2) + 12 (2 D F + F + D), D = 1024, F = 4096, V = 37000; 12 + 18 norms.
  const std::int64_t D = 1024, F = 4096, V = 37000;
  const ModelGraph net = zoo("transformer_big");
  CHECK(net.parameters() ==
        V * D + 6 * 4 * D * D + 6 * 8 * D * D + 12 * (2 * D * F + F + D) + 30 * 2 * D);
  CHECK(double(net.parameters()) == Approx(213e6).epsilon(0.01));
}

TEST_CASE("DLRM's tables are MLPerf's") {
  // mlcommons/training:recommendation_v2/torchrec_dlrm/README.MD: 177,944,275 rows of 128 numbers
  // of 4 bytes are the 91.1 GB it prints. Dense part 13-512-256-128, top
  // 479-1024-1024-512-256-1: 2,368,897 by hand.
  const ModelGraph dlrm = zoo("dlrm_mlperf");
  CHECK(dlrm.parameters() == 177'944'275LL * 128 + 2'368'897);
  CHECK(double(dlrm.parameters()) * 4 == Approx(91.1e9).margin(0.05e9));
  CHECK(dlrm.sample_unit() == SampleUnit::record);
  // 2 * (weights of the perceptrons without 3,201 biases) + 2 * 27 * 27 * 128.
  const double biases = 512 + 256 + 128 + 1024 + 1024 + 512 + 256 + 1;
  CHECK(dlrm.forward_macs() == Approx(2'368'897 - biases + 27 * 27 * 128));

  // DCN v2: 204,184,588 rows; 214 ids a record.
  const ModelGraph dcn = zoo("dlrm_dcnv2_mlperf");
  std::int64_t rows = 0, ids = 0;
  for (const Layer& layer : dcn.layers()) {
    if (const EmbeddingBag* bag = std::get_if<EmbeddingBag>(&layer.op)) {
      rows += bag->rows;
      ids += bag->ids;
    }
  }
  CHECK(rows == 204'184'588);
  CHECK(ids == 214);
}

TEST_CASE("R-GAT has the parameters of its reference, also of relations that no sample reaches") {
  // mlcommons/training:graph_neural_network/rgnn.py: 11 GATConv a layer, each a matrix, two vectors
  // of attention and a bias; 512 -> 2,983.
  const ModelGraph rgat = zoo("rgat_mlperf");
  const auto layer = [](std::int64_t in) { return 11 * (in * 512 + 3 * 512); };
  CHECK(rgat.parameters() == layer(1024) + 2 * layer(512) + 512 * 2983 + 2983);
  CHECK(rgat.parameters() == 13'115'303);
  // At most every draw another node: 16 papers after a hop, 16 * 11 after two and so on.
  const std::int64_t papers = rgat.layers()[1].output.front();
  CHECK(papers > 16 * 11);
  CHECK(papers < 16 * 11 * 6 * 3);
}

TEST_CASE("AlphaGo Zero's towers count as its paper describes them") {
  // [Silver 2017, methods]: 3x3 convolutions of 256 filters, two a residual block; norms 2 * 256.
  // Policy: 1x1 of 2, norm, 722 -> 362. Value: 1x1 of 1, norm, 361 -> 256 -> 1.
  const std::int64_t heads = 512 + 4 + 722 * 362 + 362 + 256 + 2 + 361 * 256 + 256 + 257;
  const auto tower = [](std::int64_t residual) {
    return 17 * 256 * 9 + 512 + residual * 2 * (256 * 256 * 9 + 512);
  };
  CHECK(zoo("alphago_zero_20").parameters() == tower(19) + heads);
  CHECK(zoo("alphago_zero_40").parameters() == tower(39) + heads);
}

TEST_CASE("a perceptron for house prices has the parameters of its book") {
  // [Chollet 2017, section 3.6]: 13-64-64-1, model.summary(): 896 + 4,160 + 65.
  CHECK(zoo("mlp_boston_housing").parameters() == 5'121);
}
