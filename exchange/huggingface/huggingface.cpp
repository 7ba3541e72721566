#include "exchange/huggingface/huggingface.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "exchange/huggingface/family.h"

namespace reckon {
namespace {

using huggingface::Family;

const std::vector<Family>& families() {
  static const std::vector<Family> all = [] {
    std::vector<Family> rows;
    for (const auto table : {huggingface::transformer_families(), huggingface::decoder_families(),
                             huggingface::hybrid_families(), huggingface::encoder_families(),
                             huggingface::vision_families(), huggingface::diffusion_families()})
      rows.insert(rows.end(), table.begin(), table.end());
    std::ranges::sort(rows, {}, &Family::model_type);
    return rows;
  }();
  return all;
}

/// The family whose keys a file of another has: what its layers are most like.
std::string nearest_family(ConfigJson& c) {
  if (c.present("vision_config")) return "llava";
  if (c.present("num_mel_bins")) return "whisper";
  if (c.present("kv_lora_rank")) return "deepseek_v3";
  if (c.present("ssm_state_size") || c.present("mamba_d_state"))
    return c.present("num_attention_heads") ? "nemotron_h" : "mamba2";
  if (c.present("state_size")) return "mamba2";
  if (c.present("linear_num_key_heads")) return "qwen3_next";
  if (c.present("d_kv")) return "t5";
  if (c.present("encoder_layers")) return "bart";
  if (c.present("patch_size")) return "vit";
  if (c.present("type_vocab_size")) return "bert";
  if (c.present("num_local_experts")) return "mixtral";
  if (c.present("num_experts") || c.present("n_routed_experts")) return "qwen3_moe";
  return "llama";
}

/// What is covered, what is nearest, and what always works.
std::string hint(ConfigJson& c) {
  return fmt::format(
      "nearest by its keys: model_type {}; or give the sizes: model: {{transformer: {{layers: 32, "
      "hidden: 4096, ...}}}} (reckon schema shows its keys), or model: {{fx: graph.json}}\n"
      "model types: {}",
      nearest_family(c), fmt::join(huggingface_families(), ", "));
}

/// By model_type, or the class of diffusers; by the class, as "LlamaForCausalLM", where an old file
/// has neither.
const Family* family_of(ConfigJson& c) {
  const char* key = c.present("model_type") ? "model_type" : "_class_name";
  const std::string type = c.text(key, "");
  const std::string architecture = c.first_text("architectures");
  const Family* found = nullptr;
  for (const Family& family : families()) {
    if (type == family.model_type) return &family;
    const bool longer = found == nullptr || family.architecture.size() > found->architecture.size();
    if (type.empty() && architecture.starts_with(family.architecture) && longer) found = &family;
  }
  if (found != nullptr) return found;
  if (type.empty() && architecture.empty()) {
    c.mistake("", "key 'model_type' is missing", hint(c));
  } else if (type.empty()) {
    c.mistake("architectures",
              fmt::format("architecture '{}' is not covered", architecture.substr(0, 80)), hint(c));
  } else {
    c.mistake(key,
              fmt::format("model type '{}' is not covered{}", type.substr(0, 80),
                          did_you_mean(type, huggingface_families())),
              hint(c));
  }
  return nullptr;
}

/// So many blocks show whether sizes fit together.
constexpr std::size_t kThin = 12;
void make_thin(Stack& stack) {
  if (stack.blocks.size() > kThin) stack.blocks.resize(kThin);
}
void make_thin(TransformerDimensions& d) { d.layers = std::min(d.layers, d.dense_layers + 1); }
void make_thin(VisionTransformerDimensions& d) { d.layers = std::min<std::int64_t>(d.layers, 1); }
void make_thin(LanguageNetwork& n) { make_thin(n.stack); }
void make_thin(EncoderDecoder& n) {
  make_thin(n.encoder);
  make_thin(n.decoder);
}
void make_thin(VisionLanguage& n) {
  make_thin(n.vision.stack);
  make_thin(n.language);
}
void make_thin(DualEncoder& n) {
  make_thin(n.vision.stack);
  make_thin(n.text);
}
void make_thin(FluxTransformer& n) {
  n.double_blocks = std::min<std::int64_t>(n.double_blocks, 1);
  n.single_blocks = std::min<std::int64_t>(n.single_blocks, 1);
}
void make_thin(DiffusionTransformer& n) { n.layers = std::min<std::int64_t>(n.layers, 1); }

/// Sizes that do not fit together, said by the builder; a short sequence will do for that.
void check_dimensions(ConfigJson& c, const HuggingFaceModel& model) {
  HuggingFaceModel thin = model;
  std::visit([](auto& d) { make_thin(d); }, thin.dimensions);
  const auto made =
      make_model(thin, model.sequence_length > 0 ? std::nullopt : std::optional<std::int64_t>(1));
  if (made) return;
  for (const Diagnostic& d : made.error()) c.mistake("", d.what, d.hint);
}

/// Of a decoder as a classifier: a projection of one token without a bias, and no output of words.
void take_classifier(ConfigJson& c, HuggingFaceModel& model) {
  const std::string name = c.first_text("architectures");
  if (!name.ends_with("ForSequenceClassification")) return;
  if (auto* n = std::get_if<LanguageNetwork>(&model.dimensions)) {
    if (n->task != LanguageTask::next_token) return;
    n->task = LanguageTask::classes;
    n->classes = huggingface::labels(c);
    n->output_bias = false;
  } else if (std::holds_alternative<TransformerDimensions>(model.dimensions)) {
    model.notes.push_back(fmt::format(
        "the classifier of {} is not covered: an output of words is counted in its place",
        name.substr(0, 80)));
  }
}

Expected<ModelGraph> built(const std::string& name, const TransformerDimensions& given,
                           std::int64_t tokens) {
  TransformerDimensions d = given;
  d.sequence_length = tokens;
  return make_transformer(name, d);
}
Expected<ModelGraph> built(const std::string& name, const VisionTransformerDimensions& given,
                           std::int64_t /*tokens*/) {
  return make_vision_transformer(name, given);
}
Expected<ModelGraph> built(const std::string& name, const DiffusionTransformer& given,
                           std::int64_t /*tokens*/) {
  return make_network(name, given);
}
template <class Network>
Expected<ModelGraph> built(const std::string& name, const Network& given, std::int64_t tokens) {
  return make_network(name, given, tokens);
}

}  // namespace

std::vector<std::string> huggingface_families() {
  std::vector<std::string> names;
  for (const Family& family : families()) names.emplace_back(family.model_type);
  return names;
}

Expected<HuggingFaceModel> read_huggingface_config(std::string_view text, const std::string& file) {
  ConfigJson c(text, file);
  HuggingFaceModel model;
  const Family* family = c.readable() ? family_of(c) : nullptr;
  if (family) {
    family->read(c, model);
    take_classifier(c, model);
    model.name = c.text("_name_or_path", "");
    if (model.name.empty()) model.name = family->model_type;
    if (c.mistakes().empty()) check_dimensions(c, model);
  }
  if (!c.mistakes().empty()) return tl::unexpected<Diagnostics>(std::move(c.mistakes()));
  return model;
}

Expected<ModelGraph> make_model(const HuggingFaceModel& model,
                                std::optional<std::int64_t> sequence_length) {
  const bool of_images = std::holds_alternative<VisionTransformerDimensions>(model.dimensions) ||
                         std::holds_alternative<DiffusionTransformer>(model.dimensions);
  const std::int64_t tokens = sequence_length.value_or(model.sequence_length);
  if (tokens == 0 && !of_images) {
    return tl::unexpected<Diagnostics>(
        Diagnostics{{.what = fmt::format(
                         "{} takes sequences of up to {} tokens; how long yours are is not said",
                         model.name, model.longest_sequence),
                     .hint = "sequence_length: 4096"}});
  }
  return std::visit([&](const auto& d) { return built(model.name, d, tokens); }, model.dimensions);
}

}  // namespace reckon
