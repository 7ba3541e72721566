#include "sim/model/zoo/records.h"

#include <fmt/format.h>

#include <array>
#include <numeric>
#include <span>

#include "sim/model/zoo/builder.h"

namespace reckon {
namespace {

constexpr std::size_t kTables = 26;
constexpr std::int64_t kNumbers = 13, kVector = 128;
using Tables = std::array<std::int64_t, kTables>;

/// Linear and ReLU for each width. `last_relu`: also behind the last.
LayerId perceptron(LayerList& net, std::string_view name, LayerId x, std::int64_t in,
                   std::span<const std::int64_t> widths, bool last_relu) {
  for (std::size_t i = 0; i < widths.size(); ++i) {
    x = net.add(fmt::format("{}.{}", name, i), Linear{in, widths[i]}, x);
    in = widths[i];
    if (last_relu || i + 1 < widths.size())
      x = net.add(fmt::format("{}.{}.relu", name, i), Activation{}, x);
  }
  return x;
}

struct Vectors {
  LayerId dense{};
  std::vector<LayerId> all;  // the dense one first
};

/// A record is its 13 numbers, then the ids of each table.
Vectors embed(LayerList& net, const Tables& rows, const Tables& ids) {
  constexpr std::array<std::int64_t, 3> kBottom{512, 256, kVector};
  net.set_group("dense");
  const LayerId record = net.add("record", InputLayer{}, std::vector<LayerId>{});
  const LayerId numbers = net.add("dense.numbers", SelectFeatures{0, kNumbers}, record);
  Vectors vectors{perceptron(net, "dense_arch", numbers, kNumbers, kBottom, true), {}};
  vectors.all.push_back(vectors.dense);
  net.set_group("tables");
  std::int64_t first = kNumbers;
  for (std::size_t i = 0; i < kTables; ++i) {
    const LayerId chosen =
        net.add(fmt::format("tables.{}.ids", i), SelectFeatures{first, ids[i]}, record);
    const EmbeddingBag table{rows[i], kVector, ids[i]};
    vectors.all.push_back(net.add(fmt::format("tables.{}", i), table, chosen));
    first += ids[i];
  }
  return vectors;
}

Expected<ModelGraph> finish(LayerList& net, std::string name, LayerId x, std::int64_t width,
                            const Tables& ids) {
  constexpr std::array<std::int64_t, 5> kTop{1024, 1024, 512, 256, 1};
  net.set_group("over");
  x = perceptron(net, "over_arch", x, width, kTop, false);
  net.add("loss", SigmoidCrossEntropy{}, x);
  const std::int64_t fields = std::accumulate(ids.begin(), ids.end(), kNumbers);
  return ModelGraph::make(std::move(name), SampleUnit::record, {fields}, net.take());
}

}  // namespace

Expected<ModelGraph> make_dlrm_mlperf() {
  constexpr Tables kRows{45833188, 36746,    17245,    7413,     20243,  3,     7114, 1441, 62,
                         29275261, 1572176,  345138,   10,       2209,   11267, 128,  4,    974,
                         14,       48937457, 11316796, 40094537, 452104, 12606, 104,  35};
  Tables ids{};
  ids.fill(1);
  LayerList net(128);
  const Vectors vectors = embed(net, kRows, ids);
  net.set_group("interaction");
  constexpr std::int64_t kVectors = kTables + 1;
  const LayerId dots = net.add("interaction", PairwiseDots{kVectors, kVector}, vectors.all);
  const LayerId x = net.add("interaction.concat", Concat{}, {vectors.dense, dots});
  return finish(net, "dlrm_mlperf", x, kVector + kVectors * (kVectors - 1) / 2, ids);
}

Expected<ModelGraph> make_dlrm_dcnv2_mlperf() {
  constexpr Tables kRows{40000000, 39060,    17295,    7424,     20265,  3,     7122, 1543, 63,
                         40000000, 3067956,  405282,   10,       2209,   11938, 155,  4,    976,
                         14,       40000000, 40000000, 40000000, 590152, 12973, 108,  36};
  constexpr Tables kIds{3, 2, 1, 2, 6, 1, 1,  1,   1,  7,  3, 8, 1,
                        6, 9, 5, 1, 1, 1, 12, 100, 27, 10, 3, 1, 1};
  constexpr std::int64_t kWidth = (kTables + 1) * kVector, kRank = 512;
  LayerList net(128);
  const Vectors vectors = embed(net, kRows, kIds);
  net.set_group("interaction");
  const LayerId start = net.add("interaction.concat", Concat{}, vectors.all);
  LayerId x = start;
  for (int i = 0; i < 3; ++i) {  // x + start * (W V x + b)
    const std::string name = fmt::format("crossnet.{}", i);
    LayerId y = net.add(name + ".v", Linear{kWidth, kRank, false}, x);
    y = net.add(name + ".w", Linear{kRank, kWidth, true}, y);
    y = net.add(name + ".multiply", Multiply{}, {start, y});
    x = net.add(name + ".add", Add{}, {x, y});
  }
  return finish(net, "dlrm_dcnv2_mlperf", x, kWidth, kIds);
}

namespace {

struct Films {
  std::int64_t users, films, factors;
  std::array<std::int64_t, 3> layers;
};

Expected<ModelGraph> make_neumf(std::string name, const Films& data) {
  constexpr std::int64_t kFirst = 256;
  LayerList net(24);
  net.set_group("tables");
  const LayerId record = net.add("record", InputLayer{}, std::vector<LayerId>{});
  const LayerId user = net.add("user", SelectFeatures{0, 1}, record);
  const LayerId film = net.add("item", SelectFeatures{1, 1}, record);
  const auto table = [&](const char* name, std::int64_t rows, std::int64_t width, LayerId ids) {
    return net.add(name, EmbeddingBag{rows, width, 1}, ids);
  };
  const LayerId mf_user = table("mf_user_embed", data.users, data.factors, user);
  const LayerId mf_film = table("mf_item_embed", data.films, data.factors, film);
  const LayerId mlp_user = table("mlp_user_embed", data.users, kFirst / 2, user);
  const LayerId mlp_film = table("mlp_item_embed", data.films, kFirst / 2, film);
  net.set_group("layers");
  const LayerId mf = net.add("mf", Multiply{}, {mf_user, mf_film});
  LayerId x = net.add("mlp.concat", Concat{}, {mlp_user, mlp_film});
  x = perceptron(net, "mlp", x, kFirst, data.layers, true);
  x = net.add("final.concat", Concat{}, {mf, x});
  x = net.add("final", Linear{data.factors + data.layers.back(), 1}, x);
  net.add("loss", SigmoidCrossEntropy{}, x);
  return ModelGraph::make(std::move(name), SampleUnit::record, {2}, net.take());
}

}  // namespace

Expected<ModelGraph> make_ncf() { return make_neumf("ncf", {138493, 26744, 64, {256, 128, 64}}); }
Expected<ModelGraph> make_ncf_ml1m() {
  return make_neumf("ncf_ml1m", {6040, 3706, 32, {128, 64, 32}});
}

Expected<ModelGraph> make_wide_and_deep() {
  struct Category {
    std::int64_t width, rows, ids = 1;
  };
  constexpr std::array<Category, 16> kCategories{{{128, 300000},
                                                  {19, 4},
                                                  {128, 100000},
                                                  {64, 4000},
                                                  {64, 1000},
                                                  {64, 2500},
                                                  {64, 300},
                                                  {64, 2000},
                                                  {64, 350, 3},
                                                  {64, 10000, 3},
                                                  {64, 100, 3},
                                                  {128, 250000},
                                                  {64, 2500},
                                                  {64, 4000},
                                                  {64, 1000},
                                                  {128, 5000}}};
  constexpr std::array<std::int64_t, 5> kLayers{1024, 1024, 1024, 1024, 1024};
  LayerList net(96);
  net.set_group("tables");
  const LayerId record = net.add("record", InputLayer{}, std::vector<LayerId>{});
  const LayerId numbers = net.add("numeric", SelectFeatures{0, kNumbers}, record);
  std::vector<LayerId> deep{numbers}, wide{net.add("wide.numeric", Linear{kNumbers, 1}, numbers)};
  std::int64_t first = kNumbers, width = kNumbers;
  for (std::size_t i = 0; i < kCategories.size(); ++i) {
    const Category& c = kCategories[i];
    const LayerId ids =
        net.add(fmt::format("categories.{}.ids", i), SelectFeatures{first, c.ids}, record);
    const EmbeddingBag table{c.rows, c.width, c.ids}, weight{c.rows, 1, c.ids};
    deep.push_back(net.add(fmt::format("deep.categories.{}", i), table, ids));
    wide.push_back(net.add(fmt::format("wide.categories.{}", i), weight, ids));
    first += c.ids;
    width += c.width;
  }
  net.set_group("layers");
  LayerId x = net.add("deep.concat", Concat{}, deep);
  for (std::size_t i = 0; i < kLayers.size(); ++i) {
    const std::string name = fmt::format("deep.{}", i);
    x = net.add(name, Linear{i == 0 ? width : kLayers[i - 1], kLayers[i]}, x);
    x = net.add(name + ".relu", Activation{}, x);
    x = net.add(name + ".dropout", Dropout{0.1}, x);
  }
  wide.push_back(net.add("deep.out", Linear{kLayers.back(), 1}, x));
  net.add("loss", SigmoidCrossEntropy{}, net.add("wide_and_deep", Add{}, wide));
  return ModelGraph::make("wide_and_deep", SampleUnit::record, {first}, net.take());
}

Expected<ModelGraph> make_vae_cf() {
  constexpr std::int64_t kFilms = 20108, kLiked = 73, kHidden = 600, kLatent = 200;
  LayerList net(24);
  net.set_group("encoder");
  LayerId x = net.add("liked", InputLayer{}, std::vector<LayerId>{});
  x = net.add("encoder_600", EmbeddingBag{kFilms, kHidden, kLiked}, x);
  x = net.add("encoder_600.tanh", Activation{ActivationKind::tanh}, x);
  x = net.add("encoder_400", Linear{kHidden, 2 * kLatent}, x);
  const LayerId mean = net.add("mean", SelectFeatures{0, kLatent}, x);
  const LayerId deviation = net.add("deviation", SelectFeatures{kLatent, kLatent}, x);
  const LayerId noise = net.add("epsilon", ExtraInput{1, kLatent}, std::vector<LayerId>{});
  const LayerId flat = net.add("epsilon.flat", Flatten{}, noise);
  const LayerId spread = net.add("deviation.epsilon", Multiply{}, {deviation, flat});
  net.set_group("decoder");
  x = net.add("latent", Add{}, {mean, spread});
  x = net.add("decoder_600", Linear{kLatent, kHidden}, x);
  x = net.add("decoder_600.tanh", Activation{ActivationKind::tanh}, x);
  x = net.add("decoder_films", Linear{kHidden, kFilms}, x);
  net.add("loss", SoftmaxCrossEntropy{kFilms}, x);
  return ModelGraph::make("vae_cf", SampleUnit::record, {kLiked}, net.take());
}

Expected<ModelGraph> make_boston_housing_mlp() {
  constexpr std::array<std::int64_t, 3> kWidths{64, 64, 1};
  LayerList net(8);
  const LayerId record = net.add("record", InputLayer{}, std::vector<LayerId>{});
  const LayerId price = perceptron(net, "dense", record, 13, kWidths, false);
  net.add("loss", MeanSquaredError{}, price);
  return ModelGraph::make("mlp_boston_housing", SampleUnit::record, {13}, net.take());
}

}  // namespace reckon
