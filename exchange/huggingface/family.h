#pragma once
#include <array>
#include <initializer_list>
#include <span>
#include <string_view>

#include "exchange/huggingface/config_json.h"
#include "exchange/huggingface/huggingface.h"

// What the readers of the families share. A family is a row of its file's table; huggingface.cpp
// goes through the tables.
namespace reckon::huggingface {

struct Family {
  std::string_view model_type;
  std::string_view architecture;  // how the class names of its models begin
  void (*read)(ConfigJson&, HuggingFaceModel&);
};

/// More than any network has; longer lists of blocks are refused.
inline constexpr std::int64_t kMostBlocks = 10000;

std::span<const Family> transformer_families();  // make_transformer() and vision transformers
std::span<const Family> decoder_families();
std::span<const Family> hybrid_families();
std::span<const Family> encoder_families();
std::span<const Family> vision_families();
std::span<const Family> diffusion_families();

/// Sizes of a class where a section may leave them out, as configs inside configs do.
struct Defaults {
  std::optional<std::int64_t> layers, hidden, heads, feed_forward, vocabulary;
};
/// What the sizes of most families are called.
struct Sizes {
  std::int64_t layers = 0, hidden = 0, heads = 1, kv_heads = 1, head_width = 0, feed_forward = 0;
  std::int64_t vocabulary = 0;
};
Sizes read_sizes(ConfigJson& c, const Defaults& otherwise = {});
/// rope_theta, or that of rope_parameters, where newer files have it.
/// Base of the rotary angles (RotaryEmbedding::theta), no unit.
double rope_theta(ConfigJson& c, double otherwise);
/// One rate stands for all: the network has one.
/// Probability, 0..1.
double dropout_rate(ConfigJson& c, std::initializer_list<const char*> keys, double otherwise);
/// Refuses a flag that changes the network in a way that is not covered.
void refuse_flag(ConfigJson& c, const char* key, bool otherwise, std::string_view why);
/// The type of each layer by a list of texts; errors where it has another length or another word.
/// Empty: the file has none.
std::vector<std::string> layer_types(ConfigJson& c, const char* key, std::int64_t layers,
                                     std::initializer_list<std::string_view> known);
/// More layers or experts than any network has: a mistake, and a small number in their place.
std::int64_t bounded(ConfigJson& c, const char* key, std::int64_t value, std::int64_t most);
/// Labels of a classifier: id2label, num_labels, else the two of transformers.
std::int64_t labels(ConfigJson& c);

/// Attention as Llama's, of the sizes.
AttentionPart attention_of(const Sizes& s, double theta);
Block block_of(const PartOp& mixer, const PartOp& feed_forward, NormPlace norm = NormPlace::before,
               double scale = 1);  // factor on what each part adds to the residual
/// As many tokens as `max_position_embeddings` says.
void take_longest(ConfigJson& c, HuggingFaceModel& model, std::optional<std::int64_t> otherwise);

/// Language models of sections that are read by others' files too.
LanguageNetwork read_gemma3_text(ConfigJson& c);
LanguageNetwork read_llama4_text(ConfigJson& c);
LanguageNetwork read_llama_text(ConfigJson& c);
LanguageNetwork read_qwen2_text(ConfigJson& c);

}  // namespace reckon::huggingface
