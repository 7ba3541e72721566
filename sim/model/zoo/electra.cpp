#include <fmt/format.h>

#include "sim/model/zoo/builder.h"
#include "sim/model/zoo/language.h"

namespace reckon {
namespace {

constexpr std::int64_t kElectraVocabulary = 30522, kElectraPositions = 512, kEmbedding = 768,
                       kElectraLayers = 12;
constexpr double kElectraDropout = 0.1;  // probability

struct Encoder {
  std::string name;
  std::int64_t hidden, heads, feed_forward;
};

class ElectraBuilder {
 public:
  explicit ElectraBuilder(std::int64_t tokens) : tokens_(tokens), net_(512) {}

  std::vector<Layer> build() {
    const LayerId generated = generator();
    const LayerId told = discriminator();
    // The discriminator's loss counts 50 times [Clark 2020, section 3.1].
    const LayerId weighted = net_.add("discriminator.loss.weighted", ScaleBy{50}, told);
    net_.add("loss", Add{}, {generated, weighted});
    return net_.take();
  }

 private:
  LayerId generator() {
    const Encoder op{"generator", kEmbedding / 3, 4, 4 * kEmbedding / 3};
    LayerId x = encode(op, embed(op, "masked_ids"));
    net_.set_group("generator.head");
    const std::int64_t masked = (15 * tokens_ + 99) / 100;
    x = net_.add("generator.predictions.select", SelectTokens{masked, true}, x);
    x = net_.add("generator.predictions.dense", Linear{op.hidden, kEmbedding}, x);
    x = net_.add("generator.predictions.gelu", Activation{ActivationKind::gelu}, x);
    x = net_.add("generator.predictions.LayerNorm", LayerNorm{kEmbedding}, x);
    x = net_.add_tied("generator.lm_head", Linear{kEmbedding, kElectraVocabulary}, x, *words_);
    return net_.add("generator.loss", SoftmaxCrossEntropy{kElectraVocabulary}, x);
  }

  LayerId discriminator() {
    const Encoder op{"discriminator", kEmbedding, 12, 4 * kEmbedding};
    LayerId x = encode(op, embed(op, "replaced_ids"));
    net_.set_group("discriminator.head");
    x = net_.add("predictions.dense", Linear{kEmbedding, kEmbedding}, x);
    x = net_.add("predictions.gelu", Activation{ActivationKind::gelu}, x);
    x = net_.add("predictions.dense_prediction", Linear{kEmbedding, 1}, x);
    return net_.add("predictions.loss", SigmoidCrossEntropy{}, x);
  }

  /// Looks the embeddings up; the second network shares those of the first.
  LayerId embed(const Encoder& e, const std::string& input) {
    net_.set_group(e.name + ".embeddings");
    const std::string name = e.name + ".embeddings";
    const LayerId ids = net_.add(input, InputLayer{}, std::vector<LayerId>{});
    const LayerId types = net_.add(input + ".types", InputLayer{}, std::vector<LayerId>{});
    const LayerId word = look_up(name + ".word_embeddings", kElectraVocabulary, ids, words_);
    const LayerId type = look_up(name + ".token_type_embeddings", 2, types, types_);
    LayerId x = net_.add(name + ".add", Add{}, {word, type});
    x = net_.add(name + ".position_embeddings", PositionEmbedding{kElectraPositions, kEmbedding},
                 x);
    x = net_.add(name + ".LayerNorm", LayerNorm{kEmbedding}, x);
    x = net_.add(name + ".dropout", Dropout{kElectraDropout}, x);
    if (e.hidden != kEmbedding)
      x = net_.add(e.name + ".embeddings_project", Linear{kEmbedding, e.hidden}, x);
    return x;
  }

  LayerId look_up(const std::string& name, std::int64_t rows, LayerId ids,
                  std::optional<LayerId>& table) {
    const Embedding op{rows, kEmbedding};
    if (table) return net_.add_tied(name, op, ids, *table);
    table = net_.add(name, op, ids);
    return *table;
  }

  LayerId encode(const Encoder& e, LayerId x) {
    for (std::int64_t i = 0; i < kElectraLayers; ++i) {
      const std::string name = fmt::format("{}.encoder.layer.{}", e.name, i);
      net_.set_group(name);
      const auto project = [&](std::string_view part, std::int64_t in, std::int64_t out,
                               LayerId from) {
        return net_.add(fmt::format("{}.{}", name, part), Linear{in, out}, from);
      };
      const LayerId q = project("attention.query", e.hidden, e.hidden, x);
      const LayerId k = project("attention.key", e.hidden, e.hidden, x);
      const LayerId v = project("attention.value", e.hidden, e.hidden, x);
      const Attention op{e.heads, e.heads, e.hidden / e.heads, false, kElectraDropout};
      LayerId y = net_.add(name + ".attention", op, {q, k, v});
      x = residual(name + ".attention", e.hidden, x,
                   project("attention.dense", e.hidden, e.hidden, y));
      y = project("intermediate.dense", e.hidden, e.feed_forward, x);
      y = net_.add(name + ".intermediate.gelu", Activation{ActivationKind::gelu}, y);
      x = residual(name + ".output", e.hidden, x,
                   project("output.dense", e.feed_forward, e.hidden, y));
    }
    return x;
  }

  LayerId residual(const std::string& name, std::int64_t width, LayerId x, LayerId y) {
    y = net_.add(name + ".dropout", Dropout{kElectraDropout}, y);
    y = net_.add(name + ".add", Add{}, {x, y});
    return net_.add(name + ".LayerNorm", LayerNorm{width}, y);
  }

  std::int64_t tokens_;
  LayerList net_;
  std::optional<LayerId> words_, types_;
};

}  // namespace

Expected<ModelGraph> make_electra_base(std::string name, std::int64_t sequence_length) {
  return ModelGraph::make(std::move(name), SampleUnit::sequence, {sequence_length},
                          ElectraBuilder(sequence_length).build());
}

}  // namespace reckon
