#include "sim/catalog/convergence.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "support/shipped_catalog.h"

using namespace reckon;

namespace {

ConvergencePoint point(std::int64_t batch, double samples, int runs = 1) {
  return {.model = "m",
          .dataset = "d",
          .accuracy = 0.5,
          .global_batch = batch,
          .samples = Fact<Samples>{Samples{samples}},
          .runs = runs};
}

}  // namespace

TEST_CASE("points on the law give the law back") {
  // E(B) = 1000 (1 + B / 400).
  const std::vector<ConvergencePoint> points{point(100, 1250), point(400, 2000, 3),
                                             point(1200, 4000)};
  const auto law = convergence_law(points);
  REQUIRE(law);
  CHECK(law->fewest.v == Approx(1000));
  CHECK(law->critical_batch == Approx(400));
  CHECK(law->spread == Approx(0).margin(1e-9));
  CHECK(law->smallest_batch == 100);
  CHECK(law->largest_batch == 1200);
  CHECK(samples_to_target(*law, 800).v == Approx(3000));
}

TEST_CASE("a single batch, and batches that cost nothing, give a constant") {
  const std::vector<ConvergencePoint> one{point(100, 1250)};
  CHECK(samples_to_target(*convergence_law(one), 6400).v == Approx(1250));
  const std::vector<ConvergencePoint> falling{point(100, 1300), point(200, 1200)};
  const auto law = convergence_law(falling);
  CHECK(law->critical_batch == 0);
  CHECK(samples_to_target(*law, 100).v == samples_to_target(*law, 10000).v);
  CHECK_FALSE(convergence_law({}).has_value());
}

TEST_CASE("the catalog's points lie around their laws, and large batches need more samples") {
  const Catalog& catalog = test::shipped_catalog();
  const auto laws = catalog.convergence_of("resnet50_v1_5", "imagenet");
  REQUIRE(laws.size() == 1);
  CHECK(laws.front().accuracy == 0.759);
  // 35 epochs at 3,264, as all large submissions of MLPerf needed; about 45 at 10,240.
  const double epochs = samples_to_target(laws.front(), 3264).v / 1281167;
  CHECK(epochs == Approx(35).epsilon(0.05));
  CHECK(samples_to_target(laws.front(), 10240).v / 1281167 == Approx(45).epsilon(0.1));
  for (const ConvergencePoint& p : catalog.convergence) {
    CAPTURE(p.model);
    for (const Convergence& law : catalog.convergence_of(p.model, p.dataset)) {
      CHECK(law.critical_batch > 0);
      // A factor of 1.25 either way for two of three points.
      CHECK(law.spread < std::log(1.25));
    }
  }
  CHECK(catalog.convergence_of("resnet50_v1_5", "coco").empty());
}
