#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"

using namespace reckon::test;

namespace {

nlohmann::json shown(const Workspace& w, const std::string& arguments) {
  const Output r = w.run("model show " + arguments + " --format json");
  INFO(r.err);
  REQUIRE(r.code == 0);
  return nlohmann::json::parse(r.out);
}

}  // namespace

TEST_CASE("model show counts a network beside what is published of it") {
  const Workspace w;
  const auto m = shown(w, "llama2_7b");
  CHECK(m["command"] == "model show");
  CHECK(m["parameters"] == 6'738'415'616);
  CHECK(m["published"]["parameters"] == 6'738'415'616.0);
  CHECK(contains(m["published"]["source"], "huggingface.co"));
  CHECK(m["sequence_length"] == 4096);
  // 16 bytes a parameter in mixed precision with AdamW.
  const auto& parts = m["memory"][0]["parts"];
  CHECK(parts["parameters"].get<double>() + parts["gradients"].get<double>() +
            parts["optimizer"].get<double>() ==
        16.0 * 6'738'415'616.0);
  CHECK(m["memory"][0]["fits"].is_null());  // no accelerator was named
  const Output r = w.run("model show resnet50_v1_5");
  CHECK(r.code == 0);
  CHECK(contains(r.out, "published 25,557,032: the same (pytorch/vision"));
  CHECK(contains(r.out, "4.089 GMAC"));
}

TEST_CASE("model show says whether the accelerator holds the model") {
  const Workspace w;
  CHECK(contains(w.run("model show gpt2_small --accelerator T4").out, "fits"));
  const auto m = shown(w, "llama2_7b --accelerator nvidia-tesla-p100");
  CHECK(m["accelerator"] == "P100-PCIE-16");
  CHECK(m["precision"] == "fp16");  // Pascal has no bf16
  CHECK(m["memory"][0]["fits"] == false);
  CHECK(contains(w.run("model show gpt2_small --accelerator P100-PCIE-16 --precision bf16").err,
                 "P100-PCIE-16 has no bf16"));
}

TEST_CASE("adapters leave few parameters to train") {
  const Workspace w;
  // peft, rank 8 on q_proj and v_proj of Llama-2-7B: 4,194,304 (tests/sim/model/finetune_test.cpp).
  const auto m = shown(w, "llama2_7b --finetune lora:8");
  CHECK(m["trainable_parameters"] == 4'194'304);
  CHECK(m["published"].is_null());  // that is of the network without them
}

TEST_CASE("QLoRA and an optimizer of few bytes change what is kept") {
  const Workspace w;
  const auto parts = [](const nlohmann::json& m, const char* part) {
    return m["memory"][0]["parts"][part].get<double>();
  };
  const auto lora = shown(w, "llama2_7b --finetune lora:8");
  const auto qlora = shown(w, "llama2_7b --finetune qlora:8");
  CHECK(parts(qlora, "parameters") < 0.35 * parts(lora, "parameters"));
  const auto adamw = shown(w, "llama2_7b --optimizer adamw");
  const auto small = shown(w, "llama2_7b --optimizer adamw_8bit");
  // The fp32 copy stays: 4 bytes, and 8 of moments or 2.004.
  CHECK(parts(small, "optimizer") / parts(adamw, "optimizer") == Approx((4 + 2.0039) / 12));
}

TEST_CASE("a count that nothing published confirms is unverified, of files too") {
  const Workspace w;
  CHECK(contains(w.run("model show mpt_7b").out, "parameters"));
  CHECK(contains(w.run("model show dit_b_2").out, "unverified: no published count confirms it"));
  CHECK(shown(w, "dit_b_2")["verified"] == false);
  CHECK(shown(w, "llama2_7b")["verified"] == true);
  w.write("phi/config.json",
          R"({"model_type": "phi3", "hidden_act": "silu", "hidden_size": 3072,
              "intermediate_size": 8192, "max_position_embeddings": 4096,
              "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
              "tie_word_embeddings": false, "vocab_size": 32064})");
  const auto phi = shown(w, "phi");
  CHECK(phi["verified"] == true);
  CHECK(phi["published"]["notes"] == "microsoft/Phi-3-mini-4k-instruct");
}

TEST_CASE("a graph of PyTorch FX is shown with what it holds that no layer of ours is") {
  const Workspace w;
  w.write("net.json",
          R"({"format": "reckon-fx", "name": "net", "nodes": [
   {"name": "x", "op": "placeholder", "kind": "x", "inputs": [], "shape": [1, 8]},
   {"name": "fc", "op": "call_module", "kind": "Linear", "inputs": ["x"], "shape": [1, 4],
    "weights": {"fc.weight": [4, 8]}},
   {"name": "s", "op": "call_function", "kind": "softmax", "inputs": ["fc"], "shape": [1, 4]},
   {"name": "output", "op": "output", "kind": "output", "inputs": ["s"]}]})");
  const auto m = shown(w, "net.json");
  CHECK(m["parameters"] == 32);
  CHECK(contains(m["notes"][0], "softmax x 1: no layer kind of ours"));
}

