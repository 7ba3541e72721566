#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "sim/scenario/yaml/scenario_yaml.h"
#include "sim/serving/measured_service.h"
#include "sim/serving/serving.h"
#include "support/shipped_catalog.h"

using namespace reckon;
using namespace std::chrono_literals;

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

TEST_CASE("batches on no line are written as a table, and read back as such") {
  // A matrix whose weights are read once a batch: two take three times as long as one.
  const std::vector<MeasuredBatches> measured{of(1000, 1, 2.3), of(200, 2, 7.4), of(90, 3.5, 7.9),
                                              of(1, 4, 30), of(40, 6.5, 8.4)};
  const MeasuredService service = fit_serving(measured, Seconds{0.0004});
  REQUIRE(service.line);
  CHECK(service.line->error > kLineError);
  REQUIRE(service.times.size() == 4);  // the one batch of four was rare
  const std::string text =
      "name: s\nserving: {model: mlp_mnist, requests_per_second: 1, batch: "
      "{max: 8}}\ncluster:\n  provider: gcp\n  region: us-central1\n  pools:\n"
      "    - {name: p, role: inference, machine: n1-standard-8, nodes: 1}\n";
  const std::filesystem::path layer = std::filesystem::temp_directory_path() /
                                      ("reckon-measured-" + std::to_string(::getpid()) + ".yaml");
  std::ofstream(layer) << serving_layer(service, "page");
  const auto file = parse_scenario(text, "s.yaml", {}, std::vector{layer});
  std::filesystem::remove(layer);
  if (!file) FAIL(format(file.error()));
  const auto plan = make_serving_plan(*file, test::shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  CHECK(batch_time(*plan, 1).count() == Approx(0.0023));
  CHECK(batch_time(*plan, 2).count() == Approx(0.0074));
  CHECK(batch_time(*plan, 5).count() == Approx(0.0079 + 0.0005 * 1.5 / 3));
  CHECK(batch_time(*plan, 8).count() == Approx(0.0084 + 0.0005 * 1.5 / 3));  // the last line
  CHECK(plan->overhead_latency.count() == Approx(0.0004));
  const ServingForecast f = forecast_serving(*plan);
  CHECK(f.p50.count() == Approx(0.0027).epsilon(0.01));  // alone: its pass, and what is outside
  CHECK(f.service.busy_seconds < 0.0024 * double(f.service.arrived));  // that keeps no replica busy
}

TEST_CASE("a page tells what requests took outside the queue") {
  CHECK_FALSE(measured_outside(kPage));
  const auto outside = measured_outside(
      "reckon_serving_outside_seconds_sum{model=\"m\"} 0.5\n"
      "reckon_serving_outside_seconds_count{model=\"m\"} 1000\n");
  REQUIRE(outside);
  CHECK(outside->count() == Approx(0.0005));
}

TEST_CASE("beyond the sizes that a load shows, batches grow as they did alone") {
  // Alone 2 ms + 4 ms b up to four, and then 3 ms each; under load a tenth slower.
  const std::vector<std::pair<double, Seconds>> alone{{1, 6ms}, {2, 10ms}, {4, 18ms}, {8, 30ms}};
  const std::vector<MeasuredBatches> measured{of(4000, 1, 6.6), of(700, 2, 11), of(200, 3.5, 17.6)};
  const MeasuredService service = fit_serving(measured, std::nullopt, alone);
  REQUIRE(service.slowed);
  CHECK(*service.slowed == Approx(1.1));
  REQUIRE(service.times.size() == 4);
  CHECK(service.times[0].second.count() == Approx(0.0066));
  CHECK(service.times[3].first == 8);
  CHECK(service.times[3].second.count() == Approx(0.033));
  // The line through what was seen would say 37.4 ms.
  const auto line = fit_serving_overhead(measured);
  REQUIRE(line);
  CHECK((line->batch + 8 * line->request).count() == Approx(0.0374).epsilon(0.01));
}

TEST_CASE("a size that was seen once or twice says little, one that was seen often its own") {
  const std::vector<std::pair<double, Seconds>> alone{{1, 10ms}, {2, 20ms}, {4, 40ms}};
  const MeasuredService service =
      fit_serving({of(10'000, 1, 10), of(10'000, 2, 24), of(1, 4, 120)}, std::nullopt, alone);
  REQUIRE(service.times.size() == 3);
  CHECK(service.times[0].second.count() == Approx(0.010).epsilon(0.01));
  CHECK(service.times[1].second.count() == Approx(0.024).epsilon(0.01));
  CHECK(service.times[2].second.count() == Approx(0.0453 * *service.slowed / 1.13).epsilon(0.03));
}

TEST_CASE("a page tells what passes took alone, by their size") {
  CHECK(measured_alone(kPage).empty());
  const auto alone = measured_alone(
      "# TYPE reckon_serving_alone_seconds gauge\n"
      "reckon_serving_alone_seconds{model=\"m\",instances=\"16\"} 0.08\n"
      "reckon_serving_alone_seconds{model=\"m\",instances=\"1\"} 0.006\n"
      "reckon_serving_alone_seconds{model=\"m\",instances=\"2\"} nan\n");
  REQUIRE(alone.size() == 2);
  CHECK(alone[0] == std::pair(1.0, Seconds{0.006}));
  CHECK(alone[1] == std::pair(16.0, Seconds{0.08}));
}

TEST_CASE("batches of one size do not tell a batch from its requests") {
  CHECK_FALSE(fit_serving_overhead({of(1000, 1, 5)}));
}
