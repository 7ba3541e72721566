#include <catch2/catch.hpp>

#include "exchange/prices/price_export.h"
#include "exchange/prices/price_overlay.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/overlay_catalog.h"
#include "support/shipped_catalog.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

const std::string kHead =
    "# numbers are examples\n"
    "provider,machine,accelerator,count,vcpus,memory_gib,network_gbps,network_link,region,"
    "usd_per_hour,spot_usd_per_hour,minimum_rental\n";

PriceExport machines(const std::string& lines) {
  auto made = read_price_export(kHead + lines, "own.csv", {{}, "2026-11-27"}, shipped_catalog());
  if (!made) FAIL(format(made.error()));
  return std::move(*made);
}
std::string refused(const std::string& lines) {
  const auto made =
      read_price_export(kHead + lines, "own.csv", {{}, "2026-11-27"}, shipped_catalog());
  REQUIRE_FALSE(made);
  return format(made.error());
}

Catalog overlay_of(const PriceExport& made) {
  const SourcedPrices sourced{made.source, made.prices, made.files};
  return overlay_catalog(price_overlay(std::span(&sourced, 1)));
}

const std::string kScenario = R"(
name: elsewhere
workload:
  model: resnet50
  dataset: imagenet
  train: {epochs: 1}
  batch_per_accelerator: 64
  strategy: {kind: multi_worker_mirrored}
cluster:
  provider: othercloud
  region: south-1
  pools:
    - {name: h100, machine: big-8xh100, nodes: 2}
)";

}  // namespace

TEST_CASE("a list of machines makes a catalog of a cloud that nobody knew, which plans") {
  const Catalog catalog = overlay_of(
      machines("othercloud,big-8xh100,H100-SXM5-80,8,208,1800,3200,infiniband,south-1,24,,7d\n"
               "othercloud,big-8xh100,H100-SXM5-80,8,208,1800,3200,infiniband,east-1,22,9,7d\n"
               "othercloud,cpus,,,32,128,,,south-1,1.5,,\n"));
  const Machine* big = catalog.find_machine(Provider{"othercloud"}, "big-8xh100");
  REQUIRE(big != nullptr);
  CHECK(big->vcpus == 208);
  CHECK(big->accelerator_count == 8);
  CHECK(big->network.value.v == Approx(3200e9 / 8));
  CHECK(big->minimum_rental.count() == 7 * 86400);
  const Machine* cpus = catalog.find_machine(Provider{"othercloud"}, "cpus");
  REQUIRE(cpus != nullptr);
  CHECK(cpus->network.assumed);  // the list does not say
  const auto file = parse_scenario(kScenario, "s.yaml", {});
  REQUIRE(file);
  const auto plan = make_plan(*file, catalog);
  if (!plan) FAIL(format(plan.error()));
  CHECK(plan->pools.front().price.machine.nano_usd_per_hour == 24'000'000'000);
  CHECK(plan->pools.front().minimum_rental.count() == 7 * 86400);
  CHECK(plan->jobs.front().checkpoint.storage.name == "othercloud-storage");
}

TEST_CASE("machines of a cloud that the catalog has are added to it") {
  const PriceExport made = machines("aws,my.giant,A100-SXM4-80,8,96,1152,400,efa,us-east-1,30,,\n");
  CHECK_FALSE(made.files.contains("providers.yaml"));
  const Catalog catalog = overlay_of(made);
  CHECK(catalog.find_machine(Provider{"aws"}, "my.giant") != nullptr);
  CHECK(catalog.find_machine(Provider{"aws"}, "p4d.24xlarge") != nullptr);
}

TEST_CASE("mistakes of a list of machines stand at their line, all at once") {
  const std::string errors = refused(
      "othercloud,a,H101,8,208,1800,3200,infiniband,south-1,24,,\n"
      "thirdcloud,b,,,8,64,10,,south-1,1,,\n"
      "othercloud,c,,,8,64,10,,south-1,,,\n"
      "othercloud,d,,,8,64,10,,south-1,cheap,,\n"
      "othercloud,e,,,8\n");
  CHECK_THAT(errors, Contains("own.csv:3:") && Contains("unknown accelerator 'H101'"));
  CHECK_THAT(errors, Contains("own.csv:4:1: error: machines of othercloud and of thirdcloud"));
  CHECK_THAT(errors, Contains("own.csv:5:") && Contains("there is no price"));
  CHECK_THAT(errors, Contains("own.csv:6:") && Contains("'cheap' is no price in USD an hour"));
  CHECK_THAT(errors, Contains("own.csv:7:") && Contains("5 fields in a table of 12 columns"));
}
