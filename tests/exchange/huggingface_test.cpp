#include "exchange/huggingface/huggingface.h"
#include "support/text.h"

#include <rapidcheck.h>
#include <catch2/catch.hpp>

using namespace reckon;
using Catch::Matchers::Contains;

namespace {

// The keys that matter of the published files; the rest of a config.json is not read.
const std::string kLlama2 = R"({
  "_name_or_path": "meta-llama/Llama-2-7b-hf",
  "architectures": ["LlamaForCausalLM"],
  "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 11008,
  "max_position_embeddings": 4096, "model_type": "llama",
  "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
  "rms_norm_eps": 1e-05, "rope_scaling": null, "tie_word_embeddings": false,
  "torch_dtype": "float16", "vocab_size": 32000
})";
const std::string kMistral = R"({"architectures": ["MistralForCausalLM"], "hidden_act": "silu",
  "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768,
  "model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "rope_theta": 10000.0, "sliding_window": 4096, "vocab_size": 32000})";
const std::string kMixtral = R"({"architectures": ["MixtralForCausalLM"], "hidden_act": "silu",
  "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768,
  "model_type": "mixtral", "num_attention_heads": 32, "num_experts_per_tok": 2,
  "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8,
  "rope_theta": 1000000.0, "sliding_window": null, "vocab_size": 32000})";
const std::string kQwen2 = R"({"architectures": ["Qwen2ForCausalLM"], "hidden_act": "silu",
  "hidden_size": 896, "intermediate_size": 4864, "max_position_embeddings": 131072,
  "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14,
  "num_hidden_layers": 24, "num_key_value_heads": 2, "rope_theta": 1000000.0,
  "sliding_window": 131072, "tie_word_embeddings": true, "use_sliding_window": false,
  "vocab_size": 151936})";
const std::string kQwen2Moe = R"({"architectures": ["Qwen2MoeForCausalLM"],
  "decoder_sparse_step": 1, "hidden_act": "silu", "hidden_size": 3584,
  "intermediate_size": 18944, "max_position_embeddings": 131072, "model_type": "qwen2_moe",
  "moe_intermediate_size": 2560, "norm_topk_prob": false, "num_attention_heads": 28,
  "num_experts": 64, "num_experts_per_tok": 8, "num_hidden_layers": 28,
  "num_key_value_heads": 4, "rope_theta": 1000000.0, "shared_expert_intermediate_size": 20480,
  "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936})";
const std::string kQwen3 = R"({"architectures": ["Qwen3ForCausalLM"], "attention_bias": false,
  "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 12288,
  "max_position_embeddings": 40960, "model_type": "qwen3", "num_attention_heads": 32,
  "num_hidden_layers": 36, "num_key_value_heads": 8, "rope_theta": 1000000,
  "tie_word_embeddings": false, "use_sliding_window": false, "vocab_size": 151936})";
const std::string kQwen3Moe = R"({"architectures": ["Qwen3MoeForCausalLM"],
  "attention_bias": false, "decoder_sparse_step": 1, "head_dim": 128, "hidden_act": "silu",
  "hidden_size": 2048, "intermediate_size": 6144, "max_position_embeddings": 40960,
  "mlp_only_layers": [], "model_type": "qwen3_moe", "moe_intermediate_size": 768,
  "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 128,
  "num_experts_per_tok": 8, "num_hidden_layers": 48, "num_key_value_heads": 4,
  "rope_theta": 1000000.0, "tie_word_embeddings": false, "vocab_size": 151936})";
const std::string kGpt2 = R"({"activation_function": "gelu_new",
  "architectures": ["GPT2LMHeadModel"], "attn_pdrop": 0.1, "embd_pdrop": 0.1,
  "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
  "n_positions": 1024, "resid_pdrop": 0.1, "vocab_size": 50257})";
const std::string kNeoX = R"({"architectures": ["GPTNeoXForCausalLM"], "hidden_act": "gelu_fast",
  "hidden_size": 6144, "intermediate_size": 24576, "max_position_embeddings": 2048,
  "model_type": "gpt_neox", "num_attention_heads": 64, "num_hidden_layers": 44,
  "rotary_emb_base": 10000, "rotary_pct": 0.25, "tie_word_embeddings": false,
  "vocab_size": 50432})";
const std::string kBert = R"({"architectures": ["BertForPreTraining"],
  "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
  "hidden_size": 1024, "intermediate_size": 4096, "max_position_embeddings": 512,
  "model_type": "bert", "num_attention_heads": 16, "num_hidden_layers": 24,
  "position_embedding_type": "absolute", "type_vocab_size": 2, "vocab_size": 30522})";
