#include "sim/catalog/model_zoo.h"

#include <array>

#include "sim/base/check.h"
#include "sim/catalog/model_zoo_images.h"

namespace reckon {
namespace {

struct ImageEntry {
  std::string_view name;
  Expected<ModelGraph> (*build)();
};

// Blocks a stage: [He 2016, table 1].
constexpr std::array kImageModels{
    ImageEntry{"resnet18",
               [] {
                 return make_resnet("resnet18", {{2, 2, 2, 2}});
               }},
    ImageEntry{"resnet34",
               [] {
                 return make_resnet("resnet34", {{3, 4, 6, 3}});
               }},
    ImageEntry{"resnet50",
               [] {
                 return make_resnet("resnet50", {{3, 4, 6, 3}, true, false});
               }},
    ImageEntry{"resnet50_v1_5",
               [] {
                 return make_resnet("resnet50_v1_5", {{3, 4, 6, 3}, true, true});
               }},
    ImageEntry{"resnet101",
               [] {
                 return make_resnet("resnet101", {{3, 4, 23, 3}, true, false});
               }},
    ImageEntry{"resnet101_v1_5",
               [] {
                 return make_resnet("resnet101_v1_5", {{3, 4, 23, 3}, true, true});
               }},
    ImageEntry{"resnet152",
               [] {
                 return make_resnet("resnet152", {{3, 8, 36, 3}, true, false});
               }},
    ImageEntry{"resnet152_v1_5",
               [] {
                 return make_resnet("resnet152_v1_5", {{3, 8, 36, 3}, true, true});
               }},
    ImageEntry{"vgg16", [] { return make_vgg16(); }},
    ImageEntry{"mlp_mnist", [] { return make_mnist_mlp(); }}};

struct TransformerEntry {
  std::string_view name;
  TransformerDimensions dimensions;
};

/// [Radford 2019, table 2]; huggingface.co/openai-community/gpt2*/config.json.
constexpr TransformerDimensions gpt2(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .vocabulary = 50257,
          .sequence_length = 1024,
          .positions = 1024};
}

/// [Touvron 2023, arXiv:2307.09288]; huggingface.co/meta-llama/Llama-2-*-hf/config.json.
constexpr TransformerDimensions llama2(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                                       std::int64_t kv_heads, std::int64_t feed_forward) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .kv_heads = kv_heads,
          .feed_forward = feed_forward,
          .vocabulary = 32000,
          .sequence_length = 4096,
          .gated_feed_forward = true,
          .rms_norm = true,
          .bias = false,
          .tied_output = false,
          .activation = ActivationKind::silu};
}

/// [Grattafiori 2024, arXiv:2407.21783, table 3]; pytorch/torchtitan models/llama3.
constexpr TransformerDimensions llama3(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                                       std::int64_t feed_forward) {
  TransformerDimensions d = llama2(layers, hidden, heads, 8, feed_forward);
  d.vocabulary = 128256;
  d.sequence_length = 8192;
  d.rotary_theta = 500000;
  return d;
}

/// [Devlin 2019, arXiv:1810.04805, section 3];
/// huggingface.co/google-bert/bert-*-uncased/config.json.
constexpr TransformerDimensions bert(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  return {.layers = layers,
          .hidden = hidden,
          .heads = heads,
          .vocabulary = 30522,
          .sequence_length = 512,
          .positions = 512,
          .token_types = 2,
          .causal = false,
          .post_norm = true,
          .dropout = 0.1};
}

constexpr std::array kTransformers{TransformerEntry{"gpt2_small", gpt2(12, 768, 12)},
                                   TransformerEntry{"gpt2_medium", gpt2(24, 1024, 16)},
                                   TransformerEntry{"gpt2_large", gpt2(36, 1280, 20)},
                                   TransformerEntry{"gpt2_xl", gpt2(48, 1600, 25)},
                                   TransformerEntry{"llama2_7b", llama2(32, 4096, 32, 32, 11008)},
                                   TransformerEntry{"llama2_13b", llama2(40, 5120, 40, 40, 13824)},
                                   TransformerEntry{"llama2_70b", llama2(80, 8192, 64, 8, 28672)},
                                   TransformerEntry{"llama3_8b", llama3(32, 4096, 32, 14336)},
                                   TransformerEntry{"llama3_70b", llama3(80, 8192, 64, 28672)},
                                   TransformerEntry{"bert_base", bert(12, 768, 12)},
                                   TransformerEntry{"bert_large", bert(24, 1024, 16)}};

constexpr std::int64_t kLongestRotary = std::int64_t{1} << 20;

const TransformerDimensions* find_transformer(std::string_view name) {
  for (const TransformerEntry& entry : kTransformers) {
    if (entry.name == name) return &entry.dimensions;
  }
  return nullptr;
}

/// The zoo's own dimensions are right: what is wrong with them is a mistake of ours.
ModelGraph built(Expected<ModelGraph> graph) {
  RECKON_CHECK(graph.has_value());
  return std::move(*graph);
}

}  // namespace

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const ImageEntry& entry : kImageModels) names.emplace_back(entry.name);
  for (const TransformerEntry& entry : kTransformers) names.emplace_back(entry.name);
  return names;
}

std::optional<ModelGraph> zoo_model(std::string_view name,
                                    std::optional<std::int64_t> sequence_length) {
  for (const ImageEntry& entry : kImageModels) {
    if (entry.name == name) return built(entry.build());
  }
  const TransformerDimensions* own = find_transformer(name);
  if (!own) return std::nullopt;
  TransformerDimensions d = *own;
  d.sequence_length = sequence_length.value_or(d.sequence_length);
  if (d.sequence_length < 1 || d.sequence_length > zoo_longest_sequence(name)) return std::nullopt;
  return built(make_transformer(std::string(name), d));
}

bool zoo_takes_sequence_length(std::string_view name) { return find_transformer(name) != nullptr; }

std::int64_t zoo_longest_sequence(std::string_view name) {
  const TransformerDimensions* d = find_transformer(name);
  if (!d) return 0;
  return d->positions > 0 ? d->positions : kLongestRotary;
}

}  // namespace reckon
