#include <catch2/catch.hpp>

#include "sim/catalog/catalog.h"
#include "sim/serving/measured_service.h"

using namespace reckon;

namespace {

MeasuredBatches of(double batches, double size, double milliseconds) {
  return {batches, batches * size, Seconds{batches * milliseconds / 1000}};
}

const char* const kPage = R"(# HELP reckon_serving_batches_total Forward passes, by their instances.
# TYPE reckon_serving_batches_total counter
reckon_serving_batches_total{model="m",up_to="1"} 100
reckon_serving_batches_total{model="m",up_to="4"} 20
reckon_serving_instances_total{model="m",up_to="1"} 100
reckon_serving_instances_total{model="m",up_to="4"} 70
reckon_serving_busy_seconds_total{model="m",up_to="1"} 0.5
reckon_serving_busy_seconds_total{model="m",up_to="4"} 0.2
reckon_serving_latency_seconds_bucket{model="m",le="0.5"} 170
)";

}  // namespace

TEST_CASE("a server's page is its batches, by size") {
  REQUIRE(is_serving_metrics(kPage));
  CHECK_FALSE(is_serving_metrics("step_seconds\n0.5\n"));
  const auto measured = parse_serving_metrics("page", kPage);
  REQUIRE(measured);
  REQUIRE(measured->size() == 2);
  CHECK(measured->front().size() == 1);
  CHECK(measured->front().time().count() == Approx(0.005));
  CHECK(measured->back().size() == 3.5);
  CHECK(measured->back().time().count() == Approx(0.010));
}

TEST_CASE("a server that has answered nothing is said by name") {
  const auto measured = parse_serving_metrics(
      "page.txt", "reckon_serving_batches_total{model=\"m\",up_to=\"1\"} 0\n");
  REQUIRE_FALSE(measured);
  CHECK_THAT(format(measured.error()),
             Catch::Contains("page.txt: error: ") && Catch::Contains("answered nothing yet"));
}

TEST_CASE("what lies on a line is found again, whatever the weights") {
  // S(b) = 3 ms + 2 ms b
  const auto fit = fit_serving_overhead({of(1000, 1, 5), of(10, 2, 7), of(3, 6.5, 16)});
  REQUIRE(fit);
  CHECK(fit->batch.count() == Approx(0.003));
  CHECK(fit->request.count() == Approx(0.002));
  CHECK(fit->error == Approx(0).margin(1e-9));
}

TEST_CASE("no part of a batch takes less than no time") {
  // Twice the size, more than twice the time: all of it is the requests'.
  const auto fit = fit_serving_overhead({of(10, 1, 1), of(10, 2, 2.5)});
  REQUIRE(fit);
  CHECK(fit->batch.count() == 0);
  CHECK(fit->request.count() == Approx(0.0011).epsilon(0.05));
  CHECK(fit->error > 0.05);
  const auto flat = fit_serving_overhead({of(10, 1, 2), of(10, 2, 1.5)});
  REQUIRE(flat);
  CHECK(flat->request.count() == 0);
  CHECK(flat->batch.count() == Approx(0.0017).epsilon(0.05));
}

TEST_CASE("batches of one size do not tell a batch from its requests") {
  CHECK_FALSE(fit_serving_overhead({of(1000, 1, 5)}));
}
