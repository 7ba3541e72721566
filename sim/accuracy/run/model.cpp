#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "sim/accuracy/run/plan.h"
#include "sim/model/zoo/tables.h"
#include "sim/model/zoo/zoo.h"

// Which network a row of measurements ran.
namespace reckon {
namespace {

/// Names under which timm and MLPerf list models of the zoo.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kOtherNames{
    {{"dlrm", "dlrm_mlperf"},
     {"dlrm_dcnv2", "dlrm_dcnv2_mlperf"},
     {"rgat", "rgat_mlperf"},
     {"retinanet", "retinanet_mlperf"},
     {"mask_rcnn", "mask_rcnn_mlperf"},
     {"ssd300", "ssd300_resnet34"},
     {"unet3d", "unet3d_kits19"},
     {"mobilenetv2_100", "mobilenet_v2"},
     {"vit_tiny_patch16_224", "vit_ti_16"},
     {"vit_small_patch16_224", "vit_s_16"},
     {"deit_small_patch16_224", "vit_s_16"},
     {"deit_base_patch16_224", "vit_b_16"},
     {"vit_base_patch16_224", "vit_b_16"},
     {"vit_base_patch32_224", "vit_b_32"},
     {"vit_large_patch16_224", "vit_l_16"}}};

/// What Lambda's rows print as their framework.
constexpr std::string_view kLambda = "PyTorch NGC / DeepLearningExamples";

/// Of models that sources print tokens a second of: tokens of a sample of the zoo's length, of the
/// languages that are counted.
struct CountedTokens {
  std::string_view model;
  double tokens;
  bool batch_in_tokens = false;
};
constexpr std::array kCountedTokens{
    // NVIDIA's GNMT counts both languages, without padding [seq2seq/train/trainer.py]; sentences
    // are padded by five tokens on average, as its entry in the zoo says.
    CountedTokens{"gnmt", 2 * 25}, CountedTokens{"transformer_xl_base", 192},
    CountedTokens{"transformer_xl_large", 384}, CountedTokens{"transformer_xl_base_softmax", 192},
    CountedTokens{"transformer_xl_large_softmax", 256},
    // Its batch is filled with sentences up to so many tokens [train.py, --max-tokens]; tokens of
    // the target are counted.
    CountedTokens{"transformer_big", 64, true}};

std::string_view zoo_name(std::string_view name) {
  for (const auto& [other, own] : kOtherNames)
    if (other == name) return own;
  return name;
}

/// MLPerf's BERT runs without padding: 512 tokens are the longest sequence, about 250 the mean of
/// the corpus (general knowledge; MLPerf's own packing statistics are of this order). SQuAD runs
/// are padded to the length printed.
constexpr std::int64_t kMeanOfUnpaddedBert = 250;
/// NVIDIA's PyTorch and Paddle examples bin the sequences of their second phase by length and pad
/// them to the bin's, a multiple of 64 [NVIDIA/LDDL README, "sequence binning";
/// DeepLearningExamples, BERT for PyTorch, "dataset"]: the mean, and half a bin.
constexpr std::int64_t kMeanOfBinnedBert = 250 + 64 / 2;

std::int64_t sequence_of(const RunConfiguration& run) {
  const bool unpadded =
      run.model == "bert_large" && run.stack.ends_with("mlperf") && run.sequence_length == 512;
  const bool binned = run.model == "bert_large" && run.sequence_length == 512 &&
                      (run.stack == "pytorch-ngc" || run.stack == "paddle-ngc");
  if (binned) return kMeanOfBinnedBert;
  return unpadded ? kMeanOfUnpaddedBert : run.sequence_length;
}

/// The zoo's network of a variant as sources write it: llama3.1-405b is llama3_1_405b; what stands
/// behind a blank is how it is trained. "": none.
std::string zoo_name_of_variant(std::string_view variant) {
  std::string name(variant.substr(0, variant.find(' ')));
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == '.'; }, '_');
  const std::vector<std::string> known = zoo_names();
  return std::ranges::find(known, name) == known.end() ? "" : name;
}

/// "deepseek-v2-l4" is deepseek-v2, cut to four layers.
std::string_view uncut(std::string_view variant) {
  const std::size_t at = variant.rfind("-l");
  if (at == std::string_view::npos || at + 2 == variant.size()) return variant;
  const bool digits =
      std::ranges::all_of(variant.substr(at + 2), [](char c) { return c >= '0' && c <= '9'; });
  return digits ? variant.substr(0, at) : variant;
}

