#include <fmt/format.h>

#include "sim/model/blocks/language_parts.h"

// Language models, and encoders with decoders.
namespace reckon {
namespace {

LayerId named_norm(LayerList& net, NormKind kind, std::string name, std::int64_t width, LayerId x) {
  if (kind == NormKind::rms) return net.add(std::move(name), RmsNorm{width}, x);
  return net.add(std::move(name), LayerNorm{width, kind == NormKind::layer}, x);
}

Diagnostics check_tokens(std::int64_t positions, std::int64_t unused, std::int64_t tokens) {
  if (positions == 0 || tokens <= positions - unused) return {};
  return {{.what = fmt::format("a sequence of {} tokens is longer than the {} learned positions",
                               tokens, positions - unused),
           .hint = "shorten sequence_length"}};
}

/// Text of an encoder or decoder with the embedding that it shares, or owns.
struct Embedded {
  LayerId table{}, tokens{};
};

class EncoderDecoderBuilder {
 public:
  EncoderDecoderBuilder(const EncoderDecoder& n, std::int64_t tokens)
      : n_(n),
        tokens_(tokens),
        net_(64 + 30 * (n.encoder.blocks.size() + n.decoder.blocks.size())) {}

  std::vector<Layer> build() {
    net_.set_group("embeddings");
    const LayerId target = net_.add("target", InputLayer{}, std::vector<LayerId>{});
    std::optional<LayerId> table;
    LayerId x = n_.sound ? sound() : text(table);
    StackBuilder encoder(net_, n_.encoder, "encoder");
    x = encoder.build(x);
    net_.set_group("encoder.norm");
    x = encoder.last_norm(x);
    net_.set_group("decoder.embeddings");
    const Embedding op{n_.vocabulary, n_.decoder.hidden};
    LayerId y = table && n_.tied_embeddings
                    ? net_.add_tied("decoder.embed_tokens", op, target, *table)
                    : net_.add("decoder.embed_tokens", op, target);
    const LayerId owner = table && n_.tied_embeddings ? *table : y;
    y = positioned("decoder", n_.decoder, n_.decoder_positions, y);
    StackBuilder decoder(net_, n_.decoder, "decoder");
    y = decoder.build(y, x, n_.encoder.hidden);
    net_.set_group("head");
    y = decoder.last_norm(y);
    if (n_.output_scale != 1) y = net_.add("lm_head.scale", ScaleBy{n_.output_scale}, y);
    const Linear head{n_.decoder.hidden, n_.vocabulary, false};
    y = n_.tied_output ? net_.add_tied("lm_head", head, y, owner) : net_.add("lm_head", head, y);
    net_.add("loss", SoftmaxCrossEntropy{n_.vocabulary}, y);
    return net_.take();
  }

 private:
  LayerId text(std::optional<LayerId>& table) {
    const LayerId source = net_.add("source", ExtraInput{tokens_}, std::vector<LayerId>{});
    table = net_.add("encoder.embed_tokens", Embedding{n_.vocabulary, n_.encoder.hidden}, source);
    return positioned("encoder", n_.encoder, n_.encoder_positions, *table);
  }

  /// modeling_whisper.py, WhisperEncoder: the table of sines and cosines is stored and not trained.
  LayerId sound() {
    const SoundInput& s = *n_.sound;
    const std::int64_t width = n_.encoder.hidden;
    LayerId x = net_.add("frames", ExtraInput{s.frames, s.mel_bins}, std::vector<LayerId>{});
    x = net_.add("encoder.conv1", SequenceConv{s.mel_bins, width, 3}, x);
    x = net_.add("encoder.conv1.act", Activation{ActivationKind::gelu}, x);
    x = net_.add("encoder.conv2", SequenceConv{width, width, 3, 2}, x);
    x = net_.add("encoder.conv2.act", Activation{ActivationKind::gelu}, x);
    return net_.add_frozen("encoder.embed_positions", PositionEmbedding{s.frames / 2, width}, {x},
                           std::nullopt);
  }

  LayerId positioned(const std::string& side, const Stack& stack, std::int64_t rows, LayerId x) {
    if (rows > 0) x = net_.add(side + ".embed_positions", PositionEmbedding{rows, stack.hidden}, x);
    if (n_.embedding_norm)
      x = named_norm(net_, stack.norm, side + ".layernorm_embedding", stack.hidden, x);
    return x;
  }

