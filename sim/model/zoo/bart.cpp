#include <fmt/format.h>

#include "sim/model/zoo/builder.h"
#include "sim/model/zoo/translation.h"

namespace reckon {
namespace {

constexpr std::int64_t kBartLayers = 12, kBartHidden = 1024, kHeads = 16, kFeedForward = 4096;
constexpr std::int64_t kBartVocabulary = 50265;
/// Of 1,024; the first two are never used (modeling_bart.py, BartLearnedPositionalEmbedding).
constexpr std::int64_t kBartPositions = 1026;
constexpr double kBartDropout = 0.1;  // probability: config.json (translation.h)

class BartBuilder {
 public:
  explicit BartBuilder(std::int64_t target) : target_(target), net_(512) {}

  std::vector<Layer> build() {
    net_.set_group("embeddings");
    LayerId x = net_.add("source", InputLayer{}, std::vector<LayerId>{});
    embedding_ = net_.add("model.shared", Embedding{kBartVocabulary, kBartHidden}, x);
    x = embed("model.encoder", embedding_);
    LayerId y = net_.add("target", ExtraInput{target_}, std::vector<LayerId>{});
    y = net_.add_tied("model.decoder.embed_tokens", Embedding{kBartVocabulary, kBartHidden}, y,
                      embedding_);
    y = embed("model.decoder", y);
    for (std::int64_t i = 0; i < kBartLayers; ++i) {
      begin_block("encoder", i);
      x = residual("self_attn", x, attend("self_attn", x, x, false));
      x = residual("final", x, feed_forward(x));
    }
    for (std::int64_t i = 0; i < kBartLayers; ++i) {
      begin_block("decoder", i);
      y = residual("self_attn", y, attend("self_attn", y, y, true));
      y = residual("encoder_attn", y, attend("encoder_attn", y, x, false));
      y = residual("final", y, feed_forward(y));
    }
    net_.set_group("head");
    y = net_.add_tied("lm_head", Linear{kBartHidden, kBartVocabulary, false}, y, embedding_);
    net_.add("loss", SoftmaxCrossEntropy{kBartVocabulary}, y);
    return net_.take();
  }

 private:
  void begin_block(std::string_view side, std::int64_t i) {
    block_ = fmt::format("model.{}.layers.{}", side, i);
    net_.set_group(block_);
  }

  LayerId embed(const std::string& side, LayerId x) {
    x = net_.add(side + ".embed_positions", PositionEmbedding{kBartPositions, kBartHidden}, x);
    x = net_.add(side + ".layernorm_embedding", LayerNorm{kBartHidden}, x);
    return net_.add(side + ".dropout", Dropout{kBartDropout}, x);
  }

  LayerId attend(std::string_view name, LayerId from, LayerId to, bool causal) {
    const std::string prefix = fmt::format("{}.{}", block_, name);
    const auto project = [&](std::string_view part, LayerId x) {
      return net_.add(fmt::format("{}.{}", prefix, part), Linear{kBartHidden, kBartHidden}, x);
    };
    const LayerId y =
        net_.add(prefix, Attention{kHeads, kHeads, kBartHidden / kHeads, causal},
                 {project("q_proj", from), project("k_proj", to), project("v_proj", to)});
    return project("out_proj", y);
  }

  LayerId feed_forward(LayerId x) {
    x = net_.add(block_ + ".fc1", Linear{kBartHidden, kFeedForward}, x);
    x = net_.add(block_ + ".activation_fn", Activation{ActivationKind::gelu}, x);
    return net_.add(block_ + ".fc2", Linear{kFeedForward, kBartHidden}, x);
  }

  LayerId residual(std::string_view name, LayerId x, LayerId y) {
    const std::string prefix = fmt::format("{}.{}", block_, name);
    y = net_.add(prefix + ".dropout", Dropout{kBartDropout}, y);
    y = net_.add(prefix + ".add", Add{}, {x, y});
    return net_.add(prefix + "_layer_norm", LayerNorm{kBartHidden}, y);
  }

  std::int64_t target_;
  LayerList net_;
  std::string block_;
  LayerId embedding_{};
};

}  // namespace

Expected<ModelGraph> make_bart_large(std::string name, std::int64_t source, std::int64_t target) {
  return ModelGraph::make(std::move(name), SampleUnit::sequence, {source},
                          BartBuilder(target).build());
}

}  // namespace reckon