const std::string kVit = R"({"architectures": ["ViTForImageClassification"],
  "attention_probs_dropout_prob": 0.0, "hidden_act": "gelu", "hidden_dropout_prob": 0.0,
  "hidden_size": 768, "num_labels": 1000, "image_size": 224, "intermediate_size": 3072,
  "model_type": "vit", "num_attention_heads": 12, "num_channels": 3, "num_hidden_layers": 12,
  "patch_size": 16, "qkv_bias": true})";

const std::string kDeepSeekV2Lite = R"({"architectures": ["DeepseekV2ForCausalLM"],
  "attention_bias": false, "first_k_dense_replace": 1, "hidden_act": "silu",
  "hidden_size": 2048, "intermediate_size": 10944, "kv_lora_rank": 512,
  "max_position_embeddings": 163840, "model_type": "deepseek_v2",
  "moe_intermediate_size": 1408, "moe_layer_freq": 1, "n_routed_experts": 64,
  "n_shared_experts": 2, "norm_topk_prob": false, "num_attention_heads": 16,
  "num_experts_per_tok": 6, "num_hidden_layers": 27, "num_key_value_heads": 16,
  "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "rope_theta": 10000,
  "tie_word_embeddings": false, "v_head_dim": 128, "vocab_size": 102400})";
const std::string kDeepSeekV3 = R"({"architectures": ["DeepseekV3ForCausalLM"],
  "attention_bias": false, "first_k_dense_replace": 3, "hidden_act": "silu",
  "hidden_size": 7168, "intermediate_size": 18432, "kv_lora_rank": 512,
  "max_position_embeddings": 163840, "model_type": "deepseek_v3",
  "moe_intermediate_size": 2048, "moe_layer_freq": 1, "n_group": 8, "n_routed_experts": 256,
  "n_shared_experts": 1, "norm_topk_prob": true, "num_attention_heads": 128,
  "num_experts_per_tok": 8, "num_hidden_layers": 61, "num_key_value_heads": 128,
  "num_nextn_predict_layers": 1, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64, "rope_theta": 10000, "tie_word_embeddings": false,
  "v_head_dim": 128, "vocab_size": 129280})";

const std::vector<std::string> kAll{kLlama2, kMistral,        kMixtral,   kQwen2, kQwen2Moe,
                                    kQwen3,  kGpt2,           kQwen3Moe,  kNeoX,  kBert,
                                    kVit,    kDeepSeekV2Lite, kDeepSeekV3};

ModelGraph graph_of_config(const std::string& text, std::optional<std::int64_t> tokens = 128) {
  const auto model = read_huggingface_config(text, "config.json");
  if (!model) FAIL(format(model.error()));
  auto graph = make_model(*model, tokens);
  if (!graph) FAIL(format(graph.error()));
  return std::move(*graph);
}

std::string config_errors(const std::string& text) {
  const auto model = read_huggingface_config(text, "config.json");
  REQUIRE_FALSE(model.has_value());
  return format(model.error());
}

}  // namespace

