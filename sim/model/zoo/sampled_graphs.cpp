#include "sim/model/zoo/sampled_graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sim/model/zoo/builder.h"

namespace reckon {
namespace {

enum Type : std::size_t { paper, author, fos, institute, journal, conference, kTypes };
constexpr std::array<std::string_view, kTypes> kTypeNames{"paper",     "author",  "fos",
                                                          "institute", "journal", "conference"};
template <typename T>
using PerType = std::array<T, kTypes>;

/// [Khatua 2023, table 3; journals and conferences: the files' lengths in
/// alibaba/graphlearn-for-pytorch:examples/igbh]
constexpr PerType<double> kNodes{269'346'174, 277'220'883, 712'960, 26'918, 49'052, 4'547};

/// What targets gather from sources.
struct Relation {
  std::string_view name;
  Type source, target;
  double links;
};
// Both directions of a link are relations; citations are made symmetric, each paper also cites
// itself (examples/igbh/dataset.py). Their sum without reverses, journals and conferences is the
// 5,812,005,639 of MLPerf's README.
constexpr double kCites = 3'727'095'830 + 269'346'174.0, kWrittenBy = 716'761'549,
                 kTopic = 1'050'280'600, kAffiliated = 48'521'486;
constexpr std::array<Relation, 11> kRelations{
    {{"cites", paper, paper, 2 * kCites},
     {"written_by", paper, author, kWrittenBy},
     {"topic", paper, fos, kTopic},
     {"affiliated_to", author, institute, kAffiliated},
     {"published", paper, journal, kNodes[paper]},
     {"venue", paper, conference, kNodes[paper]},
     {"rev_written_by", author, paper, kWrittenBy},
     {"rev_topic", fos, paper, kTopic},
     {"rev_affiliated_to", institute, author, kAffiliated},
     {"rev_published", journal, paper, kNodes[paper]},
     {"rev_venue", conference, paper, kNodes[paper]}}};
template <typename T>
using PerRelation = std::array<T, kRelations.size()>;

constexpr std::array<double, 3> kFanOut{15, 10, 5};
constexpr std::size_t kLayers = kFanOut.size();
constexpr double kSeeds = 2048;
constexpr std::int64_t kFeatures = 1024, kOutputs = 512, kGatHeads = 4, kLabels = 2983;

/// Different nodes among `draws` even draws of n.
double different(double draws, double n) { return n * -std::expm1(-draws / n); }

struct Neighbourhood {
  /// Nodes of the batch after so many hops, and the links of each hop.
  std::array<PerType<double>, kLayers + 1> nodes{};
  std::array<PerRelation<double>, kLayers> links{};
};

Neighbourhood sample_neighbourhood() {
  Neighbourhood n;
  PerType<double> frontier{};
  frontier[paper] = n.nodes[0][paper] = kSeeds;
  for (std::size_t hop = 0; hop < kLayers; ++hop) {
    PerType<double> draws{};
    for (std::size_t r = 0; r < kRelations.size(); ++r) {
      const Relation& relation = kRelations[r];
      const double degree = relation.links / kNodes[relation.target];
      n.links[hop][r] = frontier[relation.target] * std::min(degree, kFanOut[hop]);
      draws[relation.source] += n.links[hop][r];
    }
    for (std::size_t t = 0; t < kTypes; ++t) {
      const double known = n.nodes[hop][t];
      frontier[t] = different(draws[t], kNodes[t]) * (1 - known / kNodes[t]);
      n.nodes[hop + 1][t] = known + frontier[t];
    }
  }
  return n;
}

/// Of one seed; what there is of a batch is there once at least.
std::int64_t per_seed(double of_batch) {
  return of_batch < 0.5 ? 0 : std::max<std::int64_t>(1, std::llround(of_batch / kSeeds));
}

class RelationalAttention {
 public:
  RelationalAttention() : net_(256) {}

  Expected<ModelGraph> build() {
    PerType<LayerId> x = features();
    for (std::size_t layer = 0; layer < kLayers; ++layer) x = attend(layer, x);
    net_.set_group("classifier");
    const LayerId scores = net_.add("classifier", Linear{kOutputs, kLabels}, x[paper]);
    net_.add("loss", SoftmaxCrossEntropy{kLabels}, scores);
    return ModelGraph::make("rgat_mlperf", SampleUnit::record, {ids()}, net_.take());
  }

