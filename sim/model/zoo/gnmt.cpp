#include <fmt/format.h>

#include "sim/model/zoo/recurrent.h"
#include "sim/model/zoo/translation.h"

namespace reckon {
namespace {

constexpr std::int64_t kGnmtHidden = 1024, kGnmtLayers = 4;
/// vocab.bpe.32000 with its special words, padded: --synthetic-vocab of the reference.
constexpr std::int64_t kGnmtVocabulary = 32320;
constexpr double kGnmtDropout = 0.2;  // probability

class GnmtBuilder {
 public:
  explicit GnmtBuilder(std::int64_t tokens) : tokens_(tokens), net_(96) {}

  std::vector<Layer> build() {
    const LayerId encoded = encoder();
    LayerId x = decoder(encoded);
    net_.set_group("head");
    x = net_.add("decoder.classifier", Linear{kGnmtHidden, kGnmtVocabulary}, x);
    net_.add("loss", SoftmaxCrossEntropy{kGnmtVocabulary}, x);
    return net_.take();
  }

 private:
  LayerId lstm(const std::string& name, std::int64_t in, LayerId x) {
    return recurrent_layer(net_, name, {in, kGnmtHidden}, x);
  }
  LayerId dropout(const std::string& name, LayerId x) {
    return net_.add(name + ".dropout", Dropout{kGnmtDropout}, x);
  }

  LayerId encoder() {
    net_.set_group("encoder");
    LayerId x = net_.add("source", InputLayer{}, std::vector<LayerId>{});
    embedding_ = x = net_.add("embedder", Embedding{kGnmtVocabulary, kGnmtHidden}, x);
    x = dropout("encoder.0", x);
    const LayerId forward = lstm("encoder.0.forward", kGnmtHidden, x);
    const LayerId backward = lstm("encoder.0.backward", kGnmtHidden, x);
    x = net_.add("encoder.0.both", Concat{}, {forward, backward});
    x = lstm("encoder.1", 2 * kGnmtHidden, dropout("encoder.1", x));
    for (std::int64_t i = 2; i < kGnmtLayers; ++i) {
      const std::string name = fmt::format("encoder.{}", i);
      const LayerId y = lstm(name, kGnmtHidden, dropout(name, x));
      x = net_.add(name + ".add", Add{}, {y, x});
    }
    return x;
  }

  /// [Bahdanau 2015, arXiv:1409.0473, section A.1.2]: scores of each pair of words by a layer of
  /// their own, then the softmax's weighted sum.
  LayerId attention(LayerId query, LayerId keys) {
    const std::string name = "decoder.att_rnn.attn";
    const LayerId q = net_.add(name + ".linear_q", Linear{kGnmtHidden, kGnmtHidden, false}, query);
    const LayerId k = net_.add(name + ".linear_k", Linear{kGnmtHidden, kGnmtHidden, false}, keys);
    LayerId pairs = net_.add(name + ".sum_qk", PairSums{}, {q, k});
    pairs = net_.add(name + ".tanh", Activation{ActivationKind::tanh}, pairs);
    LayerId scores = net_.add(name + ".linear_att", Linear{kGnmtHidden, 1, false}, pairs);
    scores = net_.add(name + ".scores", RegroupTokens{.join = tokens_}, scores);
    return net_.add(name + ".context", ExpertCombine{tokens_, tokens_}, {pairs, scores});
  }

  LayerId decoder(LayerId encoded) {
    net_.set_group("decoder");
    LayerId x = net_.add("target", InputLayer{}, std::vector<LayerId>{});
    x = net_.add_tied("decoder.embedder", Embedding{kGnmtVocabulary, kGnmtHidden}, x, embedding_);
    x = lstm("decoder.att_rnn", kGnmtHidden, dropout("decoder.att_rnn", x));
    const LayerId context = attention(x, encoded);
    for (std::int64_t i = 0; i + 1 < kGnmtLayers; ++i) {
      const std::string name = fmt::format("decoder.rnn_layers.{}", i);
      LayerId y = net_.add(name + ".concat", Concat{}, {x, context});
      y = lstm(name, 2 * kGnmtHidden, dropout(name, y));
      x = i == 0 ? y : net_.add(name + ".add", Add{}, {y, x});
    }
    return x;
  }

  std::int64_t tokens_;
  LayerList net_;
  LayerId embedding_{};
};

}  // namespace

Expected<ModelGraph> make_gnmt(std::string name, std::int64_t sequence_length) {
  return ModelGraph::make(std::move(name), SampleUnit::sequence, {sequence_length},
                          GnmtBuilder(sequence_length).build());
}

}  // namespace reckon
