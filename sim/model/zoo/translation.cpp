#include "sim/model/zoo/translation.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/model/zoo/builder.h"

namespace reckon {
namespace {

class TranslationBuilder {
 public:
  explicit TranslationBuilder(const TranslationShape& s)
      : s_(s), net_(64 + 64 * static_cast<std::size_t>(s.layers)) {}

  std::vector<Layer> build() {
    net_.set_group("embeddings");
    const LayerId source = net_.add("inputs", InputLayer{}, std::vector<LayerId>{});
    const LayerId target = net_.add("targets", InputLayer{}, std::vector<LayerId>{});
    LayerId x = embed("encoder", source);
    LayerId y = embed("decoder", target);
    for (std::int64_t i = 0; i < s_.layers; ++i) {
      begin_block("encoder", i);
      x = residual("self_attention", x, attend("self_attention", x, x, false));
      x = residual("ffn", x, feed_forward(x));
    }
    for (std::int64_t i = 0; i < s_.layers; ++i) {
      begin_block("decoder", i);
      y = residual("self_attention", y, attend("self_attention", y, y, true));
      y = residual("encdec_attention", y, attend("encdec_attention", y, x, false));
      y = residual("ffn", y, feed_forward(y));
    }
    net_.set_group("head");
    const Linear output{s_.hidden, s_.vocabulary, false};
    const LayerId logits = net_.add_tied("softmax", output, y, *embedding_);
    net_.add("loss", SoftmaxCrossEntropy{s_.vocabulary}, logits);
    return net_.take();
  }

 private:
  void begin_block(std::string_view side, std::int64_t i) {
    block_ = fmt::format("{}.layer_{}", side, i);
    net_.set_group(block_);
  }

  /// Both languages look up one table, in the order source, target; the output is tied to it. Where
  /// the source has its own, to the target's.
  LayerId embed(const std::string& side, LayerId ids) {
    const bool own = side == "encoder" && s_.source_vocabulary > 0;
    const Embedding table{own ? s_.source_vocabulary : s_.vocabulary, s_.hidden};
    LayerId x{};
    if (own) {
      x = net_.add(side + ".embedding", table, ids);
    } else if (embedding_) {
      x = net_.add_tied(side + ".embedding", table, ids, *embedding_);
    } else {
      x = net_.add(side + ".embedding", table, ids);
      embedding_ = x;
    }
    const double scale = std::sqrt(static_cast<double>(s_.hidden));
    x = net_.add(side + ".embedding.scale", ScaleBy{scale}, x);
    x = net_.add(side + ".positions", SinusoidalPositions{s_.hidden}, x);
    return net_.add(side + ".embedding.dropout", Dropout{s_.dropout}, x);
  }

  LayerId attend(std::string_view name, LayerId from, LayerId to, bool causal) {
    const auto project = [&](std::string_view part, LayerId x) {
      return net_.add(fmt::format("{}.{}.{}", block_, name, part),
                      Linear{s_.hidden, s_.hidden, false}, x);
    };
    const Attention op{s_.heads, s_.heads, s_.hidden / s_.heads, causal, s_.dropout};
    const LayerId y = net_.add(fmt::format("{}.{}", block_, name), op,
                               {project("q", from), project("k", to), project("v", to)});
    return project("output_transform", y);
  }

  LayerId feed_forward(LayerId x) {
    x = net_.add(block_ + ".ffn.conv1", Linear{s_.hidden, s_.feed_forward}, x);
    x = net_.add(block_ + ".ffn.relu", Activation{}, x);
    x = net_.add(block_ + ".ffn.dropout", Dropout{s_.dropout}, x);
    return net_.add(block_ + ".ffn.conv2", Linear{s_.feed_forward, s_.hidden}, x);
  }

  LayerId residual(std::string_view name, LayerId x, LayerId y) {
    const std::string prefix = fmt::format("{}.{}.postprocess", block_, name);
    y = net_.add(prefix + ".dropout", Dropout{s_.dropout}, y);
    y = net_.add(prefix + ".add", Add{}, {x, y});
    return net_.add(prefix + ".norm", LayerNorm{s_.hidden}, y);
  }

  const TranslationShape& s_;
  LayerList net_;
  std::string block_;
  std::optional<LayerId> embedding_;
};

}  // namespace

Expected<ModelGraph> make_translation_transformer(std::string name, const TranslationShape& shape) {
  return ModelGraph::make(std::move(name), SampleUnit::sequence, {shape.sequence_length},
                          TranslationBuilder(shape).build());
}

}  // namespace reckon