/// What the row has no columns for, or left blank: latent attention and the first blocks without
/// experts are those of the network that its variant names.
void add_latent_attention(const RunConfiguration& run, TransformerDimensions& d) {
  const std::string name = zoo_name_of_variant(uncut(run.variant));
  const auto models = language_models();
  const auto named = std::ranges::find(models, std::string_view(name), &LanguageModel::name);
  const bool known = named != models.end() && named->dimensions.kv_lora_rank > 0;
  if (run.kv_lora_rank == 0 && !known) return;
  const auto or_known = [&](std::int64_t printed, std::int64_t TransformerDimensions::*member) {
    return printed > 0 || !known ? printed : named->dimensions.*member;
  };
  using T = TransformerDimensions;
  const bool printed = run.kv_lora_rank > 0;
  d.kv_heads = d.head_width = 0;
  d.kv_lora_rank = or_known(run.kv_lora_rank, &T::kv_lora_rank);
  d.q_lora_rank = printed ? run.q_lora_rank : named->dimensions.q_lora_rank;
  d.nope_head_width = or_known(run.nope_head_width, &T::nope_head_width);
  d.rope_head_width = or_known(run.rope_head_width, &T::rope_head_width);
  d.value_head_width = or_known(run.value_head_width, &T::value_head_width);
  d.dense_layers = std::min(or_known(run.dense_layers, &T::dense_layers), run.layers);
  d.feed_forward = or_known(run.dense_feed_forward, &T::feed_forward);
}

/// The rank of MLPerf's LoRA benchmark, for rows that print none
/// [mlcommons/training:llama2_70b_lora README, "rank 16"].
constexpr int kLoraRank = 16;

/// Gated feed-forward parts come with RMS norms, rotary positions and no biases (Llama and all that
/// followed it), plain ones with layer norms, learned positions and biases (GPT-2, GPT-3, MPT,
/// BLOOM).
TransformerDimensions dimensions_of(const RunConfiguration& run) {
  TransformerDimensions d;
  d.layers = run.layers;
  d.hidden = run.hidden;
  d.heads = run.heads;
  d.kv_heads = run.kv_heads;
  d.head_width = run.head_width;
  d.feed_forward = run.feed_forward;
  d.vocabulary = run.vocabulary;
  d.sequence_length = run.sequence_length;
  d.gated_feed_forward = run.gated_feed_forward.value_or(false);
  if (d.gated_feed_forward) {
    d.rms_norm = true;
    d.bias = false;
    d.activation = ActivationKind::silu;
  } else {
    d.positions = d.sequence_length;
  }
  if (run.experts > 0) {
    d.experts = run.experts;
    d.experts_per_token = run.experts_per_token;
    d.expert_feed_forward = run.feed_forward;
    d.shared_feed_forward = run.shared_experts * run.feed_forward;
    d.dense_layers = run.dense_layers;
    if (run.dense_feed_forward > 0) d.feed_forward = run.dense_feed_forward;
    add_latent_attention(run, d);
  }
  return d;
}

struct Parameters {
  double all = 0, active = 0;
};
/// Blocks behind the dense ones are alike, so two small networks tell the parameters of the whole.
tl::expected<Parameters, std::string> parameters_of(TransformerDimensions d) {
  const double more = double(d.layers - d.dense_layers - 1);
  Parameters few[2];
  for (const int i : {0, 1}) {
    d.layers = d.dense_layers + i + 1;
    const auto model = make_transformer("blocks", d);
    if (!model) return tl::unexpected(model.error().front().what);
    few[i] = {double(model->parameters()), double(model->active_parameters())};
  }
  return Parameters{few[0].all + (few[1].all - few[0].all) * more,
                    few[0].active + (few[1].active - few[0].active) * more};
}

/// How far the dimensions are from the printed number of parameters: of all, else of the active.
tl::expected<double, std::string> off_by(const RunConfiguration& run,
                                         const TransformerDimensions& d) {
  const auto parameters = parameters_of(d);
  if (!parameters) return tl::unexpected(parameters.error());
  return std::abs(run.parameters > 0 ? parameters->all / run.parameters - 1
                                     : parameters->active / run.active_parameters - 1);
}

