#include <map>

#include <catch2/catch.hpp>

#include "executor/train/data/samples.h"
#include "executor/train/layers/cannot_run.h"
#include "executor/train/pulled_tables.h"
#include "kernels/record_id.h"
#include "sim/model/zoo/builder.h"
#include "sim/model/zoo/records.h"

// What a worker has of embedding tables that parameter servers hold.
namespace {
using namespace reckon;

/// Gives places in the order in which rows are first named, as servers' exchange does.
class NamingExchange final : public GradientExchange {
 public:
  void start(ParameterView) override {}
  void gradient_ready(ParameterRange) override {}
  ExchangeTimes finish_step(std::int64_t, double) override { return {}; }
  std::vector<std::span<float>> optimizer_state() override { return {}; }
  void restore_optimizer_state() override {}
  std::vector<std::size_t> need_rows(std::size_t table,
                                     std::span<const std::int64_t> ids) override {
    std::vector<std::size_t> places;
    for (const std::int64_t id : ids)
      places.push_back(named[table].try_emplace(id, named[table].size()).first->second);
    return places;
  }
  std::map<std::size_t, std::map<std::int64_t, std::size_t>> named;
};

/// A table of which the same numbers are read by `other`, too: a second table where it is one.
ModelGraph two_readers(std::int64_t first, std::int64_t count, bool table, std::int64_t rows = 50) {
  LayerList net(8);
  const LayerId record = net.add("record", InputLayer{}, std::vector<LayerId>{});
  const LayerId ids = net.add("ids", SelectFeatures{1, 2}, record);
  const LayerId looked_up = net.add("table", EmbeddingBag{rows, 4, 2}, ids);
  const LayerId others = net.add("others", SelectFeatures{first, count}, record);
  const LayerId other = table ? net.add("other", EmbeddingBag{70, 4, count}, others)
                              : net.add("other", Linear{count, 4}, others);
  const LayerId x = net.add("both", Concat{}, {looked_up, other});
  net.add("loss", SigmoidCrossEntropy{}, net.add("out", Linear{8, 1}, x));
  return ModelGraph::make("two readers", SampleUnit::record, {4}, net.take()).value();
}

}  // namespace

TEST_CASE("a worker's room for a table is what its samples can name, and no more than the table") {
  const ModelGraph ncf = make_ncf().value();  // 30.5 million of its 31.9 million weights in tables
  const ParameterLayout whole = parameter_layout(ncf), pulled = pulled_layout(ncf, 100);
  REQUIRE(pulled.slots.size() == whole.slots.size());
  std::size_t dense = 0, rooms = 0, first = 0;
  for (std::size_t k = 0; k < pulled.slots.size(); ++k) {
    const ParameterSlot &slot = pulled.slots[k], &of_whole = whole.slots[k];
    CHECK(slot.first == first);
    first += slot.count;
    CHECK(slot.name == of_whole.name);
    CHECK(slot.global_shape() == of_whole.shape);
    CHECK(slices_of(slot, slot.name).empty() == slot.pulled);
    (slot.pulled ? rooms : dense) += slot.count;
    if (!slot.pulled) CHECK(slot.count == of_whole.count);
  }
  CHECK(pulled.count == first);
  CHECK(rooms == 100 * 2 * (64 + 128));  // a user's and a film's row of each of two widths
  CHECK(dense == whole.count - (138493 + 26744) * (64 + 128));
  const ParameterLayout all = pulled_layout(ncf, 1'000'000);
  CHECK(all.count == whole.count);
}

TEST_CASE("ids of a batch become places of rows, and tables that read the same ids agree") {
  const ModelGraph model = two_readers(1, 2, true);
  REQUIRE(cannot_pull_rows(model).empty());
  TablePlaces tables(model, pulled_layout(model, 3));
  const std::vector<float> record{0.5F, 49, 7, 0.25F, 1.5F, 7, 7, 2.5F, 3.5F, 3, 49, 4.5F};
  NamingExchange exchange;
  const BatchView placed = tables.pull({.inputs = {record}}, 3, exchange);
  const std::vector<float> expected{0.5F, 0, 1, 0.25F, 1.5F, 1, 1, 2.5F, 3.5F, 2, 0, 4.5F};
  CHECK(std::vector<float>(placed.inputs[0].begin(), placed.inputs[0].end()) == expected);
  REQUIRE(exchange.named.size() == 2);
  for (const auto& [room, rows] : exchange.named)
    CHECK(rows == std::map<std::int64_t, std::size_t>{{49, 0}, {7, 1}, {3, 2}});
}

TEST_CASE("a table may have more rows than a float counts") {
  const ModelGraph model = two_readers(0, 1, false, 48'937'457);  // the largest of MLPerf's DLRM
  REQUIRE(cannot_run(model).empty());
  TablePlaces tables(model, pulled_layout(model, 2));
  const std::int64_t even = 40'000'000, odd = 40'000'001;  // the same float
  const std::vector<float> record{1, record_number(odd), record_number(even), 2,
                                  3, record_number(7),   record_number(odd),  4};
  NamingExchange exchange;
  const BatchView placed = tables.pull({.inputs = {record}}, 2, exchange);
  CHECK(std::vector<float>(placed.inputs[0].begin(), placed.inputs[0].end()) ==
        std::vector<float>{1, 0, 1, 2, 3, 2, 0, 4});
  REQUIRE(exchange.named.size() == 1);
  CHECK(exchange.named.begin()->second ==
        std::map<std::int64_t, std::size_t>{{odd, 0}, {even, 1}, {7, 2}});
  // Synthetic records name rows beyond the 2^24th.
  SampleBatch batch(sample_format(model), 1);
  int beyond = 0;
  for (std::int64_t k = 0; k < 100; ++k) {
    fill_synthetic(sample_format(model), 5, k, batch, 0);
    for (const std::size_t at : {std::size_t{1}, std::size_t{2}}) {
      const std::int64_t id = record_id(batch.input(0, 0)[at]);
      REQUIRE(id >= 0);
      REQUIRE(id < 48'937'457);
      beyond += id > (std::int64_t{1} << 24) ? 1 : 0;
    }
  }
  CHECK(beyond > 100);  // two thirds of 200
}

TEST_CASE("numbers that are ids of a table and something else, too, are refused") {
  CHECK(cannot_pull_rows(two_readers(0, 1, false)).empty());
  CHECK(cannot_pull_rows(two_readers(3, 1, true)).empty());
  const auto said = [](const ModelGraph& model) {
    const Diagnostics errors = cannot_pull_rows(model);
    return errors.empty() ? std::string() : format(errors);
  };
  CHECK_THAT(
      said(two_readers(0, 2, false)),
      Catch::Contains("layer 'other' reads numbers of a sample that are ids of table 'table'") &&
          Catch::Contains("sparse_embeddings=false"));
  CHECK_THAT(said(two_readers(2, 2, true)), Catch::Contains("ids of table 'other'"));
}
