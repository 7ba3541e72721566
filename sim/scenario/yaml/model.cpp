#include "sim/scenario/yaml/model.h"

namespace reckon {
namespace {

// What a map below `model:` may hold; exactly one is given.
struct ModelKeys {
  std::string huggingface, onnx, fx;
  TransformerDimensions transformer;
  std::vector<std::map<std::string, std::string>> layers;
};

const Fields<ModelKeys>& model_fields() {
  static const Fields<ModelKeys> table{
      text_field("huggingface", &ModelKeys::huggingface,
                 "A Hugging Face config.json, relative to this file.", "llama/config.json"),
      text_field("onnx", &ModelKeys::onnx, "A network as ONNX, relative to this file.",
                 "resnet50.onnx"),
      text_field("fx", &ModelKeys::fx, "A network as PyTorch FX in JSON, relative to this file.",
                 "network.json"),
      block_field<transformer_fields>(
          "transformer", &ModelKeys::transformer, check_transformer,
          "A transformer by its dimensions.",
          "{layers: 12, hidden: 768, heads: 12, vocabulary: 50257, sequence_length: 1024}"),
      field<ModelKeys>(
          "layers", Form{.kind = Form::Kind::list, .item = Form::Kind::map},
          [](Reader& r, const YamlNode& n, ModelKeys& keys) {
            r.each(n,
                   [&](const YamlNode& item) { keys.layers.push_back(r.program_text_map(item)); });
            if (n.kind == YamlNode::Kind::list && n.entries.empty())
              r.error(r.subject() + " is empty");
          },
          "A network layer by layer.", "[{linear: 128}, {activation: relu}, {linear: 10}]"),
  };
  return table;
}

}  // namespace

const Fields<TransformerDimensions>& transformer_fields() {
  using T = TransformerDimensions;
  const Form width = whole(1, 1e7);
  static const Fields<T> table{
      required(number_field("layers", &T::layers, whole(1, 1e5), "Blocks.", "32")),
      required(number_field("hidden", &T::hidden, width, "Width of the residual stream.", "4096")),
      required(number_field("heads", &T::heads, whole(1, 1e5), "Attention heads.", "32")),
      number_field("kv_heads", &T::kv_heads, whole(1, 1e5),
                   "Heads of keys and values; default: heads.", "8"),
      number_field("head_width", &T::head_width, width, "Width of a head; default: hidden / heads.",
                   "128"),
      number_field("feed_forward", &T::feed_forward, width, "Inner width; default: 4 * hidden.",
                   "11008"),
      required(number_field("vocabulary", &T::vocabulary, whole(1, 1e9), "Tokens known.", "32000")),
      required(number_field("sequence_length", &T::sequence_length, whole(1, 1e8),
                            "Tokens of one sample.", "4096")),
      number_field("positions", &T::positions, whole(0, 1e8),
                   "Rows of the position table; 0: rotary.", "1024"),
      number_field("token_types", &T::token_types, whole(0, 1e6), "Rows of the segment table.",
                   "2"),
      boolean_field("gated_feed_forward", &T::gated_feed_forward,
                    "Gate and up projection (SwiGLU).", "true"),
      boolean_field("rms_norm", &T::rms_norm, "RMS norm instead of layer norm.", "true"),
      boolean_field("bias", &T::bias, "Biases on every projection.", "false"),
      boolean_field("tied_output", &T::tied_output, "The output projection shares the embedding.",
                    "false"),
      boolean_field("causal", &T::causal, "A decoder.", "true"),
      boolean_field("post_norm", &T::post_norm, "Norms behind the residual sums.", "false"),
      word_field("activation", &T::activation, "Of the feed-forward part.", "silu"),
      boolean_field("alibi", &T::alibi, "Scores lowered by distance, no positions.", "true"),
      number_field("window", &T::window, whole(0, 1e8), "Sliding window of attention; 0: none.",
                   "4096"),
      boolean_field("qkv_bias", &T::qkv_bias, "Biases on queries, keys and values alone.", "true"),
      boolean_field("qk_norm", &T::qk_norm, "RMS norms of each head's query and key.", "true"),
      boolean_field("parallel_residual", &T::parallel_residual,
                    "Attention and feed-forward side by side.", "true"),
      number_field("experts", &T::experts, whole(0, 1e5),
                   "Experts in place of each feed-forward part; 0: none.", "8"),
      number_field("experts_per_token", &T::experts_per_token, whole(1, 1e5),
                   "Experts that a token meets.", "2"),
      number_field("expert_feed_forward", &T::expert_feed_forward, width,
                   "Inner width of an expert; default: feed_forward.", "14336"),
      number_field("shared_feed_forward", &T::shared_feed_forward, width,
                   "Inner width of the expert that all tokens share.", "20480"),
      boolean_field("shared_expert_gate", &T::shared_expert_gate,
                    "It is weighed by a sigmoid of the token.", "true"),
      number_field("dense_layers", &T::dense_layers, whole(0, 1e5), "First blocks without experts.",
                   "1"),
      number_field("kv_lora_rank", &T::kv_lora_rank, width,
                   "Latent attention: width of what keys and values are made of.", "512"),
      number_field("q_lora_rank", &T::q_lora_rank, width,
                   "Of what queries are made of; default: the hidden state.", "1536"),
      number_field("nope_head_width", &T::nope_head_width, width,
                   "Features of a head's query and key that are not rotated.", "128"),
      number_field("rope_head_width", &T::rope_head_width, width, "Those that are.", "64"),
      number_field("value_head_width", &T::value_head_width, width,
                   "Width of a head's values and output.", "128"),
  };
  return table;
}

void check_transformer(Reader& reader, const YamlNode& node, const TransformerDimensions& d) {
  if (d.heads > 0 && d.hidden > 0 && d.head_width == 0 && d.hidden % d.heads != 0)
    reader.error(node.find("heads")->value.at,
                 fmt::format("hidden {} is not a multiple of heads {}", d.hidden, d.heads),
                 "give head_width as well");
  if (d.heads > 0 && d.kv_heads > 0 && d.heads % d.kv_heads != 0)
    reader.error(node.find("kv_heads")->value.at,
                 fmt::format("heads {} is not a multiple of kv_heads {}", d.heads, d.kv_heads), "");
}

std::optional<ModelSpec> read_model(Reader& reader, const YamlNode& node) {
  if (node.kind != YamlNode::Kind::map) {
    auto name = reader.text(node);
    return name ? std::optional<ModelSpec>(ModelByName{std::move(*name)}) : std::nullopt;
  }
  ModelKeys keys;
  const std::size_t before = reader.errors();
  read_fields(reader, node, model_fields(), keys);
  constexpr std::array<std::string_view, 5> kOneOf{"huggingface", "onnx", "fx", "transformer",
                                                   "layers"};
  if (reader.errors() == before || node.entries.size() > 1) check_one_of(reader, node, kOneOf, 1);
  if (reader.errors() != before) return std::nullopt;
  if (node.has("huggingface")) return ModelFromHuggingFace{keys.huggingface};
  using Format = ModelFromGraphFile::Format;
  if (node.has("onnx")) return ModelFromGraphFile{Format::onnx, keys.onnx};
  if (node.has("fx")) return ModelFromGraphFile{Format::fx, keys.fx};
  if (node.has("layers")) return ModelFromLayers{keys.layers};
  return ModelFromTransformer{keys.transformer};
}

std::vector<const FieldInfo*> model_infos() { return infos_of<model_fields>(); }

}  // namespace reckon