/// Whether the output projection shares the embedding is often not printed, nor how many of its
/// first layers a cut network keeps: what comes nearest to the printed parameters. The error of
/// that.
tl::expected<double, std::string> fit_to_parameters(const RunConfiguration& run,
                                                    TransformerDimensions& d) {
  const std::int64_t dense = d.dense_layers, fewest = run.dense_layers > 0 ? dense : 0;
  double best_off = std::numeric_limits<double>::infinity();
  TransformerDimensions tried = d;
  for (const bool tied : {false, true})
    for (tried.dense_layers = dense; tried.dense_layers >= fewest; --tried.dense_layers) {
      tried.tied_output = tied;
      const auto off = off_by(run, tried);
      if (!off) return off;
      if (*off >= best_off) continue;
      best_off = *off;
      d = tried;
    }
  return best_off;
}

tl::expected<ModelSpec, std::string> transformer_of(const RunConfiguration& run) {
  const auto absent = [](std::string_view what) {
    return tl::unexpected<std::string>(fmt::format("{} of the model is not printed", what));
  };
  if (run.layers == 0) return absent("the number of layers");
  if (run.hidden == 0 || run.heads == 0) return absent("the width");
  if (run.sequence_length == 0) return absent("the sequence length");
  if (run.vocabulary == 0) return absent("the vocabulary");
  if (run.experts > 0 && run.experts_per_token == 0) return absent("the number of experts a token");
  ModelFromTransformer best{dimensions_of(run), std::string(run.variant)};
  best.dimensions.tied_output = false;
  if (run.parameters == 0 && run.active_parameters == 0) return best;
  const auto best_off = fit_to_parameters(run, best.dimensions);
  if (!best_off) return tl::unexpected(best_off.error());
  constexpr double kMostOff = 0.1;  // of the parameters that are printed, a share
  if (*best_off > kMostOff)
    return tl::unexpected(
        fmt::format("the dimensions of {} do not give its printed parameters", run.variant));
  return best;
}

}  // namespace

tl::expected<RunModel, std::string> model_of_run(const RunConfiguration& run) {
  RunModel model;
  if (run.model == "gpt" || run.model == "moe" || run.model == "gpt_lora") {
    const std::string known = run.layers == 0 ? zoo_name_of_variant(run.variant) : "";
    if (!known.empty()) {
      model.spec = ModelByName{known};
      if (run.sequence_length > 0) model.sequence_length = run.sequence_length;
    } else {
      auto spec = transformer_of(run);
      if (!spec) return tl::unexpected(spec.error());
      model.spec = std::move(*spec);
    }
    if (run.model == "gpt_lora") model.finetune = Finetune{"lora", kLoraRank};
    return model;
  }
  std::string name(zoo_name(run.model));
  // On SQuAD, padded to 384, ELECTRA is its discriminator alone: a BERT.
  constexpr std::int64_t kSquad = 384;
  if (run.model == "electra_base" && run.sequence_length == kSquad) name = "bert_base";
  if (run.model == "bart_large" && run.sequence_length == 0) name = "bart_large_xsum";
  // Lambda runs NVIDIA's example without its adaptive softmax (lambdal/deeplearning-benchmark:
  // pytorch/results, "adaptive=False").
  if (run.model.starts_with("transformer_xl_") && run.framework == kLambda) name += "_softmax";
  // AdaptDL's example is on MovieLens 1M.
  if (run.model == "ncf" && run.stack.ends_with("adaptdl")) name = "ncf_ml1m";
  // MLPerf's SSD is on a ResNet-34, NVIDIA's example, which others run too, on a ResNet-50.
  if (run.model == "ssd300" && !run.stack.ends_with("mlperf")) name = "ssd300_resnet50";
  if (!zoo_model(name))
    return tl::unexpected(
        fmt::format("no model graph: {}{}", run.model, did_you_mean(run.model, zoo_names())));
  model.spec = ModelByName{name};
  if (zoo_takes_sequence_length(name) && run.sequence_length > 0)
    model.sequence_length = sequence_of(run);
  for (const CountedTokens& c : kCountedTokens) {
    if (c.model != name || run.sequence_length > 0) continue;
    model.tokens = c.tokens;
    model.batch_in_tokens = c.batch_in_tokens;
  }
  return model;
}

double tokens_of_run(const RunConfiguration& run) {
  const auto model = model_of_run(run);
  return model ? model->tokens : 0;
}

}  // namespace reckon
