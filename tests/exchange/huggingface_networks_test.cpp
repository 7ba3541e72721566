#include <catch2/catch.hpp>

#include "exchange/huggingface_configs.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

// Parameters of families whose blocks are no plain transformer's. Where a row names "index", the
// number is the total of the published model.safetensors.index.json (huggingface.co, the repository
// named); where it names code, it is counted by hand from the modelling code of transformers or of
// the repository named.

TEST_CASE("Gemma's configs give the parameters of the published weights") {
  const auto gemma2 = [](std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                         std::int64_t kv_heads, std::int64_t head, std::int64_t wide) {
    return parameters_of(fmt::format(
        R"({{"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2",
        "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "head_dim": {},
        "hidden_activation": "gelu_pytorch_tanh", "hidden_size": {}, "intermediate_size": {},
        "max_position_embeddings": 8192, "num_attention_heads": {}, "num_hidden_layers": {},
        "num_key_value_heads": {}, "sliding_window": 4096, "vocab_size": 256000}})",
        head, hidden, wide, heads, layers, kv_heads));
  };
  CHECK(gemma2(26, 2304, 8, 4, 256, 9216) == 2'614'341'888);      // index, google/gemma-2-2b
  CHECK(gemma2(42, 3584, 16, 8, 256, 14336) == 9'241'705'984);    // index, google/gemma-2-9b
  CHECK(gemma2(46, 4608, 32, 16, 128, 36864) == 27'227'128'320);  // index, google/gemma-2-27b
  // index, google/gemma-2b
  CHECK(parameters_of(R"({"model_type": "gemma", "head_dim": 256, "hidden_act": "gelu",
    "hidden_size": 2048, "intermediate_size": 16384, "max_position_embeddings": 8192,
    "num_attention_heads": 8, "num_hidden_layers": 18, "num_key_value_heads": 1,
    "vocab_size": 256000})") == 2'506'172'416);
  // index, google/gemma-3-1b-pt
  CHECK(parameters_of(R"({"architectures": ["Gemma3ForCausalLM"], "model_type": "gemma3_text",
    "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 1152,
    "intermediate_size": 6912, "max_position_embeddings": 32768, "num_attention_heads": 4,
    "num_hidden_layers": 26, "num_key_value_heads": 1, "sliding_window": 512,
    "sliding_window_pattern": 6, "vocab_size": 262144})") == 999'885'952);
  // index, google/gemma-3-4b-pt: keys that equal the class's defaults are not written
  CHECK(parameters_of(R"({"architectures": ["Gemma3ForConditionalGeneration"],
    "model_type": "gemma3", "mm_tokens_per_image": 256,
    "text_config": {"hidden_size": 2560, "intermediate_size": 10240,
      "model_type": "gemma3_text", "num_hidden_layers": 34, "sliding_window": 1024},
    "vision_config": {"hidden_size": 1152, "image_size": 896, "intermediate_size": 4304,
      "model_type": "siglip_vision_model", "num_attention_heads": 16, "num_hidden_layers": 27,
      "patch_size": 14, "vision_use_head": false}})") == 4'300'079'472);
}

TEST_CASE("Phi's, gpt-oss's and Granite's configs give the parameters of the published weights") {
  // index, microsoft/Phi-3-mini-4k-instruct
  CHECK(parameters_of(kPhi3) == 3'821'079'552);
  // index, microsoft/phi-4
  CHECK(parameters_of(R"({"model_type": "phi3", "hidden_act": "silu", "hidden_size": 5120,
    "intermediate_size": 17920, "max_position_embeddings": 16384, "num_attention_heads": 40,
    "num_hidden_layers": 40, "num_key_value_heads": 10, "rope_theta": 250000,
    "sliding_window": null, "tie_word_embeddings": false, "vocab_size": 100352})") ==
        14'659'507'200);
  // index, microsoft/phi-2
  CHECK(parameters_of(R"({"model_type": "phi", "hidden_act": "gelu_new", "hidden_size": 2560,
    "intermediate_size": 10240, "max_position_embeddings": 2048, "num_attention_heads": 32,
    "num_hidden_layers": 32, "partial_rotary_factor": 0.4, "vocab_size": 51200})") ==
        2'779'683'840);
  // [OpenAI 2025, arXiv:2508.10925, table 1]: 20.91 B and 116.83 B, active 3.61 B and 5.13 B
  const ModelGraph small = graph_of(kGptOss);
  CHECK(small.parameters() == 20'914'757'184);
  // Without the embedding's table: 3.61 B - the paper counts one of the two vocabulary matrices.
  CHECK(double(small.active_parameters() - 201'088 * 2880) == Approx(3.61e9).epsilon(0.01));
  const ModelGraph large = graph_of(
      changed(changed(kGptOss, R"("num_local_experts": 32)", R"("num_local_experts": 128)"),
              R"("num_hidden_layers": 24)", R"("num_hidden_layers": 36)"));
  CHECK(large.parameters() == 116'829'156'672);
  // index, ibm-granite/granite-3.0-8b-base
  CHECK(parameters_of(R"({"model_type": "granite", "attention_bias": false,
    "embedding_multiplier": 12.0, "hidden_act": "silu", "hidden_size": 4096,
    "intermediate_size": 12800, "logits_scaling": 16.0, "max_position_embeddings": 4096,
    "num_attention_heads": 32, "num_hidden_layers": 40, "num_key_value_heads": 8,
    "residual_multiplier": 0.22, "tie_word_embeddings": true, "vocab_size": 49155})") ==
        8'170'848'256);
  // index, allenai/OLMo-2-1124-7B
  CHECK(parameters_of(R"({"model_type": "olmo2", "hidden_act": "silu", "hidden_size": 4096,
    "intermediate_size": 11008, "max_position_embeddings": 4096, "num_attention_heads": 32,
    "num_hidden_layers": 32, "num_key_value_heads": 32, "tie_word_embeddings": false,
    "vocab_size": 100352})") == 7'298'617'344);
}

TEST_CASE("Llama 4's configs give the parameters of the published weights") {
  // index, meta-llama/Llama-4-Scout-17B-16E
  CHECK(parameters_of(kLlama4) == 108'641'793'536);
  // index, meta-llama/Llama-4-Maverick-17B-128E: experts in every other layer
  const std::string maverick =
      changed(changed(kLlama4, R"("num_local_experts": 16)", R"("num_local_experts": 128)"),
              R"("interleave_moe_layer_step": 1)", R"("interleave_moe_layer_step": 2)");
  CHECK(parameters_of(maverick) == 401'583'781'376);
}

TEST_CASE("state-space models and hybrids give the parameters of the published weights") {
  // index, state-spaces/mamba-130m-hf
  CHECK(parameters_of(R"({"model_type": "mamba", "conv_kernel": 4, "expand": 2,
    "hidden_size": 768, "intermediate_size": 1536, "num_hidden_layers": 24, "state_size": 16,
    "time_step_rank": 48, "use_bias": false, "use_conv_bias": true, "vocab_size": 50280})") ==
        129'135'360);
  // index, mistralai/Mamba-Codestral-7B-v0.1
  CHECK(parameters_of(kMamba2) == 7'285'403'648);
  // index, ai21labs/Jamba-v0.1
  CHECK(parameters_of(kJamba) == 51'570'323'328);
  // index, Qwen/Qwen3-Next-80B-A3B-Instruct: 81,324,862,720 with the module that predicts a second
  // token (1,650,471,424 by code), which the model of transformers leaves out
  CHECK(parameters_of(kQwen3Next) == 81'324'862'720 - 1'650'471'424);
}

TEST_CASE("a Nemotron-H block is one part, by its pattern") {
  // By code, modeling_nemotron_h.py. Mamba: in_proj 4096 (2 8192 + 2 8 128 + 128), convolution
  // (8192 + 2048) 5, three numbers a head, norm 8192, out 8192 4096; attention 2 4096 4096 + 2 4096
  // 1024; feed-forward 2 4096 21504; a norm each.
  const std::int64_t mamba = 4096LL * 18'560 + 10'240LL * 5 + 384 + 8192 + 8192LL * 4096 + 4096;
  const std::int64_t attention = 2 * 4096LL * 4096 + 2 * 4096LL * 1024 + 4096;
  const std::int64_t mlp = 2 * 4096LL * 21'504 + 4096;
  const std::int64_t rest = 2 * 131'072LL * 4096 + 4096;
  CHECK(parameters_of(kNemotronH) == 24 * mamba + 4 * attention + 24 * mlp + rest);
}

TEST_CASE("Granite 4's layers have experts and a part that all tokens share") {
  // By code, modeling_granitemoehybrid.py, of a network of two layers.
  const std::string text = R"({"model_type": "granitemoehybrid", "hidden_size": 1536,
    "intermediate_size": 512, "shared_intermediate_size": 1024, "num_hidden_layers": 2,
    "layer_types": ["mamba", "attention"], "num_attention_heads": 12, "num_key_value_heads": 4,
    "num_local_experts": 64, "num_experts_per_tok": 6, "mamba_n_heads": 48, "mamba_d_head": 64,
    "mamba_d_state": 128, "mamba_n_groups": 1, "mamba_expand": 2, "tie_word_embeddings": true,
    "max_position_embeddings": 131072, "vocab_size": 100352})";
  const std::int64_t mamba =
      1536LL * (2 * 3072 + 2 * 128 + 48) + (3072 + 256) * 5LL + 3 * 48 + 3072 + 3072LL * 1536;
  const std::int64_t attention = 2 * 1536LL * 1536 + 2 * 1536LL * 512;
  const std::int64_t experts = 64 * 3 * 1536LL * 512 + 64 * 1536LL + 3 * 1536LL * 1024;
  CHECK(parameters_of(text) ==
        mamba + attention + 2 * (experts + 2 * 1536) + 100'352LL * 1536 + 1536);
}

TEST_CASE("encoders with decoders give the parameters of the published weights") {
  const auto t5 = [](const char* feed_forward, int layers, int hidden, int heads, int wide,
                     const char* tied) {
    return parameters_of(fmt::format(
        R"({{"model_type": "t5", "d_ff": {}, "d_kv": 64, "d_model": {}, "feed_forward_proj": "{}",
        "num_decoder_layers": {}, "num_heads": {}, "num_layers": {},
        "relative_attention_num_buckets": 32, "tie_word_embeddings": {}, "vocab_size": 32128}})",
        wide, hidden, feed_forward, layers, heads, layers, tied));
  };
  CHECK(t5("relu", 6, 512, 8, 2048, "true") == 60'506'624);            // index, google-t5/t5-small
  CHECK(t5("relu", 12, 768, 12, 3072, "true") == 222'903'552);         // index, google-t5/t5-base
  CHECK(t5("relu", 24, 1024, 16, 4096, "true") == 737'668'096);        // index, google-t5/t5-large
  CHECK(t5("gated-gelu", 12, 768, 12, 2048, "false") == 247'577'856);  // index, google/flan-t5-base
  CHECK(t5("gated-gelu", 24, 2048, 32, 5120, "false") == 2'849'757'184);    // google/flan-t5-xl
  CHECK(t5("gated-gelu", 24, 4096, 64, 10240, "false") == 11'135'332'352);  // google/flan-t5-xxl
  const auto whisper = [](int layers, int decoders, int hidden, int heads, int mel, int words) {
    return parameters_of(fmt::format(
        R"({{"model_type": "whisper", "activation_function": "gelu", "d_model": {0},
        "decoder_attention_heads": {1}, "decoder_ffn_dim": {2}, "decoder_layers": {3},
        "dropout": 0.0, "encoder_attention_heads": {1}, "encoder_ffn_dim": {2},
        "encoder_layers": {4}, "max_source_positions": 1500, "max_target_positions": 448,
        "num_mel_bins": {5}, "vocab_size": {6}}})",
        hidden, heads, 4 * hidden, decoders, layers, mel, words));
  };
  CHECK(whisper(4, 4, 384, 6, 80, 51865) == 37'760'640);          // index, openai/whisper-tiny
  CHECK(whisper(12, 12, 768, 12, 80, 51865) == 241'734'912);      // index, openai/whisper-small
  CHECK(whisper(32, 32, 1280, 20, 80, 51865) == 1'543'304'960);   // index, openai/whisper-large-v2
  CHECK(whisper(32, 32, 1280, 20, 128, 51866) == 1'543'490'560);  // index, openai/whisper-large-v3
  CHECK(whisper(32, 4, 1280, 20, 128, 51866) == 808'878'080);     // index, whisper-large-v3-turbo
  // index, facebook/bart-large
  CHECK(parameters_of(kBart) == 406'291'456);
}

TEST_CASE("towers for images give the parameters of the published weights") {
  // index, openai/clip-vit-base-patch32, clip-vit-large-patch14
  CHECK(parameters_of(R"({"model_type": "clip", "projection_dim": 512, "text_config": {},
    "vision_config": {}})") == 151'277'313);
  CHECK(parameters_of(R"({"model_type": "clip", "projection_dim": 768,
    "text_config": {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12},
    "vision_config": {"hidden_size": 1024, "intermediate_size": 4096, "num_attention_heads": 16,
      "num_hidden_layers": 24, "patch_size": 14}})") == 427'616'513);
  // index, google/siglip-base-patch16-224
  CHECK(parameters_of(R"({"model_type": "siglip", "text_config": {}, "vision_config": {}})") ==
        203'155'970);
  // index, llava-hf/llava-1.5-7b-hf
  CHECK(parameters_of(kLlava) == 7'063'427'072);
  // index, Qwen/Qwen2-VL-2B and Qwen/Qwen2.5-VL-7B-Instruct
  CHECK(parameters_of(kQwen2Vl) == 2'208'985'600);
  CHECK(parameters_of(R"({"model_type": "qwen2_5_vl", "hidden_act": "silu", "hidden_size": 3584,
    "intermediate_size": 18944, "max_position_embeddings": 128000, "num_attention_heads": 28,
    "num_hidden_layers": 28, "num_key_value_heads": 4, "tie_word_embeddings": false,
    "vocab_size": 152064, "vision_config": {"depth": 32, "hidden_act": "silu",
      "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "in_chans": 3,
      "out_hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2, "window_size": 112,
      "fullatt_block_indexes": [7, 15, 23, 31], "temporal_patch_size": 2}})") == 8'292'166'656);
}

TEST_CASE("FLUX gives the parameters of the published weights") {
  // index, black-forest-labs/FLUX.1-schnell and FLUX.1-dev, transformer/
  const std::string schnell = R"({"_class_name": "FluxTransformer2DModel",
    "attention_head_dim": 128, "guidance_embeds": false, "in_channels": 64,
    "joint_attention_dim": 4096, "num_attention_heads": 24, "num_layers": 19,
    "num_single_layers": 38, "patch_size": 1, "pooled_projection_dim": 768})";
  CHECK(parameters_of(schnell) == 11'891'178'560);
  CHECK(parameters_of(changed(schnell, "false", "true")) == 11'901'408'320);
}

TEST_CASE("heads are those of the class: BERT's masked-token head has no pooler") {
  // By code, BertForMaskedLM: google-bert/bert-base-uncased's encoder 109,482,240 without its
  // pooler of 590,592, and the head's dense layer, norm and bias.
  const std::string masked = R"({"architectures": ["BertForMaskedLM"], "model_type": "bert",
    "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "hidden_dropout_prob": 0.1,
    "hidden_size": 768, "intermediate_size": 3072, "max_position_embeddings": 512,
    "num_attention_heads": 12, "num_hidden_layers": 12, "type_vocab_size": 2,
    "vocab_size": 30522})";
  CHECK(parameters_of(masked) == 109'482'240 - 590'592 + 590'592 + 1536 + 30'522);
  // The next-sentence head comes back with the class that has it: 590,592 + 2 768 + 2.
  CHECK(parameters_of(changed(masked, "ForMaskedLM", "ForPreTraining")) - parameters_of(masked) ==
        592'130);
  // A classifier of two classes keeps the pooler and has no output projection.
  CHECK(parameters_of(changed(masked, "ForMaskedLM", "ForSequenceClassification")) ==
        109'482'240 + 2 * 768 + 2);
  const auto other = read_huggingface_config(changed(masked, "ForMaskedLM", "ForQuestionAnswering"),
                                             "config.json");
  REQUIRE(other);
  CHECK_THAT(other->notes.at(0), Contains("BertForQuestionAnswering are not covered"));
  // By code, Gemma2ForSequenceClassification: `score` of two labels without a bias; its tied output
  // has no weights of its own.
  const std::string gemma = R"({"architectures": ["Gemma2ForCausalLM"], "model_type": "gemma2",
    "head_dim": 256, "hidden_size": 2304, "intermediate_size": 9216,
    "max_position_embeddings": 8192, "num_attention_heads": 8, "num_hidden_layers": 26,
    "num_key_value_heads": 4, "vocab_size": 256000})";
  CHECK(parameters_of(changed(gemma, "ForCausalLM", "ForSequenceClassification")) ==
        2'614'341'888 + 2 * 2304);
  // index, answerdotai/ModernBERT-base
  CHECK(parameters_of(R"({"architectures": ["ModernBertForMaskedLM"],
    "model_type": "modernbert", "attention_bias": false, "classifier_bias": false,
    "decoder_bias": true, "global_attn_every_n_layers": 3, "hidden_activation": "gelu",
    "hidden_size": 768, "intermediate_size": 1152, "local_attention": 128,
    "max_position_embeddings": 8192, "mlp_bias": false, "norm_bias": false,
    "num_attention_heads": 12, "num_hidden_layers": 22, "vocab_size": 50368})") == 149'655'232);
}

TEST_CASE("windows, caps and sinks are the layers' own") {
  const ModelGraph oss = graph_of(kGptOss, 4096);
  int windowed = 0, full = 0;
  for (const Layer& layer : oss.layers()) {
    const auto* a = std::get_if<Attention>(&layer.op);
    if (a == nullptr) continue;
    CHECK(a->sinks);
    (a->window == 128 ? windowed : full) += 1;
  }
  CHECK(windowed == 12);
  CHECK(full == 12);
}

TEST_CASE("what is not covered points at the nearest family and at the sizes") {
  const auto wrong = read_huggingface_config(
      R"({"model_type": "zamba9", "mamba_d_state": 64, "num_attention_heads": 8})", "config.json");
  REQUIRE_FALSE(wrong);
  const std::string errors = format(wrong.error());
  CHECK_THAT(errors, Contains("model type 'zamba9' is not covered"));
  CHECK_THAT(errors, Contains("nearest by its keys: model_type nemotron_h"));
  CHECK_THAT(errors, Contains("model: {transformer: {layers: 32"));
}

TEST_CASE("mistakes in a section are named with it") {
  const auto wrong = read_huggingface_config(
      changed(kLlama4, R"("num_hidden_layers": 34)", R"("num_hidden_layers": "34")"),
      "config.json");
  REQUIRE_FALSE(wrong);
  CHECK_THAT(format(wrong.error()),
             Contains("vision_config.num_hidden_layers is \"34\", not a whole number"));
}