 private:
  std::int64_t nodes(std::size_t hops, std::size_t type) const {
    return per_seed(sampled_.nodes[hops][type]);
  }

  /// A record holds the ids of its nodes; their features are looked up.
  std::int64_t ids() const {
    std::int64_t n = 0;
    for (std::size_t t = 0; t < kTypes; ++t) n += nodes(kLayers, t);
    return n;
  }
  PerType<LayerId> features() {
    net_.set_group("features");
    const LayerId record = net_.add("nodes", InputLayer{}, std::vector<LayerId>{});
    PerType<LayerId> x{};
    for (std::size_t t = 0; t < kTypes; ++t)
      x[t] = net_.add(std::string(kTypeNames[t]),
                      Operator{.output = {nodes(kLayers, t), kFeatures}, .table = true}, record);
    return x;
  }

  /// The first layer reads the nodes of all hops, the last one gives the seeds.
  PerType<LayerId> attend(std::size_t layer, const PerType<LayerId>& x) {
    const std::size_t hops = kLayers - layer;
    const std::string name = fmt::format("layers.{}", layer);
    net_.set_group(name);
    PerType<std::vector<LayerId>> gathered;
    std::int64_t idle_parameters = 0;
    for (std::size_t r = 0; r < kRelations.size(); ++r) {
      const Relation& relation = kRelations[r];
      double links = 0;
      for (std::size_t hop = 0; hop < hops; ++hop) links += sampled_.links[hop][r];
      const std::int64_t in = layer == 0 ? kFeatures : kOutputs;
      const std::int64_t targets = nodes(hops - 1, relation.target);
      if (targets == 0 || per_seed(links) == 0) {
        idle_parameters += in * kOutputs + 3 * kOutputs;
        continue;
      }
      const double n = kNodes[relation.source];
      const std::int64_t sources =
          std::min(per_seed(different(links, n)), nodes(hops, relation.source));
      gathered[relation.target].push_back(
          relate(fmt::format("{}.{}", name, relation.name),
                 {x[relation.source], sources, x[relation.target], targets, in, per_seed(links)}));
    }
    PerType<LayerId> y{};
    for (std::size_t t = 0; t < kTypes; ++t)
      if (!gathered[t].empty())
        y[t] = combine(name + "." + std::string(kTypeNames[t]), gathered[t]);
    if (idle_parameters > 0) {  // weights that no sample reaches, but which are trained and sent
      const Operator idle{.output = {nodes(hops - 1, paper), kOutputs},
                          .parameters = idle_parameters};
      y[paper] = net_.add(name + ".idle", idle, y[paper]);
    }
    return y;
  }

  struct Ends {
    LayerId source;
    std::int64_t sources;
    LayerId target;
    std::int64_t targets, in, links;
  };

  /// Attention of the targets over their sources [Velickovic 2018, eq. 1 to 5].
  LayerId relate(const std::string& name, const Ends& e) {
    const auto view = [&](const char* end, LayerId of, std::int64_t rows) {
      return net_.add(name + end, Operator{.output = {rows, e.in}, .view = true}, of);
    };
    const LayerId from = view(".source", e.source, e.sources);
    const LayerId to = view(".target", e.target, e.targets);
    const LayerId keys = net_.add(name + ".keys", Linear{e.in, kOutputs, false}, from);
    const LayerId queries =
        net_.add_tied(name + ".queries", Linear{e.in, kOutputs, false}, to, keys);
    // A link's score: a vector of attention a head for each end.
    const LayerId scores = net_.add(
        name + ".scores", Operator{.output = {e.links, kGatHeads}, .parameters = 2 * kOutputs},
        std::vector<LayerId>{keys, queries});
    // Weighted sums by one fused kernel: no message of a link is ever written.
    return net_.add(name + ".sum",
                    Operator{.output = {e.targets, kOutputs}, .parameters = kOutputs},
                    std::vector<LayerId>{keys, scores});
  }

  LayerId combine(const std::string& name, std::vector<LayerId> of_relations) {
    LayerId x = of_relations.front();
    if (of_relations.size() > 1) x = net_.add(name + ".add", Add{}, std::move(of_relations));
    x = net_.add(name + ".activation", Activation{}, x);
    return net_.add(name + ".dropout", Dropout{0.2}, x);
  }

  LayerList net_;
  Neighbourhood sampled_ = sample_neighbourhood();
};

}  // namespace

Expected<ModelGraph> make_rgat_mlperf() { return RelationalAttention().build(); }

}  // namespace reckon
