#include "exchange/huggingface/family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace reckon::huggingface {

std::int64_t bounded(ConfigJson& c, const char* key, std::int64_t value, std::int64_t most) {
  if (value <= most) return value;
  c.mistake(key, fmt::format("{} is {}", key, value), fmt::format("the most is {}", most));
  return 1;
}

Sizes read_sizes(ConfigJson& c, const Defaults& o) {
  Sizes s;
  s.layers = bounded(c, "num_hidden_layers", c.number("num_hidden_layers", o.layers), kMostBlocks);
  s.hidden = c.number("hidden_size", o.hidden);
  s.heads = c.number("num_attention_heads", o.heads);
  s.kv_heads = c.number("num_key_value_heads", s.heads);
  s.feed_forward = c.number("intermediate_size", o.feed_forward);
  s.vocabulary = c.number("vocab_size", o.vocabulary);
  s.head_width = c.number("head_dim", 0);
  if (s.head_width > 0) return s;
  if (s.hidden % s.heads != 0)
    c.mistake("num_attention_heads",
              fmt::format("{} heads do not divide hidden_size {}", s.heads, s.hidden),
              "head_dim says how wide they are");
  s.head_width = std::max<std::int64_t>(1, s.hidden / s.heads);
  return s;
}

double rope_theta(ConfigJson& c, double otherwise) {
  ConfigJson parameters = c.section("rope_parameters");
  return c.real("rope_theta", parameters.real("rope_theta", otherwise));
}

double dropout_rate(ConfigJson& c, std::initializer_list<const char*> keys, double otherwise) {
  const double first = c.real(*keys.begin(), otherwise);
  for (const char* key : keys) {
    const double rate = c.real(key, otherwise);
    if (rate != first) {
      c.mistake(key, fmt::format("{} {} differs from {} {}", key, rate, *keys.begin(), first),
                "one rate for the whole network is covered");
    }
  }
  return first;
}

void refuse_flag(ConfigJson& c, const char* key, bool otherwise, std::string_view why) {
  if (!c.flag(key, otherwise)) return;
  c.mistake(key, std::string(why), fmt::format("{}: false is covered", key));
}

std::vector<std::string> layer_types(ConfigJson& c, const char* key, std::int64_t layers,
                                     std::initializer_list<std::string_view> known) {
  std::vector<std::string> types = c.texts(key);
  if (types.empty()) return types;
  if (static_cast<std::int64_t>(types.size()) != layers) {
    c.mistake(key, fmt::format("{} names {} layers, there are {}", key, types.size(), layers));
    types.resize(static_cast<std::size_t>(layers), std::string(*known.begin()));
  }
  for (std::string& type : types) {
    if (std::ranges::find(known, type) != known.end()) continue;
    c.mistake(key, fmt::format("a layer of type '{}' is not covered", type.substr(0, 40)),
              fmt::format("covered: {}", fmt::join(known, ", ")));
    type = std::string(*known.begin());
  }
  return types;
}

std::int64_t labels(ConfigJson& c) {
  const auto named = c.entries("id2label");
  if (named && *named > 0) return static_cast<std::int64_t>(*named);
  return c.number("num_labels", 2);
}

AttentionPart attention_of(const Sizes& s, double theta) {
  AttentionPart a{s.heads, s.kv_heads, s.head_width};
  a.rotary = Rotary{theta};
  return a;
}

Block block_of(const PartOp& mixer, const PartOp& feed_forward, NormPlace norm, double scale) {
  return {{Part{"self_attn", mixer, norm, scale}, Part{"mlp", feed_forward, norm, scale}}};
}

void take_longest(ConfigJson& c, HuggingFaceModel& model, std::optional<std::int64_t> otherwise) {
  model.longest_sequence = c.number("max_position_embeddings", otherwise);
}

}  // namespace reckon::huggingface
