#include <fmt/format.h>

#include <cmath>

#include "exchange/huggingface/family.h"

// Encoders, and encoders with decoders.
namespace reckon::huggingface {
namespace {

AttentionPart attention(std::int64_t heads, std::int64_t width, bool bias) {
  AttentionPart a{heads, heads, width};
  a.query_bias = a.key_bias = a.value_bias = a.output_bias = bias;
  return a;
}

/// Heads that divide the width, said by their key.
std::int64_t head_width(ConfigJson& c, const char* key, std::int64_t heads, std::int64_t hidden) {
  if (hidden % heads != 0)
    c.mistake(key, fmt::format("{} heads do not divide {} features", heads, hidden));
  return std::max<std::int64_t>(1, hidden / heads);
}

std::int64_t blocks_of(ConfigJson& c, const char* key, std::optional<std::int64_t> otherwise) {
  return bounded(c, key, c.number(key, otherwise), kMostBlocks);
}

/// The task that the class of the model has; nullopt: another one.
struct Heads {
  bool pre_training = false, masked = false, classes = false;
};
Heads heads_of(ConfigJson& c) {
  const std::string name = c.first_text("architectures");
  return {.pre_training = name.ends_with("ForPreTraining"),
          .masked = name.empty() || name.ends_with("ForMaskedLM") || name.ends_with("LMHeadModel"),
          .classes = name.ends_with("ForSequenceClassification")};
}

/// Heads that are none of these: the language model's stand for them, and the answer says so.
void note_heads(ConfigJson& c, HuggingFaceModel& model, const Heads& heads) {
  if (heads.pre_training || heads.masked || heads.classes) return;
  model.notes.push_back(fmt::format(
      "the heads of {} are not covered: those of masked tokens are counted in their place",
      c.first_text("architectures").substr(0, 80)));
}

/// BertForPreTraining: make_transformer's, which has both of its heads.
TransformerDimensions bert_for_pre_training(ConfigJson& c) {
  const Sizes s = read_sizes(c);
  TransformerDimensions d;
  d.layers = s.layers;
  d.hidden = s.hidden;
  d.heads = s.heads;
  d.feed_forward = s.feed_forward;
  d.vocabulary = s.vocabulary;
  d.positions = d.sequence_length = c.number("max_position_embeddings", std::nullopt);
  d.token_types = c.number("type_vocab_size", 2, 0);
  d.activation = c.activation("hidden_act", "gelu");
  d.dropout = dropout_rate(c, {"hidden_dropout_prob", "attention_probs_dropout_prob"}, 0.1);
  d.causal = false;
  d.post_norm = true;
  return d;
}

/// modeling_bert.py, modeling_roberta.py: norms behind the sums. Heads as the class has them: of
/// masked tokens a dense layer, a norm and the tied output with a bias, and no pooler.
void bert_like(ConfigJson& c, HuggingFaceModel& model, std::int64_t unused_positions) {
  if (const std::string kind = c.text("position_embedding_type", "absolute"); kind != "absolute") {
    c.mistake("position_embedding_type",
              fmt::format("position_embedding_type '{}' is not covered", kind.substr(0, 40)),
              "absolute is covered");
  }
  const std::int64_t positions = c.number("max_position_embeddings", std::nullopt);
  model.longest_sequence = model.sequence_length =
      std::max<std::int64_t>(1, positions - unused_positions);
  const Heads heads = heads_of(c);
  if (heads.pre_training && unused_positions == 0) {
    model.dimensions = bert_for_pre_training(c);
    return;
  }
  note_heads(c, model, heads);
  const Sizes s = read_sizes(c);
  LanguageNetwork n;
  n.prefix = "encoder";
  n.stack.hidden = s.hidden;
  n.stack.norm = NormKind::layer;
  n.stack.last_norm = false;
  n.stack.dropout = dropout_rate(c, {"hidden_dropout_prob", "attention_probs_dropout_prob"}, 0.1);
  n.vocabulary = s.vocabulary;
  n.positions = positions;
  n.position_rows_unused = unused_positions;
  n.token_types = c.number("type_vocab_size", 2, 0);
  n.embedding_norm = true;
  n.output_bias = true;
  n.head_activation = c.activation("hidden_act", "gelu");
  n.head_dense = !heads.classes;
  n.pooler = heads.classes;  // RoBERTa's classifier has the same dense layer of its own
  n.task = heads.classes ? LanguageTask::classes : LanguageTask::masked_token;
  if (heads.classes) n.classes = labels(c);
  AttentionPart a =
      attention(s.heads, head_width(c, "num_attention_heads", s.heads, s.hidden), true);
  a.causal = false;
  a.dropout = n.stack.dropout;
  const FeedForwardPart f{s.feed_forward, FeedForwardKind::plain, n.head_activation, true};
  n.stack.blocks.assign(static_cast<std::size_t>(s.layers), block_of(a, f, NormPlace::sum));
  model.dimensions = n;
}

void bert(ConfigJson& c, HuggingFaceModel& model) { bert_like(c, model, 0); }
void roberta(ConfigJson& c, HuggingFaceModel& model) { bert_like(c, model, 2); }

/// modeling_modernbert.py: rotary positions, GeGLU, one layer in three sees all.
void modernbert(ConfigJson& c, HuggingFaceModel& model) {
  const Sizes s = read_sizes(c, {22, 768, 12, 1152, 50368});
  const Heads heads = heads_of(c);
  note_heads(c, model, heads);
  LanguageNetwork n;
  n.stack.hidden = s.hidden;
  n.stack.norm = c.flag("norm_bias", false) ? NormKind::layer : NormKind::layer_without_bias;
  n.vocabulary = s.vocabulary;
  n.embedding_norm = true;
  n.output_bias = c.flag("decoder_bias", true);
  n.head_dense = true;
  n.head_dense_bias = c.flag("classifier_bias", false);
  n.head_activation = c.activation("classifier_activation", "gelu");
  n.tied_output = c.flag("tie_word_embeddings", true);
  n.task = heads.classes ? LanguageTask::classes : LanguageTask::masked_token;
  if (heads.classes) {
    n.classes = labels(c);
    n.output_bias = true;
  }
  AttentionPart a = attention(s.heads, s.head_width, c.flag("attention_bias", false));
  a.causal = false;
  a.rotary = Rotary{c.real("global_rope_theta", 160000)};
  const FeedForwardPart f{s.feed_forward, FeedForwardKind::gated,
                          c.activation("hidden_activation", "gelu"), c.flag("mlp_bias", false)};
  const std::int64_t each = c.number("global_attn_every_n_layers", 3);
  const std::int64_t window = c.number("local_attention", 128);
  for (std::int64_t i = 0; i < s.layers; ++i) {
    AttentionPart own = a;
    if (i % each != 0) own.window = window;
    Block b = block_of(own, f);
    if (i == 0) b.parts[0].norm = NormPlace::none;  // the embeddings have one
    n.stack.blocks.push_back(std::move(b));
  }
  model.dimensions = n;
  take_longest(c, model, 8192);
}

FeedForwardPart t5_feed_forward(ConfigJson& c, std::int64_t width, const char* otherwise) {
  const std::string kind = c.text("feed_forward_proj", otherwise);
  FeedForwardPart f{width};
  f.kind = kind.starts_with("gated-") ? FeedForwardKind::gated : FeedForwardKind::plain;
  const std::string activation =
      f.kind == FeedForwardKind::gated ? kind.substr(std::string_view("gated-").size()) : kind;
  if (activation.starts_with("gelu"))
    f.activation = ActivationKind::gelu;
  else if (activation == "relu")
    f.activation = ActivationKind::relu;
  else if (activation == "silu")
    f.activation = ActivationKind::silu;
  else
    c.mistake("feed_forward_proj",
              fmt::format("feed_forward_proj '{}' is not covered", kind.substr(0, 40)),
              "covered: relu, gated-gelu, gated-silu");
  return f;
}

/// modeling_t5.py: RMS norms, no biases, a learned bias of distances that the layers of a stack
/// share.
void t5_like(ConfigJson& c, HuggingFaceModel& model, bool tied, const char* feed_forward) {
  EncoderDecoder n;
  const std::int64_t hidden = c.number("d_model", std::nullopt);
  const std::int64_t layers = blocks_of(c, "num_layers", std::nullopt);
  const std::int64_t decoders = blocks_of(c, "num_decoder_layers", layers);
  AttentionPart a =
      attention(c.number("num_heads", std::nullopt), c.number("d_kv", std::nullopt), false);
  a.relative = true;
  const double dropout = c.real("dropout_rate", 0.1);
  a.dropout = dropout;
  FeedForwardPart f = t5_feed_forward(c, c.number("d_ff", std::nullopt), feed_forward);
  f.dropout = dropout;
  n.vocabulary = c.number("vocab_size", std::nullopt);
  n.tied_output = c.flag("tie_word_embeddings", tied);
  if (n.tied_output) n.output_scale = 1 / std::sqrt(static_cast<double>(hidden));
  n.encoder.hidden = n.decoder.hidden = hidden;
  n.encoder.dropout = n.decoder.dropout = dropout;
  n.encoder.relative_buckets = n.decoder.relative_buckets =
      c.number("relative_attention_num_buckets", 32);
  n.encoder.relative_heads = n.decoder.relative_heads = a.heads;
  AttentionPart encoding = a, across = a;
  encoding.causal = false;
  across.cross = true;
  across.relative = false;
  n.encoder.blocks.assign(static_cast<std::size_t>(layers), block_of(encoding, f));
  n.decoder.blocks.assign(
      static_cast<std::size_t>(decoders),
      Block{{Part{"self_attn", a}, Part{"cross_attn", across}, Part{"mlp", f}}});
  model.sequence_length = c.number("n_positions", 512);
  model.longest_sequence = 1 << 20;
  model.notes.emplace_back("as many tokens are written as are read");
  model.dimensions = n;
}
void t5(ConfigJson& c, HuggingFaceModel& model) { t5_like(c, model, true, "relu"); }
void mt5(ConfigJson& c, HuggingFaceModel& model) { t5_like(c, model, false, "gated-gelu"); }

/// What Whisper and BART have in common: learned positions, biases, layer norms.
struct Side {
  std::int64_t layers, heads, feed_forward;
};
Side side_of(ConfigJson& c, const char* layers, const char* heads, const char* feed_forward) {
  return {blocks_of(c, layers, std::nullopt), c.number(heads, std::nullopt),
          c.number(feed_forward, std::nullopt)};
}
void fill_sides(ConfigJson& c, EncoderDecoder& n, const Side& encoder, const Side& decoder,
                bool key_bias, NormPlace norm) {
  const std::int64_t hidden = c.number("d_model", std::nullopt);
  const auto activation = c.activation("activation_function", "gelu");
  n.encoder.hidden = n.decoder.hidden = hidden;
  n.encoder.norm = n.decoder.norm = NormKind::layer;
  n.encoder.dropout = n.decoder.dropout = c.real("dropout", 0.1);
  const auto part = [&](std::int64_t heads, const char* key, bool causal, bool cross) {
    AttentionPart a = attention(heads, head_width(c, key, heads, hidden), true);
    a.key_bias = key_bias;
    a.causal = causal;
    a.cross = cross;
    return a;
  };
  const FeedForwardPart first{encoder.feed_forward, FeedForwardKind::plain, activation, true};
  const FeedForwardPart second{decoder.feed_forward, FeedForwardKind::plain, activation, true};
  n.encoder.blocks.assign(
      static_cast<std::size_t>(encoder.layers),
      block_of(part(encoder.heads, "encoder_attention_heads", false, false), first, norm));
  const char* key = "decoder_attention_heads";
  n.decoder.blocks.assign(static_cast<std::size_t>(decoder.layers),
                          Block{{Part{"self_attn", part(decoder.heads, key, true, false), norm},
                                 Part{"encoder_attn", part(decoder.heads, key, false, true), norm},
                                 Part{"mlp", second, norm}}});
}

/// modeling_whisper.py.
void whisper(ConfigJson& c, HuggingFaceModel& model) {
  EncoderDecoder n;
  fill_sides(c, n, side_of(c, "encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"),
             side_of(c, "decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"), false,
             NormPlace::before);
  constexpr std::int64_t kFramesAPosition = 2;
  n.sound = SoundInput{c.number("num_mel_bins", 80),
                       kFramesAPosition * c.number("max_source_positions", 1500)};
  n.decoder_positions = c.number("max_target_positions", 448);
  n.vocabulary = c.number("vocab_size", std::nullopt);
  n.tied_output = c.flag("tie_word_embeddings", true);
  if (!c.present("dropout")) n.encoder.dropout = n.decoder.dropout = 0;
  model.longest_sequence = model.sequence_length = n.decoder_positions;
  model.notes.push_back(fmt::format("beside the tokens come {} frames of sound", n.sound->frames));
  model.dimensions = n;
}

/// modeling_bart.py. Of its table of positions the first two rows are not used.
void bart(ConfigJson& c, HuggingFaceModel& model) {
  EncoderDecoder n;
  fill_sides(c, n, side_of(c, "encoder_layers", "encoder_attention_heads", "encoder_ffn_dim"),
             side_of(c, "decoder_layers", "decoder_attention_heads", "decoder_ffn_dim"), true,
             NormPlace::sum);
  constexpr std::int64_t kUnused = 2;
  n.encoder.last_norm = n.decoder.last_norm = false;
  n.embedding_norm = true;
  model.longest_sequence = model.sequence_length = c.number("max_position_embeddings", 1024);
  n.position_rows_unused = kUnused;
  n.encoder_positions = n.decoder_positions = model.sequence_length + kUnused;
  n.vocabulary = c.number("vocab_size", std::nullopt);
  n.tied_output = c.flag("tie_word_embeddings", true);
  model.notes.emplace_back("as many tokens are written as are read");
  model.dimensions = n;
}

constexpr std::array kEncoders{Family{"bart", "Bart", bart},
                               Family{"bert", "Bert", bert},
                               Family{"modernbert", "ModernBert", modernbert},
                               Family{"mt5", "MT5", mt5},
                               Family{"roberta", "Roberta", roberta},
                               Family{"t5", "T5", t5},
                               Family{"whisper", "Whisper", whisper}};

}  // namespace

std::span<const Family> encoder_families() { return kEncoders; }

}  // namespace reckon::huggingface