TEST_CASE("longer sequences and larger batches cost what they should") {
  const Workspace w;
  const auto one = shown(w, "gpt2_small --sequence-length 512 --batch 1");
  const auto four = shown(w, "gpt2_small --sequence-length 512 --batch 4");
  const auto activations = [](const nlohmann::json& m) {
    return m["memory"][0]["parts"]["activations"].get<double>();
  };
  CHECK(activations(four) == 4 * activations(one));
  CHECK(one["forward_flops"] == four["forward_flops"]);
  CHECK(w.run("model show gpt2_small --sequence-length 2048").code == 2);
  CHECK(w.run("model show resnet50 --sequence-length 8").code == 2);
}

TEST_CASE("a config.json, its folder and a scenario are shown like a model of the zoo") {
  const Workspace w;
  w.write("tiny/config.json",
          R"({"model_type": "llama", "hidden_size": 64, "intermediate_size": 128,
              "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
              "max_position_embeddings": 256, "tie_word_embeddings": false})");
  // 2 V D + L (4 D^2 + 3 D F + 2 D) + D, D = 64, F = 128, V = 100, L = 2
  const int parameters = 2 * 100 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 64;
  const auto file = shown(w, "tiny/config.json --sequence-length 32");
  CHECK(file["parameters"] == parameters);
  CHECK(file["sequence_length"] == 32);
  CHECK(shown(w, "tiny")["sequence_length"] == 256);

  w.write("s.yaml", kScenario);
  const auto scenario = shown(w, "s.yaml");
  CHECK(scenario["accelerator"] == "P100-PCIE-16");
  CHECK(scenario["precision"] == "fp32");
  CHECK(scenario["batch_per_accelerator"] == 64);
  CHECK(scenario["memory"][0]["strategy"] == "as in the scenario");
}

TEST_CASE("a model that is none is answered with the nearest") {
  const Workspace w;
  const Output r = w.run("model show resnet5O");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "no model is named 'resnet5O'; did you mean 'resnet50'?"));
  CHECK(w.run("model").code == 2);
  CHECK(contains(w.run("model lst").err, "did you mean 'list'?"));
  CHECK(w.run("model show nothing.json").code == 3);
  CHECK(contains(w.run("model show gpt2_small --finetune prefix:4").err, "lora:RANK"));
  CHECK(contains(w.run("model show gpt2_small --optimizer adm").err, "not 'adm'"));
}

TEST_CASE("model list has every model of the zoo, and of words those that have them") {
  const Workspace w;
  const Output all = w.run("model list");
  CHECK(all.code == 0);
  CHECK(contains(all.out, "resnet50_v1_5"));
  CHECK(contains(all.out, "huggingface-weights"));
  const Output qwen = w.run("model list qwen3");
  CHECK(contains(qwen.out, "qwen3_235b_a22b"));
  CHECK_FALSE(contains(qwen.out, "llama"));
}
