#include "sim/model/zoo/zoo.h"

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "sim/model/blocks/networks.h"
#include "sim/model/zoo/diffusion.h"
#include "sim/model/zoo/language.h"
#include "sim/model/zoo/records.h"
#include "sim/model/zoo/sampled_graphs.h"
#include "sim/model/zoo/speech.h"
#include "sim/model/zoo/tables.h"
#include "sim/model/zoo/translation.h"
#include "sim/model/zoo/vision/cifar.h"
#include "sim/model/zoo/vision/detection.h"
#include "sim/model/zoo/vision/images.h"

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
    FixedModel{"resnet164_cifar10",
               [] {
                 return make_deep_cifar_resnet("resnet164_cifar10", {18, true});
               }},
    FixedModel{"resnet164_basic_cifar10",
               [] {
                 return make_deep_cifar_resnet("resnet164_basic_cifar10", {27, false});
               }},
    FixedModel{"resnet9_cifar10", [] { return make_resnet9_cifar10(); }},
    FixedModel{"resnext50_32x4d",
               [] {
                 return make_resnet("resnext50_32x4d", {{3, 4, 6, 3}, true, true, 32, 4});
               }},
    FixedModel{"resnext101_32x4d",
               [] {
                 return make_resnet("resnext101_32x4d", {{3, 4, 23, 3}, true, true, 32, 4});
               }},
    FixedModel{"se_resnext101_32x4d",
               [] {
                 ResNetShape shape{{3, 4, 23, 3}, true, true, 32, 4};
                 shape.squeeze = 16;
                 return make_resnet("se_resnext101_32x4d", shape);
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
    FixedModel{"efficientdet_d0", [] { return make_efficientdet("efficientdet_d0", {}); }},
    FixedModel{"unet3d_kits19",
               [] {
                 return make_unet3d("unet3d_kits19", {1, 3, 1});
               }},
    FixedModel{"unet3d_brats",
               [] {
                 return make_unet3d("unet3d_brats", {4, 4, 3});
               }},
    FixedModel{"nnunet_3d",
               [] {
                 return make_unet3d("nnunet_3d", {4, 4, 1});
               }},
    FixedModel{"nnunet_2d", [] { return make_nnunet_2d(); }},
    FixedModel{"vnet", [] { return make_vnet(); }},
    FixedModel{"stable_diffusion_v2", [] { return make_stable_diffusion_v2(); }},
    FixedModel{"sngan_cifar10", [] { return make_sngan_cifar10(); }},
    // [Peebles 2023, arXiv:2212.09748, table 1], latents of 32 x 32: images of 256 x 256.
    FixedModel{"dit_b_2",
               [] {
                 return make_network("dit_b_2", DiffusionTransformer{12, 768, 12});
               }},
    FixedModel{"dit_l_2",
               [] {
                 return make_network("dit_l_2", DiffusionTransformer{24, 1024, 16});
               }},
    FixedModel{"dit_xl_2",
               [] {
                 return make_network("dit_xl_2", DiffusionTransformer{28, 1152, 16});
               }},
    // mlcommons/training:text_to_image/torchtitan trains the architecture of FLUX.1-schnell on
    // images of 256 x 256: 256 tokens of latents, 256 of T5's.
    FixedModel{"flux_1_schnell_mlperf",
               [] {
                 FluxTransformer n;
                 n.text_tokens = 256;
                 return make_network("flux_1_schnell_mlperf", n, 256);
               }},
    FixedModel{"densenet121",
               [] {
                 return make_densenet("densenet121", {{6, 12, 24, 16}, 32});
               }},
    FixedModel{"densenet161",
               [] {
                 return make_densenet("densenet161", {{6, 12, 36, 24}, 48});
               }},
    FixedModel{"densenet201",
               [] {
                 return make_densenet("densenet201", {{6, 12, 48, 32}, 32});
               }},
    FixedModel{"convnext_tiny",
               [] {
                 return make_convnext("convnext_tiny", {{3, 3, 9, 3}, 96, 0.1});
               }},
    FixedModel{"convnext_small",
               [] {
                 return make_convnext("convnext_small", {{3, 3, 27, 3}, 96, 0.4});
               }},
    FixedModel{"convnext_base",
               [] {
                 return make_convnext("convnext_base", {{3, 3, 27, 3}, 128, 0.5});
               }},
    FixedModel{"convnext_large",
               [] {
                 return make_convnext("convnext_large", {{3, 3, 27, 3}, 192, 0.5});
               }},
    FixedModel{"mobilenet_v2", [] { return make_mobilenet_v2(); }},
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
    FixedModel{"efficientnet_b5",
               [] {
                 return make_efficientnet("efficientnet_b5", {1.6, 2.2, 456, 0.4});
               }},
    FixedModel{"efficientnet_widese_b0",
               [] {
                 return make_efficientnet("efficientnet_widese_b0", {1.0, 1.0, 224, 0.2, true});
               }},
    FixedModel{"efficientnet_widese_b4",
               [] {
                 return make_efficientnet("efficientnet_widese_b4", {1.4, 1.8, 380, 0.4, true});
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
    FixedModel{"rgat_mlperf", [] { return make_rgat_mlperf(); }},
    FixedModel{"ncf", [] { return make_ncf(); }},
    FixedModel{"ncf_ml1m", [] { return make_ncf_ml1m(); }},
    FixedModel{"wide_and_deep", [] { return make_wide_and_deep(); }},
    FixedModel{"vae_cf", [] { return make_vae_cf(); }},
    FixedModel{"yolov3", [] { return make_yolov3(); }},
    FixedModel{"mlp_boston_housing", [] { return make_boston_housing_mlp(); }},
    FixedModel{"mlp_mnist", [] { return make_mnist_mlp(); }}};

constexpr std::int64_t kLongestSequence = std::int64_t{1} << 20;
/// Pairs of frames and symbols, of words and words grow with its square.
constexpr std::int64_t kLongestOfPairs = 1 << 14;

/// Models of sequences that are no plain transformers.
struct SequenceModel {
  std::string_view name;
  std::int64_t length;  // of its own data
  std::int64_t longest;
  Expected<ModelGraph> (*build)(std::string name, std::int64_t length);
};

/// [Vaswani 2017, table 3, "big"]; section 5.1: 37,000 tokens that both languages share. Sentences
/// of WMT 2014 are shorter than 64 tokens, with few exceptions.
Expected<ModelGraph> transformer_big(std::string name, std::int64_t length) {
  return make_translation_transformer(std::move(name), {.layers = 6,
                                                        .hidden = 1024,
                                                        .heads = 16,
                                                        .feed_forward = 4096,
                                                        .vocabulary = 37000,
                                                        .sequence_length = length,
                                                        .dropout = 0.3});
}

/// The paper's base model (table 3) over the words of Multi30k that stand there five times or more:
/// jadore801120/attention-is-all-you-need-pytorch, README, which Gavel trains.
Expected<ModelGraph> transformer_multi30k(std::string name, std::int64_t length) {
  return make_translation_transformer(std::move(name), {.layers = 6,
                                                        .hidden = 512,
                                                        .heads = 8,
                                                        .feed_forward = 2048,
                                                        .vocabulary = 3149,
                                                        .sequence_length = length,
                                                        .dropout = 0.1,
                                                        .source_vocabulary = 2909});
}

/// NVIDIA/DeepLearningExamples:PyTorch/LanguageModeling/Transformer-XL/pytorch/wt103_base.yaml and
/// wt103_large.yaml: WikiText-103's 267,735 words; `adaptive` as they have it.
TransformerXlShape transformer_xl(bool large, bool adaptive, std::int64_t length) {
  TransformerXlShape s{.layers = 16,
                       .hidden = 512,
                       .heads = 8,
                       .head_width = 64,
                       .feed_forward = 2048,
                       .cutoffs = {267735},
                       .dropout = 0.1,
                       .segment = length};
  if (large) {
    s.layers = 18;
    s.hidden = 1024;
    s.heads = 16;
    s.feed_forward = 4096;
    s.dropout = s.attention_dropout = 0.2;
  }
  if (!adaptive) return s;
  s.cutoffs = {19997, 39997, 199997, 267735};
  s.narrower = large ? 4 : 1;
  return s;
}
template <bool large, bool adaptive>
Expected<ModelGraph> make_xl(std::string name, std::int64_t length) {
  return make_transformer_xl(std::move(name), transformer_xl(large, adaptive, length));
}

/// LibriSpeech's 960 hours of training are 281,241 utterances [Panayotov 2015, table 1]: 12.3 s,
/// 410 frames of 30 ms, and 33 words [9.4 million words: the same, section 3] of about 1.5 pieces
/// each.
constexpr TransducerShape kRnntShape{.frames = 410, .symbols = 50};
Expected<ModelGraph> rnnt(std::string name, std::int64_t length) {
  const std::int64_t symbols = kRnntShape.symbols * length / kRnntShape.frames;
  return make_rnnt(std::move(name), {length, std::max<std::int64_t>(1, symbols)});
}

constexpr std::array kSequenceModels{
    SequenceModel{"transformer_big", 64, kLongestSequence, transformer_big},
    // 12 words a sentence, and start and end; a batch is padded to its longest, about twice that.
    SequenceModel{"transformer_multi30k", 28, kLongestSequence, transformer_multi30k},
    // WMT 2016 without pairs of more than 50 pieces: about 25 a sentence; buckets ten wide pad
    // five more on average.
    SequenceModel{"gnmt", 30, kLongestOfPairs, make_gnmt},
    SequenceModel{"transformer_xl_base", 192, kLongestSequence, make_xl<false, true>},
    SequenceModel{"transformer_xl_large", 384, kLongestSequence, make_xl<true, true>},
    // As lambdal/deeplearning-benchmark:pytorch/results prints its runs: adaptive=False,
    // div_val=1; the large one with tgt_len=256.
    SequenceModel{"transformer_xl_base_softmax", 192, kLongestSequence, make_xl<false, false>},
    SequenceModel{"transformer_xl_large_softmax", 256, kLongestSequence, make_xl<true, false>},
    SequenceModel{"electra_base", 512, 512, make_electra_base},
    // Summaries of XSum [the reference's README]: a text of 1,024 pieces, a summary of 60. Of a
    // length of its own: pre-training, which writes the whole text again.
    SequenceModel{"bart_large", 512, 1024,
                  [](std::string name, std::int64_t length) {
                    return make_bart_large(std::move(name), length, length);
                  }},
    SequenceModel{"bart_large_xsum", 1024, 1024,
                  [](std::string name, std::int64_t length) {
                    return make_bart_large(std::move(name), length,
                                           std::min<std::int64_t>(60, length));
                  }},
    SequenceModel{"rnnt", kRnntShape.frames, kLongestOfPairs, rnnt},
    // The longest utterance of LibriSpeech that is trained on, 16.7 s of frames of 10 ms, to which
    // the references' benchmarks pad, and to a multiple of 16.
    SequenceModel{"jasper", 1680, kLongestSequence, make_jasper},
    SequenceModel{"quartznet", 1680, kLongestSequence, make_quartznet},
    // CMU ARCTIC: 3 s a sentence; a batch is padded to its longest, about 5 s.
    SequenceModel{"deepspeech2", 500, kLongestSequence, make_deepspeech2},
    // bptt of the example.
    SequenceModel{"lstm_lm_wikitext2", 35, kLongestSequence, make_lstm_language_model}};

const SequenceModel* find_sequence_model(std::string_view name) {
  for (const SequenceModel& model : kSequenceModels)
    if (model.name == name) return &model;
  return nullptr;
}

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
  for (const SequenceModel& model : kSequenceModels) names.emplace_back(model.name);
  return names;
}

std::optional<ModelGraph> zoo_model(std::string_view name,
                                    std::optional<std::int64_t> sequence_length) {
  for (const FixedModel& entry : kFixedModels) {
    if (entry.name == name) return built(entry.build());
  }
  const std::int64_t longest = zoo_longest_sequence(name);
  if (sequence_length && (*sequence_length < 1 || *sequence_length > longest)) return std::nullopt;
  if (const SequenceModel* own = find_sequence_model(name))
    return built(own->build(std::string(name), sequence_length.value_or(own->length)));
  const LanguageModel* own = find_language_model(name);
  if (!own) return std::nullopt;
  TransformerDimensions d = own->dimensions;
  d.sequence_length = sequence_length.value_or(d.sequence_length);
  if (own->positions_follow_sequence) d.positions = d.sequence_length;
  return built(make_transformer(std::string(name), d));
}

bool zoo_takes_sequence_length(std::string_view name) { return zoo_longest_sequence(name) > 0; }

std::int64_t zoo_longest_sequence(std::string_view name) {
  if (const SequenceModel* own = find_sequence_model(name)) return own->longest;
  const LanguageModel* own = find_language_model(name);
  if (!own) return 0;
  const bool table = own->dimensions.positions > 0 && !own->positions_follow_sequence;
  return table ? own->dimensions.positions : kLongestSequence;
}

}  // namespace reckon
