#include "sim/catalog/model_zoo.h"

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "sim/catalog/model_zoo_detection.h"
#include "sim/catalog/model_zoo_images.h"
#include "sim/catalog/model_zoo_records.h"
#include "sim/catalog/model_zoo_speech.h"
#include "sim/catalog/model_zoo_tables.h"
#include "sim/catalog/model_zoo_translation.h"

namespace reckon {
namespace {

/// Models of one size of sample.
struct FixedModel {
  std::string_view name;
  Expected<ModelGraph> (*build)();
};

// Blocks a stage: [He 2016, table 1].
constexpr std::array kFixedModels{
    FixedModel{"resnet18",
               [] {
                 return make_resnet("resnet18", {{2, 2, 2, 2}});
               }},
    FixedModel{"resnet34",
               [] {
                 return make_resnet("resnet34", {{3, 4, 6, 3}});
               }},
    FixedModel{"resnet50",
               [] {
                 return make_resnet("resnet50", {{3, 4, 6, 3}, true, false});
               }},
    FixedModel{"resnet50_v1_5",
               [] {
                 return make_resnet("resnet50_v1_5", {{3, 4, 6, 3}, true, true});
               }},
    FixedModel{"resnet101",
               [] {
                 return make_resnet("resnet101", {{3, 4, 23, 3}, true, false});
               }},
    FixedModel{"resnet101_v1_5",
               [] {
                 return make_resnet("resnet101_v1_5", {{3, 4, 23, 3}, true, true});
               }},
    FixedModel{"resnet152",
               [] {
                 return make_resnet("resnet152", {{3, 8, 36, 3}, true, false});
               }},
    FixedModel{"resnet152_v1_5",
               [] {
                 return make_resnet("resnet152_v1_5", {{3, 8, 36, 3}, true, true});
               }},
    FixedModel{"resnet18_cifar10",
               [] {
                 ResNetShape shape{{2, 2, 2, 2}};
                 shape.small_images = true;
                 shape.classes = 10;
                 return make_resnet("resnet18_cifar10", shape);
               }},
    FixedModel{"resnext50_32x4d",
               [] {
                 return make_resnet("resnext50_32x4d", {{3, 4, 6, 3}, true, true, 32, 4});
               }},
    FixedModel{"resnext101_32x4d",
               [] {
                 return make_resnet("resnext101_32x4d", {{3, 4, 23, 3}, true, true, 32, 4});
               }},
    FixedModel{"wide_resnet50_2",
               [] {
                 return make_resnet("wide_resnet50_2", {{3, 4, 6, 3}, true, true, 1, 128});
               }},
    FixedModel{"ssd300_resnet34",
               [] {
                 return make_ssd300("ssd300_resnet34", {{{3, 4, 6, 3}}, false});
               }},
    FixedModel{"ssd300_resnet50",
               [] {
                 return make_ssd300("ssd300_resnet50", {{{3, 4, 6, 3}, true, true}, true});
               }},
    FixedModel{"retinanet",
               [] {
                 return make_retinanet("retinanet", {{{3, 4, 6, 3}, true, true}, 91});
               }},
    FixedModel{
        "retinanet_mlperf",
        [] {
          return make_retinanet("retinanet_mlperf", {{{3, 4, 6, 3}, true, true, 32, 4}, 264});
        }},
    FixedModel{"mask_rcnn",
               [] {
                 return make_mask_rcnn("mask_rcnn", {{{3, 4, 6, 3}, true, true}, 91});
               }},
    FixedModel{"mask_rcnn_mlperf",
               [] {
                 return make_mask_rcnn("mask_rcnn_mlperf", {{{3, 4, 6, 3}, true, false}, 81});
               }},
    FixedModel{"unet3d_kits19", [] { return make_unet3d_kits19(); }},
    FixedModel{"vgg11",
               [] {
                 return make_vgg("vgg11", {1, 1, 2, 2, 2});
               }},
    FixedModel{"vgg16",
               [] {
                 return make_vgg("vgg16", {2, 2, 3, 3, 3});
               }},
    FixedModel{"vgg19",
               [] {
                 return make_vgg("vgg19", {2, 2, 4, 4, 4});
               }},
    FixedModel{"alexnet", [] { return make_alexnet(); }},
    FixedModel{"inception_v3", [] { return make_inception_v3(); }},
    // Width, depth, resolution and dropout: [Tan 2019, arXiv:1905.11946] and its
    // tensorflow/tpu:models/official/efficientnet/efficientnet_builder.py.
    FixedModel{"efficientnet_b0",
               [] {
                 return make_efficientnet("efficientnet_b0", {1.0, 1.0, 224, 0.2});
               }},
    FixedModel{"efficientnet_b1",
               [] {
                 return make_efficientnet("efficientnet_b1", {1.0, 1.1, 240, 0.2});
               }},
    FixedModel{"efficientnet_b2",
               [] {
                 return make_efficientnet("efficientnet_b2", {1.1, 1.2, 260, 0.3});
               }},
    FixedModel{"efficientnet_b3",
               [] {
                 return make_efficientnet("efficientnet_b3", {1.2, 1.4, 300, 0.3});
               }},
    FixedModel{"efficientnet_b4",
               [] {
                 return make_efficientnet("efficientnet_b4", {1.4, 1.8, 380, 0.4});
               }},
    // [Dosovitskiy 2021, arXiv:2010.11929, table 1].
    FixedModel{"vit_ti_16",
               [] {
                 return make_vision_transformer("vit_ti_16", {12, 192, 3, 768, 16});
               }},
    FixedModel{"vit_s_16",
               [] {
                 return make_vision_transformer("vit_s_16", {12, 384, 6, 1536, 16});
               }},
    FixedModel{"vit_b_16",
               [] {
                 return make_vision_transformer("vit_b_16", {12, 768, 12, 3072, 16});
               }},
    FixedModel{"vit_b_32",
               [] {
                 return make_vision_transformer("vit_b_32", {12, 768, 12, 3072, 32});
               }},
    FixedModel{"vit_l_16",
               [] {
                 return make_vision_transformer("vit_l_16", {24, 1024, 16, 4096, 16});
               }},
    FixedModel{"vit_l_32",
               [] {
                 return make_vision_transformer("vit_l_32", {24, 1024, 16, 4096, 32});
               }},
    FixedModel{"vit_h_14",
               [] {
                 return make_vision_transformer("vit_h_14", {32, 1280, 16, 5120, 14});
               }},
    FixedModel{"alphago_zero_20", [] { return make_alphago_zero("alphago_zero_20", 20); }},
    FixedModel{"alphago_zero_40", [] { return make_alphago_zero("alphago_zero_40", 40); }},
    FixedModel{"dlrm_mlperf", [] { return make_dlrm_mlperf(); }},
    FixedModel{"dlrm_dcnv2_mlperf", [] { return make_dlrm_dcnv2_mlperf(); }},
    FixedModel{"ncf", [] { return make_ncf(); }},
    FixedModel{"yolov3", [] { return make_yolov3(); }},
    FixedModel{"mlp_boston_housing", [] { return make_boston_housing_mlp(); }},
    FixedModel{"mlp_mnist", [] { return make_mnist_mlp(); }}};

constexpr std::int64_t kLongestSequence = std::int64_t{1} << 20;

/// [Vaswani 2017, table 3, "big"]; section 5.1: 37,000 tokens that both languages share. Sentences
/// of WMT 2014 are shorter than 64 tokens, with few exceptions.
constexpr std::string_view kTransformerBig = "transformer_big";
constexpr TranslationShape kTransformerBigShape{.layers = 6,
                                                .hidden = 1024,
                                                .heads = 16,
                                                .feed_forward = 4096,
                                                .vocabulary = 37000,
                                                .sequence_length = 64,
                                                .dropout = 0.3};

/// LibriSpeech's 960 hours of training are 281,241 utterances [Panayotov 2015, table 1]: 12.3 s,
/// 410 frames of 30 ms, and 33 words [9.4 million words: the same, section 3] of about 1.5 pieces
/// each.
constexpr std::string_view kRnnt = "rnnt";
constexpr TransducerShape kRnntShape{.frames = 410, .symbols = 50};
/// bptt of the example.
constexpr std::string_view kLstmWords = "lstm_lm_wikitext2";
constexpr std::int64_t kLstmWordsLength = 35;

const LanguageModel* find_language_model(std::string_view name) {
  for (const LanguageModel& model : language_models()) {
    if (model.name == name) return &model;
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
  for (const FixedModel& entry : kFixedModels) names.emplace_back(entry.name);
  for (const LanguageModel& model : language_models()) names.emplace_back(model.name);
  names.emplace_back(kTransformerBig);
  names.emplace_back(kRnnt);
  names.emplace_back(kLstmWords);
  return names;
}

std::optional<ModelGraph> zoo_model(std::string_view name,
                                    std::optional<std::int64_t> sequence_length) {
  for (const FixedModel& entry : kFixedModels) {
    if (entry.name == name) return built(entry.build());
  }
  const std::int64_t longest = zoo_longest_sequence(name);
  if (sequence_length && (*sequence_length < 1 || *sequence_length > longest)) return std::nullopt;
  if (name == kTransformerBig) {
    TranslationShape shape = kTransformerBigShape;
    shape.sequence_length = sequence_length.value_or(shape.sequence_length);
    return built(make_translation_transformer(std::string(name), shape));
  }
  if (name == kLstmWords)
    return built(
        make_lstm_language_model(std::string(name), sequence_length.value_or(kLstmWordsLength)));
  if (name == kRnnt) {
    TransducerShape shape = kRnntShape;
    if (sequence_length) {
      shape.symbols = std::max<std::int64_t>(1, shape.symbols * *sequence_length / shape.frames);
      shape.frames = *sequence_length;
    }
    return built(make_rnnt(std::string(name), shape));
  }
  const LanguageModel* own = find_language_model(name);
  if (!own) return std::nullopt;
  TransformerDimensions d = own->dimensions;
  d.sequence_length = sequence_length.value_or(d.sequence_length);
  if (own->positions_follow_sequence) d.positions = d.sequence_length;
  return built(make_transformer(std::string(name), d));
}

bool zoo_takes_sequence_length(std::string_view name) { return zoo_longest_sequence(name) > 0; }

std::int64_t zoo_longest_sequence(std::string_view name) {
  if (name == kTransformerBig || name == kLstmWords) return kLongestSequence;
  // Pairs of frames and symbols grow with its square.
  if (name == kRnnt) return 1 << 14;
  const LanguageModel* own = find_language_model(name);
  if (!own) return 0;
  const bool table = own->dimensions.positions > 0 && !own->positions_follow_sequence;
  return table ? own->dimensions.positions : kLongestSequence;
}

}  // namespace reckon
