#include "sim/model/zoo/zoo.h"

#include <catch2/catch.hpp>

#include <set>

#include "support/zoo.h"

using namespace reckon;
using test::layer;
using test::zoo;

namespace {

std::int64_t parameters_of(const ModelGraph& graph, std::string_view prefix) {
  std::int64_t sum = 0;
  for (const Layer& l : graph.layers()) {
    if (l.name.starts_with(prefix)) sum += graph.counts()[index(l.id)].parameters;
  }
  return sum;
}

}  // namespace

TEST_CASE("image networks have the published numbers of parameters") {
  // torchvision/models/resnet.py and vgg.py, meta["num_params"] of the weights. v1 and v1.5 differ
  // in strides only.
  CHECK(zoo("resnet18").parameters() == 11'689'512);
  CHECK(zoo("resnet34").parameters() == 21'797'672);
  CHECK(zoo("resnet50").parameters() == 25'557'032);
  CHECK(zoo("resnet50_v1_5").parameters() == 25'557'032);
  CHECK(zoo("resnet101").parameters() == 44'549'160);
  CHECK(zoo("resnet101_v1_5").parameters() == 44'549'160);
  CHECK(zoo("resnet152").parameters() == 60'192'808);
  CHECK(zoo("resnet152_v1_5").parameters() == 60'192'808);
  CHECK(zoo("vgg16").parameters() == 138'357'544);
  // keras/examples/mnist_mlp.py: 784*512+512 + 512*512+512 + 512*10+10.
  CHECK(zoo("mlp_mnist").parameters() == 669'706);
}

TEST_CASE("image networks have the published multiply-adds") {
  // torchvision, meta["_ops"] in GMACs, printed to three decimals: convolutions and linear layers.
  CHECK(zoo("resnet18").forward_macs() == Approx(1.814e9).margin(0.5e6));
  CHECK(zoo("resnet34").forward_macs() == Approx(3.664e9).margin(0.5e6));
  CHECK(zoo("resnet50_v1_5").forward_macs() == Approx(4.089e9).margin(0.5e6));
  CHECK(zoo("resnet101_v1_5").forward_macs() == Approx(7.801e9).margin(0.5e6));
  CHECK(zoo("resnet152_v1_5").forward_macs() == Approx(11.514e9).margin(0.5e6));
  CHECK(zoo("vgg16").forward_macs() == Approx(15.470e9).margin(0.5e6));
}

TEST_CASE("ResNet v1 has the multiply-adds of the paper") {
  // [He 2016, table 1] prints 3.8, 7.6 and 11.3 * 10^9; 3.86 is what its layers add up to (the
  // table cuts the digit off).
  CHECK(zoo("resnet50").forward_macs() == Approx(3.86e9).margin(0.005e9));
  CHECK(zoo("resnet101").forward_macs() == Approx(7.6e9).margin(0.05e9));
  CHECK(zoo("resnet152").forward_macs() == Approx(11.3e9).margin(0.05e9));
}

TEST_CASE("BERT's encoder with its pooler has the published parameters, the heads come on top") {
  // huggingface.co/google-bert: BertModel 109,482,240 and 335,141,888. BertForPreTraining adds, of
  // width D: dense D*D+D, norm 2D, output bias 30,522, next sentence 2D+2.
  const ModelGraph base = zoo("bert_base"), large = zoo("bert_large");
  CHECK(parameters_of(base, "bert.") == 109'482'240);
  CHECK(parameters_of(large, "bert.") == 335'141'888);
  CHECK(parameters_of(large, "cls.") == 1024 * 1024 + 1024 + 2 * 1024 + 30'522 + 2 * 1024 + 2);
  CHECK(large.parameters() == 336'226'108);
  CHECK(base.parameters() == 110'106'428);
}

TEST_CASE("MPT's dimensions give MPT's published parameters") {
  // mosaicml/llm-foundry scripts/train/benchmarking/README.md: 6,658,859,008 and 29,975,214,080
  // (sequences of 2,048, biases everywhere).
  TransformerDimensions d{.layers = 32,
                          .hidden = 4096,
                          .heads = 32,
                          .vocabulary = 50368,
                          .sequence_length = 2048,
                          .positions = 2048};
  CHECK(make_transformer("mpt-7b", d)->parameters() == 6'658'859'008);
  d.layers = 48;
  d.hidden = 7168;
  d.heads = 56;
  CHECK(make_transformer("mpt-30b", d)->parameters() == 29'975'214'080);
}

TEST_CASE("every name of the zoo is built, once, under its own name") {
  const std::vector<std::string> names = zoo_names();
  CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  for (const std::string& name : names) {
    const ModelGraph graph = zoo(name);
    CHECK(graph.name() == name);
    CHECK((graph.sample_unit() == SampleUnit::sequence) == zoo_takes_sequence_length(name));
    CHECK((zoo_longest_sequence(name) > 0) == zoo_takes_sequence_length(name));
  }
  CHECK_FALSE(zoo_model("resnet51").has_value());
}

TEST_CASE("a sequence length outside the model's range builds nothing") {
  CHECK(zoo("gpt2_small", 1024).sequence_length() == 1024);
  CHECK_FALSE(zoo_model("gpt2_small", 1025).has_value());
  CHECK_FALSE(zoo_model("gpt2_small", 0).has_value());
  CHECK_FALSE(zoo_model("llama2_7b", -1).has_value());
  CHECK(zoo("llama2_7b", 16384).sequence_length() == 16384);
  CHECK(zoo_longest_sequence("bert_large") == 512);
  CHECK(zoo_longest_sequence("resnet50") == 0);
}

TEST_CASE("ResNet-50 has the shapes of torchvision") {
  const ModelGraph v15 = zoo("resnet50_v1_5"), v1 = zoo("resnet50");
  CHECK(layer(v15, "conv1").output == Shape{64, 112, 112});
  CHECK(layer(v15, "maxpool").output == Shape{64, 56, 56});
  CHECK(layer(v15, "layer1.2.relu_2").output == Shape{256, 56, 56});
  CHECK(layer(v15, "layer4.2.relu_2").output == Shape{2048, 7, 7});
  CHECK(layer(v15, "avgpool").output == Shape{2048});
  CHECK(layer(v15, "fc").output == Shape{1000});
  // The one difference: where the image is halved.
  CHECK(layer(v15, "layer2.0.conv1").output == Shape{128, 56, 56});
  CHECK(layer(v1, "layer2.0.conv1").output == Shape{128, 28, 28});
  CHECK(layer(v15, "layer2.0.conv2").output == layer(v1, "layer2.0.conv2").output);
  CHECK(layer(v15, "layer2.0.conv2").group == "layer2");
}

TEST_CASE("the residual sum of a bottleneck takes the last norm and the shortcut") {
  const ModelGraph net = zoo("resnet50_v1_5");
  const auto input_names = [&](std::string_view name) {
    std::vector<std::string> names;
    for (LayerId id : layer(net, name).inputs) names.push_back(net.layers()[index(id)].name);
    return names;
  };
  CHECK(input_names("layer2.0.add") ==
        std::vector<std::string>{"layer2.0.bn3", "layer2.0.downsample.1"});
  CHECK(input_names("layer2.1.add") == std::vector<std::string>{"layer2.1.bn3", "layer2.0.relu_2"});
}

TEST_CASE("Llama-2-70B groups its key and value heads") {
  const ModelGraph net = zoo("llama2_70b", 128);
  CHECK(layer(net, "model.layers.0.self_attn.q_proj").output == Shape{128, 64 * 128});
  CHECK(layer(net, "model.layers.0.self_attn.k_proj").output == Shape{128, 8 * 128});
  CHECK(layer(net, "model.layers.79.self_attn").output == Shape{128, 8192});
  CHECK(std::get<Attention>(layer(net, "model.layers.79.self_attn").op).causal);
  CHECK(layer(net, "lm_head").output == Shape{128, 32000});
  CHECK_FALSE(layer(net, "lm_head").tied_to.has_value());
}

TEST_CASE("GPT-2's output projection shares the token embedding") {
  const ModelGraph net = zoo("gpt2_small");
  CHECK(layer(net, "lm_head").tied_to == layer(net, "transformer.wte").id);
  CHECK(net.counts()[index(layer(net, "lm_head").id)].parameters == 0);
  CHECK(net.counts()[index(layer(net, "lm_head").id)].weights_read == 50257 * 768);
  CHECK(layer(net, "transformer.h.3.attn.c_attn").output == Shape{1024, 3 * 768});
  CHECK(layer(net, "transformer.h.3.attn.c_attn").group == "transformer.h.3");
}

TEST_CASE("BERT predicts 15 percent of the tokens, gathered before the head") {
  // google-research/bert README: 20 of 128; ceil(0.15 * 512) = 77.
  CHECK(layer(zoo("bert_large", 128), "cls.predictions.select").output == Shape{20, 1024});
  CHECK(layer(zoo("bert_large"), "cls.predictions.decoder").output == Shape{77, 30522});
  CHECK_FALSE(
      std::get<Attention>(layer(zoo("bert_large"), "bert.encoder.layer.0.attention.self").op)
          .causal);
}

TEST_CASE("model FLOPs of a transformer are (6N + 12 L H Q T) T") {
  // [Chowdhery 2022, appendix B]. N: the parameters that are multiplied: all but the look-up tables
  // (wte counts, as the tied output projection does multiply it; wpe does not), norms and biases.
  const ModelGraph net = zoo("gpt2_small");
  const double D = 768, L = 12, T = 1024, V = 50257;
  const double N = L * 12 * D * D + V * D;
  CHECK(net.model_flops().v == Approx((6 * N + 12 * L * D * T) * T).epsilon(1e-12));
}

TEST_CASE("layers carry what running them needs") {
  // config.json of the models: rope_theta, hidden_act, attention_bias, dropout probabilities.
  const ModelGraph llama2 = zoo("llama2_7b", 16), llama3 = zoo("llama3_8b", 16);
  const std::string_view rotary = "model.layers.0.self_attn.q_proj.rotary";
  CHECK(std::get<RotaryEmbedding>(layer(llama2, rotary).op).theta == 10'000);
  CHECK(std::get<RotaryEmbedding>(layer(llama3, rotary).op).theta == 500'000);
  CHECK(std::get<RotaryEmbedding>(layer(llama3, rotary).op).head_width == 128);
  CHECK(std::get<Activation>(layer(llama3, "model.layers.0.mlp.act_fn").op).kind ==
        ActivationKind::silu);
  CHECK_FALSE(std::get<Linear>(layer(llama3, "model.layers.0.self_attn.q_proj").op).bias);

  const ModelGraph bert = zoo("bert_base", 16);
  CHECK(std::get<Attention>(layer(bert, "bert.encoder.layer.0.attention.self").op).dropout == 0.1);
  CHECK(std::get<Dropout>(layer(bert, "bert.embeddings.dropout").op).rate == 0.1);
  CHECK(std::get<Activation>(layer(bert, "bert.pooler.activation").op).kind ==
        ActivationKind::tanh);
  CHECK(std::get<SelectTokens>(layer(bert, "cls.predictions.select").op).masked);
  CHECK_FALSE(std::get<SelectTokens>(layer(bert, "bert.pooler.select").op).masked);

  CHECK(std::get<Linear>(layer(zoo("gpt2_small"), "transformer.h.0.attn.c_attn").op).bias);
  CHECK_FALSE(std::get<Linear>(layer(zoo("gpt2_small"), "lm_head").op).bias);
  CHECK(std::get<Conv2d>(layer(zoo("vgg16"), "features.0").op).bias);
  CHECK(std::get<Dropout>(layer(zoo("vgg16"), "classifier.2").op).rate == 0.5);
}

TEST_CASE("post-norm stands behind each residual sum, pre-norm inside it") {
  const auto first_input = [](const ModelGraph& net, std::string_view name) {
    return net.layers()[index(layer(net, name).inputs[0])].name;
  };
  const ModelGraph bert = zoo("bert_base", 16), gpt = zoo("gpt2_small", 16);
  CHECK(first_input(bert, "bert.encoder.layer.0.attention.output.LayerNorm") ==
        "bert.encoder.layer.0.attention.output.dense.add");
  CHECK(first_input(bert, "bert.encoder.layer.0.attention.self.query") ==
        "bert.embeddings.dropout");
  CHECK(first_input(gpt, "transformer.h.0.attn.c_attn") == "transformer.h.0.ln_1");
  CHECK(first_input(gpt, "transformer.h.0.attn.c_proj.add") == "transformer.wpe");
}