TEST_CASE("published configs give the parameters of the published weights") {
  // Elements of the safetensors files on huggingface.co; BERT as in the zoo's test, with its heads.
  CHECK(graph_of_config(kLlama2).parameters() == 6'738'415'616);
  CHECK(graph_of_config(kMistral).parameters() == 7'241'732'096);
  CHECK(graph_of_config(kMixtral).parameters() == 46'702'792'704);
  CHECK(graph_of_config(kQwen2).parameters() == 494'032'768);
  CHECK(graph_of_config(kQwen3).parameters() == 8'190'735'360);
  CHECK(graph_of_config(kQwen3Moe).parameters() == 30'532'122'624);
  CHECK(graph_of_config(kGpt2).parameters() == 124'439'808);
  CHECK(graph_of_config(kNeoX).parameters() == 20'554'567'680);
  CHECK(graph_of_config(kBert).parameters() == 336'226'108);
  CHECK(graph_of_config(kVit).parameters() == 86'567'656);
}

TEST_CASE("a config is the zoo's model of the same name") {
  const auto same = [](const std::string& text, std::string_view name) {
    CAPTURE(name);
    const ModelGraph mine = graph_of_config(text), zoo = zoo_model(name, 128).value();
    CHECK(mine.parameters() == zoo.parameters());
    CHECK(mine.active_parameters() == zoo.active_parameters());
    CHECK(mine.model_flops().v == zoo.model_flops().v);
    CHECK(mine.forward_flops().v == zoo.forward_flops().v);
    CHECK(mine.saved_elements() == zoo.saved_elements());
  };
  same(kLlama2, "llama2_7b");
  same(kMistral, "mistral_7b");
  same(kMixtral, "mixtral_8x7b");
  same(kQwen2, "qwen2_5_0_5b");
  same(kQwen2Moe, "qwen2_57b_a14b");
  same(kQwen3, "qwen3_8b");
  same(kQwen3Moe, "qwen3_30b_a3b");
  same(kNeoX, "gpt_neox_20b");
  same(kDeepSeekV2Lite, "deepseek_v2_lite");
  same(kDeepSeekV3, "deepseek_v3");
  same(kBert, "bert_large");
}

TEST_CASE("a config's name, positions and details arrive") {
  const auto llama = read_huggingface_config(kLlama2, "config.json").value();
  CHECK(llama.name == "meta-llama/Llama-2-7b-hf");
  CHECK(llama.longest_sequence == 4096);
  CHECK(std::get<TransformerDimensions>(llama.dimensions).sequence_length == 0);
  const auto gpt2 = std::get<TransformerDimensions>(
      read_huggingface_config(kGpt2, "config.json").value().dimensions);
  CHECK(gpt2.sequence_length == 1024);
  CHECK(gpt2.dropout == 0.1);
  const auto neox = std::get<TransformerDimensions>(
      read_huggingface_config(kNeoX, "config.json").value().dimensions);
  CHECK(neox.rotary_width == 24);  // a quarter of 6144 / 64
  CHECK(neox.parallel_residual);
  // Old files name the class alone.
  const std::string old = test::changed(kLlama2, R"("model_type": "llama",)", "");
  CHECK(graph_of_config(old).parameters() == 6'738'415'616);
}

TEST_CASE("a rotary model needs a sequence length, a position table has one") {
  const auto llama = read_huggingface_config(kLlama2, "config.json").value();
  const auto made = make_model(llama, std::nullopt);
  REQUIRE_FALSE(made.has_value());
  CHECK_THAT(made.error()[0].what, Contains("sequences of up to 4096 tokens"));
  CHECK(graph_of_config(kGpt2, std::nullopt).sequence_length() == 1024);
}

TEST_CASE("an unknown architecture is named with the list of the known ones") {
  CHECK_THAT(
      config_errors(
          test::changed(kLlama2, R"("model_type": "llama")", R"("model_type": "lamma9")")),
      Contains("config.json:5:36: error: model type 'lamma9' is not covered") &&
          Contains("deepseek_v2, deepseek_v3, gemma, gemma2, gemma3, gemma3_text, gpt2, gpt_neox"));
  CHECK_THAT(config_errors(R"({"architectures": ["ReformerModelWithLMHead"]})"),
             Contains("architecture 'ReformerModelWithLMHead' is not covered"));
  CHECK_THAT(config_errors("{}"), Contains("key 'model_type' is missing"));
}

TEST_CASE("missing and wrong keys come all at once, at their places") {
  std::string text = test::changed(kLlama2, R"("vocab_size": 32000)", R"("vocab_sizes": 32000)");
  text = test::changed(text, R"("hidden_size": 4096)", R"("hidden_size": "4096")");
  text = test::changed(text, R"("hidden_act": "silu")", R"("hidden_act": "snake")");
  text = test::changed(text, R"("num_hidden_layers": 32)", R"("num_hidden_layers": -1)");
  const std::string errors = config_errors(text);
  CHECK_THAT(errors, Contains("key 'vocab_size' is missing"));
  CHECK_THAT(errors,
             Contains("config.json:4:26: error: hidden_size is \"4096\", not a whole number"));
  CHECK_THAT(errors, Contains("hidden_act 'snake' is not covered"));
  CHECK_THAT(errors, Contains("num_hidden_layers is -1"));
}

TEST_CASE("sizes that do not fit together are errors of the config") {
  CHECK_THAT(
      config_errors(test::changed(kLlama2, R"("hidden_size": 4096)", R"("hidden_size": 4097)")),
      Contains("32 heads do not divide hidden 4097"));
  CHECK_THAT(config_errors(test::changed(kMixtral, R"("num_experts_per_tok": 2)",
                                         R"("num_experts_per_tok": 9)")),
             Contains("experts_per_token of a transformer is 9"));
  CHECK_THAT(config_errors(test::changed(kVit, R"("patch_size": 16)", R"("patch_size": 15)")),
             Contains("patches of 15 pixels do not divide an image of 224"));
}

TEST_CASE("what no network of ours covers is refused by name") {
  CHECK_THAT(config_errors(test::changed(kQwen2, R"("use_sliding_window": false)",
                                         R"("use_sliding_window": true)")),
             Contains("a sliding window in some of the layers is not covered"));
  CHECK_THAT(config_errors(
                 test::changed(kQwen3Moe, R"("mlp_only_layers": [])", R"("mlp_only_layers": [0])")),
             Contains("experts in some of the layers alone are not covered"));
  CHECK_THAT(config_errors(test::changed(kGpt2, R"("attn_pdrop": 0.1)", R"("attn_pdrop": 0.2)")),
             Contains("attn_pdrop 0.2 differs from resid_pdrop 0.1"));
  CHECK_THAT(config_errors(test::changed(kVit, R"("num_labels": 1000,)", "")),
             Contains("the number of classes is missing"));
}

TEST_CASE("no JSON is an error with a place") {
  CHECK_THAT(config_errors("{\n  \"model_type\": llama\n}"),
             Contains("config.json:2:") && Contains("the file is no JSON"));
  CHECK_THAT(config_errors(""), Contains("the file is no JSON"));
  CHECK_THAT(config_errors("[1, 2]"), Contains("the file holds array, no object"));
  CHECK_THAT(config_errors("\"geheim\""), Contains("the file holds string, no object") &&
                                              !Contains("geheim"));  // a file with a token
  CHECK_THAT(config_errors(std::string(100'000, '[')), Contains("the file is no JSON"));
  CHECK_THAT(config_errors("{\"a\": 1, \"a\": \xff}"), Contains("the file is no JSON"));
}

TEST_CASE("any text is answered, with a model or with what is wrong") {
  CHECK(rc::check("bytes changed", [] {
    std::string text = *rc::gen::elementOf(kAll);
    const int changes = *rc::gen::inRange(0, 4);
    for (int i = 0; i < changes; ++i) {
      const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
      text[at] = *rc::gen::arbitrary<char>();
    }
    const auto model = read_huggingface_config(text, "config.json");
    RC_ASSERT(model.has_value() || !model.error().empty());
  }));
  CHECK(rc::check("values changed", [] {
    std::string text = *rc::gen::elementOf(kAll);
    // Behind some colon stands another value.
    std::vector<std::size_t> colons;
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == ':') colons.push_back(i);
    const std::size_t from = *rc::gen::elementOf(colons) + 1;
    const std::size_t to = text.find_first_of(",}", from);
    const std::string value = *rc::gen::elementOf(std::vector<std::string>{
        "0", "-1", "1", "1e308", "1e999", "18446744073709551615", "-9223372036854775808", "null",
        "true", "\"x\"", "[]", "{}", "[[[]]]", "1099511627776", "7", "0.5", "\"\\ud800\""});
    text.replace(from, to - from, value);
    const auto model = read_huggingface_config(text, "config.json");
    RC_ASSERT(model.has_value() || !model.error().empty());
    if (!model) RC_ASSERT(!format(model.error()).empty());
  }));
}

TEST_CASE("a DeepSeek config without a key that changes the size, or with one, is an error") {
  CHECK_THAT(config_errors(test::changed(kDeepSeekV2Lite, "\"q_lora_rank\": null, ", "")),
             Contains("key 'q_lora_rank' is missing"));
  CHECK_THAT(config_errors(test::changed(kDeepSeekV3, "\"kv_lora_rank\": 512,", "")),
             Contains("key 'kv_lora_rank' is missing"));
  CHECK_THAT(
      config_errors(test::changed(kDeepSeekV3, "\"moe_layer_freq\": 1", "\"moe_layer_freq\": 2")),
      Contains("experts in every n-th layer only are not covered"));
  CHECK_THAT(config_errors(test::changed(kDeepSeekV3, "\"attention_bias\": false",
                                         "\"attention_bias\": true")),
             Contains("biases in attention alone are not covered"));
  CHECK_THAT(config_errors(test::changed(kDeepSeekV3, "\"num_key_value_heads\": 128",
                                         "\"num_key_value_heads\": 8")),
             Contains("8 key-value heads beside 128 heads with latent attention"));
  CHECK_THAT(config_errors(test::changed(kDeepSeekV3, "\"first_k_dense_replace\": 3",
                                         "\"first_k_dense_replace\": 62")),
             Contains("dense_layers of a transformer is 62"));
}

TEST_CASE("Kimi-K2 is read as DeepSeek-V3") {
  const std::string kimi =
      test::changed(kDeepSeekV3, "\"model_type\": \"deepseek_v3\"", "\"model_type\": \"kimi_k2\"");
  CHECK(graph_of_config(kimi).parameters() == graph_of_config(kDeepSeekV3).parameters());
}
