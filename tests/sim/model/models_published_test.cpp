#include <catch2/catch.hpp>

#include <cmath>

#include "sim/catalog/catalog.h"
#include "sim/model/zoo/zoo.h"
#include "support/shipped_catalog.h"

// catalogs/models.csv holds what is published of each model's size; the graphs count for
// themselves.
using namespace reckon;

namespace {

/// 1.3e9 and 213e6 are rounded; what has digits down to the thousands was counted.
bool is_rounded(double printed) { return std::fmod(printed, 1e5) == 0; }

/// torchvision keeps frozen batch norms in buffers.
std::int64_t frozen_norms(const ModelGraph& model) {
  std::int64_t sum = 0;
  for (const Layer& layer : model.layers())
    if (layer.frozen && std::holds_alternative<BatchNorm>(layer.op))
      sum += model.counts()[index(layer.id)].parameters;
  return sum;
}

}  // namespace

TEST_CASE(
    "each model of the zoo has the size that is published of it, exactly where it was counted") {
  int exact = 0;
  for (const PublishedModel& row : test::shipped_catalog().published_models) {
    CAPTURE(row.model);
    if (row.model.find('/') != std::string::npos) continue;  // of a config: tests/exchange
    const auto model = zoo_model(row.model);
    REQUIRE(model);
    if (row.parameters && !row.model.starts_with("bert_")) {  // see the next test
      const double printed = row.parameters->value;
      // 2 %: GPT-3's smaller rows are rough, and Transformer-big's vocabulary is "about 37000".
      const double margin = is_rounded(printed) ? 0.02 * printed : 0;
      const auto counted = double(model->parameters() - frozen_norms(*model));
      CHECK(counted == Approx(printed).epsilon(0).margin(margin + 0.5));
      exact += counted == printed ? 1 : 0;
    }
    if (row.active_parameters)
      CHECK(double(model->active_parameters()) ==
            Approx(row.active_parameters->value).epsilon(0.03));
  }
  // All whose weights were counted and not only their size printed.
  CHECK(exact >= 60);
}

TEST_CASE("the published count of BERT is that of the encoder with its pooler") {
  for (const char* name : {"bert_base", "bert_large"}) {
    CAPTURE(name);
    const ModelGraph model = zoo_model(name).value();
    std::int64_t encoder = 0;
    for (const Layer& layer : model.layers())
      if (layer.name.starts_with("bert.")) encoder += model.counts()[index(layer.id)].parameters;
    CHECK(double(encoder) == test::shipped_catalog().find_published(name)->parameters->value);
  }
}

TEST_CASE("a published model that the zoo does not have is a mistake of the catalog") {
  CHECK(test::shipped_catalog().find_published("resnet50_v1_5") != nullptr);
  CHECK(test::shipped_catalog().find_published("resnet5") == nullptr);
  for (const PublishedModel& row : test::shipped_catalog().published_models) {
    CAPTURE(row.model);
    CHECK((row.parameters || row.forward_macs));
  }
}
