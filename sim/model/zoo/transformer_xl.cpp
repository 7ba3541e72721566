#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/model/zoo/builder.h"
#include "sim/model/zoo/language.h"

namespace reckon {
namespace {

/// Shares of a text's words that fall into the second, third and fourth part of a vocabulary cut at
/// 20,000, 40,000 and 200,000 of 267,735 words: WikiText-103's, whose counts fall with the 1.7th
/// power of the rank from the 20,000th on (estimate of ours; nothing is published).
constexpr std::array<double, 3> kRareShares{0.025, 0.028, 0.002};

class TransformerXlBuilder {
 public:
  explicit TransformerXlBuilder(const TransformerXlShape& s)
      : s_(s), width_(s.heads * s.head_width), net_(48 + 32 * static_cast<std::size_t>(s.layers)) {
    counts_.push_back(s.segment);
    for (std::size_t i = 1; i < s.cutoffs.size(); ++i) {
      const auto rare = std::llround(kRareShares.at(i - 1) * double(s.segment));
      counts_.push_back(std::max<std::int64_t>(1, rare));
      counts_[0] -= counts_[i];
    }
  }

  std::vector<Layer> build() {
    LayerId x = embed();
    for (std::int64_t i = 0; i < s_.layers; ++i) {
      block_ = fmt::format("layers.{}", i);
      net_.set_group(block_);
      x = residual("dec_attn", x, attention(x));
      x = residual("pos_ff", x, feed_forward(x));
    }
    softmax(net_.add("drop.out", Dropout{s_.dropout}, x));
    return net_.take();
  }

 private:
  std::int64_t rows(std::size_t part) const {
    // The first part also tells which of the others a word is in.
    return part == 0 ? s_.cutoffs[0] + static_cast<std::int64_t>(s_.cutoffs.size()) - 1
                     : s_.cutoffs[part] - s_.cutoffs[part - 1];
  }
  std::int64_t width(std::size_t part) const {
    std::int64_t width = s_.hidden;
    for (std::size_t i = 0; i < part; ++i) width /= s_.narrower;
    return width;
  }

  /// The tokens of one behind those of the other.
  LayerId join(const std::string& name, const std::vector<LayerId>& parts,
               const std::vector<std::int64_t>& tokens) {
    std::vector<LayerId> flat;
    std::int64_t all = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      flat.push_back(
          net_.add(fmt::format("{}.part.{}", name, i), RegroupTokens{.join = tokens[i]}, parts[i]));
      all += tokens[i];
    }
    const LayerId one = net_.add(name, Concat{}, flat);
    return net_.add(name + ".tokens", RegroupTokens{.join = 1, .split = all}, one);
  }

  LayerId embed() {
    net_.set_group("embeddings");
    std::vector<LayerId> parts;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const std::string name = fmt::format("word_emb.emb_layers.{}", i);
      const LayerId ids = net_.add(name + ".ids", ExtraInput{counts_[i]}, std::vector<LayerId>{});
      tables_.push_back(net_.add(name, Embedding{rows(i), width(i)}, ids));
      LayerId x = tables_[i];
      if (s_.narrower > 1)
        x = net_.add(fmt::format("word_emb.emb_projs.{}", i), Linear{width(i), s_.hidden, false},
                     x);
      parts.push_back(x);
    }
    LayerId x = parts.size() == 1 ? parts[0] : join("word_emb.join", parts, counts_);
    x = net_.add("word_emb.scale", ScaleBy{std::sqrt(double(s_.hidden))}, x);
    return net_.add("drop", Dropout{s_.dropout}, x);
  }

  LayerId attention(LayerId x) {
    const std::string name = block_ + ".dec_attn";
    const std::int64_t seen = 2 * s_.segment;
    const LayerId before =
        net_.add(name + ".mems", ExtraInput{s_.segment, s_.hidden}, std::vector<LayerId>{});
    const LayerId all = join(name + ".cat", {before, x}, {s_.segment, s_.segment});
    const auto project = [&](std::string_view part) {
      return net_.add(fmt::format("{}.{}", name, part), Linear{s_.hidden, width_, false}, all);
    };
    // One product makes all three; the queries of the memory are thrown away.
    const LayerId q = net_.add(name + ".q_net.own", SelectTokens{s_.segment}, project("q_net"));
    const LayerId k = project("k_net"), v = project("v_net");
    // The distances are projected once for a batch: a look-up of as many weights counts a sample.
    const LayerId distances = net_.add(name + ".pos", ExtraInput{seen}, std::vector<LayerId>{});
    const LayerId r = net_.add(name + ".r_net", Embedding{s_.hidden, width_}, distances);
    const Attention op{s_.heads, s_.heads, s_.head_width, false, s_.attention_dropout};
    const LayerId y = net_.add(name, op, {q, k, v, r});
    return net_.add(name + ".o_net", Linear{width_, s_.hidden, false}, y);
  }

  LayerId feed_forward(LayerId x) {
    const std::string name = block_ + ".pos_ff.CoreNet";
    x = net_.add(name + ".0", Linear{s_.hidden, s_.feed_forward}, x);
    x = net_.add(name + ".1", Activation{}, x);
    x = net_.add(name + ".2", Dropout{s_.dropout}, x);
    return net_.add(name + ".3", Linear{s_.feed_forward, s_.hidden}, x);
  }

  LayerId residual(std::string_view part, LayerId x, LayerId y) {
    const std::string name = fmt::format("{}.{}", block_, part);
    y = net_.add(name + ".drop", Dropout{s_.dropout}, y);
    y = net_.add(name + ".add", Add{}, {x, y});
    return net_.add(name + ".layer_norm", LayerNorm{s_.hidden}, y);
  }

  /// Each word by the first part; the rare ones again among those of their part.
  void softmax(LayerId hidden) {
    net_.set_group("head");
    std::vector<LayerId> losses;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      const std::string name = fmt::format("crit.{}", i);
      LayerId x = hidden;
      if (i > 0) x = net_.add(name + ".select", SelectTokens{counts_[i], true}, x);
      if (s_.narrower > 1) x = net_.add(name + ".out_projs", Linear{s_.hidden, width(i), false}, x);
      x = net_.add_tied(name + ".logits", Linear{width(i), rows(i)}, x, tables_[i]);
      losses.push_back(net_.add(name + ".loss", SoftmaxCrossEntropy{rows(i)}, x));
    }
    if (losses.size() > 1) net_.add("loss", Add{}, losses);
  }

  const TransformerXlShape& s_;
  std::int64_t width_;
  LayerList net_;
  std::string block_;
  std::vector<std::int64_t> counts_;  // of a segment's words in each part
  std::vector<LayerId> tables_;
};

}  // namespace

Expected<ModelGraph> make_transformer_xl(std::string name, const TransformerXlShape& given) {
  TransformerXlShape shape = given;
  constexpr std::int64_t kShortest = 8;  // each part of the vocabulary has a word in it
  shape.segment = std::max(kShortest, shape.segment);
  return ModelGraph::make(std::move(name), SampleUnit::sequence, {shape.segment},
                          TransformerXlBuilder(shape).build());
}

}  // namespace reckon