  const EncoderDecoder& n_;
  std::int64_t tokens_;
  LayerList net_;
};

}  // namespace

LayerId embedded_text(LayerList& net, const LanguageNetwork& n, LayerId ids) {
  const std::int64_t width = n.stack.hidden;
  return net.add(n.prefix + ".embed_tokens", Embedding{n.vocabulary, width}, ids);
}

LayerId text_positions(LayerList& net, const LanguageNetwork& n, LayerId x) {
  const std::int64_t width = n.stack.hidden;
  if (n.embedding_scale != 1)
    x = net.add(n.prefix + ".embed_tokens.scale", ScaleBy{n.embedding_scale}, x);
  if (n.token_types > 0) {
    const LayerId types = net.add("token_type_ids", InputLayer{}, std::vector<LayerId>{});
    const LayerId segment =
        net.add(n.prefix + ".token_type_embeddings", Embedding{n.token_types, width}, types);
    x = net.add(n.prefix + ".token_type_embeddings.add", Add{}, {x, segment});
  }
  if (n.positions > 0)
    x = net.add(n.prefix + ".embed_positions", PositionEmbedding{n.positions, width}, x);
  if (n.embedding_norm) x = named_norm(net, n.stack.norm, n.prefix + ".embed_norm", width, x);
  return x;
}

namespace {

/// c tanh(x / c), as the modelling code computes it.
LayerId capped(LayerList& net, double cap, LayerId x) {
  if (!(cap > 0)) return x;
  x = net.add("lm_head.softcap.divide", ScaleBy{1 / cap}, x);
  x = net.add("lm_head.softcap.tanh", Activation{ActivationKind::tanh}, x);
  return net.add("lm_head.softcap.multiply", ScaleBy{cap}, x);
}

void classes_head(LayerList& net, const LanguageNetwork& n, LayerId x) {
  const std::int64_t width = n.stack.hidden;
  x = net.add("classifier.first", SelectTokens{1}, x);
  if (n.pooler) {
    x = net.add("pooler.dense", Linear{width, width}, x);
    x = net.add("pooler.activation", Activation{ActivationKind::tanh}, x);
  }
  if (n.head_dense) {
    x = net.add("head.dense", Linear{width, width, n.head_dense_bias}, x);
    x = net.add("head.act", Activation{n.head_activation}, x);
    x = named_norm(net, n.stack.norm, "head.norm", width, x);
  }
  x = net.add("classifier", Linear{width, n.classes, n.output_bias || n.pooler}, x);
  net.add("loss", SoftmaxCrossEntropy{n.classes}, x);
}

}  // namespace

void language_head(LayerList& net, const LanguageNetwork& n, LayerId embedding, std::int64_t tokens,
                   LayerId x) {
  const std::int64_t width = n.stack.hidden;
  if (n.task == LanguageTask::classes) return classes_head(net, n, x);
  if (n.task == LanguageTask::masked_token) {
    x = net.add("predictions.select", SelectTokens{(15 * tokens + 99) / 100, true}, x);
    if (n.head_dense) {
      x = net.add("predictions.dense", Linear{width, width, n.head_dense_bias}, x);
      x = net.add("predictions.act", Activation{n.head_activation}, x);
      x = named_norm(net, n.stack.norm, "predictions.norm", width, x);
    }
  }
  const Linear op{width, n.vocabulary, n.output_bias};
  x = n.tied_output ? net.add_tied("lm_head", op, x, embedding) : net.add("lm_head", op, x);
  if (n.logits_scale != 1) x = net.add("lm_head.scale", ScaleBy{n.logits_scale}, x);
  x = capped(net, n.logits_softcap, x);
  net.add("loss", SoftmaxCrossEntropy{n.vocabulary}, x);
}

Expected<ModelGraph> make_network(std::string name, const LanguageNetwork& n, std::int64_t tokens) {
  if (Diagnostics errors = check_tokens(n.positions, n.position_rows_unused, tokens);
      !errors.empty())
    return tl::unexpected<Diagnostics>(std::move(errors));
  LayerList net(64 + 32 * n.stack.blocks.size());
  net.set_group("embeddings");
  const LayerId ids = net.add("input_ids", InputLayer{}, std::vector<LayerId>{});
  const LayerId embedding = embedded_text(net, n, ids);
  StackBuilder stack(net, n.stack, n.prefix);
  LayerId x = stack.build(text_positions(net, n, embedding));
  net.set_group("head");
  x = stack.last_norm(x);
  language_head(net, n, embedding, tokens, x);
  return ModelGraph::make(std::move(name), SampleUnit::sequence, {tokens}, net.take());
}

Expected<ModelGraph> make_network(std::string name, const EncoderDecoder& n, std::int64_t tokens) {
  Diagnostics errors = check_tokens(n.decoder_positions, n.position_rows_unused, tokens);
  if (!n.sound && errors.empty())
    errors = check_tokens(n.encoder_positions, n.position_rows_unused, tokens);
  if (!errors.empty()) return tl::unexpected<Diagnostics>(std::move(errors));
  return ModelGraph::make(std::move(name), SampleUnit::sequence, {tokens},
                          EncoderDecoderBuilder(n, tokens).build());
}

}  // namespace reckon
