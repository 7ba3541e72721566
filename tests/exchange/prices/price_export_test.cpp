#include "exchange/prices/price_export.h"

#include <catch2/catch.hpp>

#include "exchange/prices/google_sku.h"
#include "exchange/prices/price_changes.h"
#include "exchange/prices/price_overlay.h"
#include "support/overlay_catalog.h"
#include "support/shipped_catalog.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

constexpr double kHour = 3600;

PriceExport read(const std::string& text, const PriceExportHints& hints = {{}, "2026-11-20"}) {
  auto made = read_price_export(text, "list", hints, shipped_catalog());
  if (!made) FAIL(format(made.error()));
  return std::move(*made);
}
std::string refused_export(const std::string& text) {
  const auto made = read_price_export(text, "list", {{}, "2026-11-20"}, shipped_catalog());
  REQUIRE_FALSE(made);
  return format(made.error());
}

const Offering& only(const PriceExport& made, std::string_view item) {
  const Offering* found = nullptr;
  for (const Offering& o : made.prices)
    if (o.item == item) {
      REQUIRE(found == nullptr);
      found = &o;
    }
  REQUIRE(found != nullptr);
  return *found;
}

/// In the shape of the offer file of AmazonEC2.
const std::string kOffers = R"({
  "formatVersion": "v1.0", "offerCode": "AmazonEC2", "version": "20261119210515",
  "publicationDate": "2026-11-19T21:05:15Z",
  "products": {
    "SKU1": {"sku": "SKU1", "productFamily": "Compute Instance", "attributes": {
      "servicecode": "AmazonEC2", "location": "US East", "locationType": "AWS Region",
      "instanceType": "p5.48xlarge", "tenancy": "Shared", "operatingSystem": "Linux",
      "regionCode": "us-east-1", "capacitystatus": "Used", "preInstalledSw": "NA"}},
    "SKU2": {"sku": "SKU2", "productFamily": "Compute Instance", "attributes": {
      "instanceType": "p5.48xlarge", "tenancy": "Shared", "operatingSystem": "Windows",
      "regionCode": "us-east-1", "capacitystatus": "Used", "preInstalledSw": "NA"}},
    "SKU3": {"sku": "SKU3", "productFamily": "Compute Instance", "attributes": {
      "instanceType": "z9.giant", "tenancy": "Shared", "operatingSystem": "Linux",
      "regionCode": "us-east-1", "capacitystatus": "Used", "preInstalledSw": "NA"}},
    "SKU4": {"sku": "SKU4", "productFamily": "Storage", "attributes": {"volumeApiName": "gp3"}}
  },
  "terms": {
    "OnDemand": {
      "SKU1": {"SKU1.T": {"offerTermCode": "T", "sku": "SKU1", "priceDimensions": {"SKU1.T.R": {
        "unit": "Hrs", "description": "per hour", "pricePerUnit": {"USD": "49.5360000000"}}}}},
      "SKU2": {"SKU2.T": {"priceDimensions": {"SKU2.T.R": {
        "unit": "Hrs", "pricePerUnit": {"USD": "99.0000000000"}}}}}},
    "Reserved": {"SKU1": {"SKU1.Y": {"priceDimensions": {"SKU1.Y.R": {
        "unit": "Hrs", "pricePerUnit": {"USD": "1.0000000000"}}}}}}
  }
})";

}  // namespace

TEST_CASE("AWS's offer file prices Linux on shared hardware, and counts machines nobody knows") {
  const PriceExport made = read(kOffers);
  CHECK(made.provider.name == "aws");
  CHECK(made.source.id == "aws-price-list-2026-11-19");
  CHECK(made.source.retrieved == "2026-11-19");
  REQUIRE(made.prices.size() == 1);
  const Offering& p5 = only(made, "p5.48xlarge");
  CHECK(p5.region == "us-east-1");
  CHECK(p5.covers == Offering::Covers::machine_with_accelerators);
  CHECK(p5.on_demand->value.v * kHour == Approx(49.536));
  CHECK_FALSE(p5.spot);
  CHECK(made.unknown == std::map<std::string, std::int64_t>{{"z9.giant", 1}});
  CHECK(made.passed_over == 2);  // Windows, a disk
}

TEST_CASE("a spot price history is the mean over time and zones, from the lowest to the highest") {
  // Zone a: 10 USD for 18 h, 16 USD for 6 h: 11.5 in the mean. Zone b: 20 USD. Together 15.75.
  const PriceExport made = read(R"({"SpotPriceHistory": [
    {"AvailabilityZone": "us-east-1a", "InstanceType": "p5.48xlarge", "SpotPrice": "16.000000",
     "ProductDescription": "Linux/UNIX", "Timestamp": "2026-11-19T18:00:00+00:00"},
    {"AvailabilityZone": "us-east-1a", "InstanceType": "p5.48xlarge", "SpotPrice": "10.000000",
     "ProductDescription": "Linux/UNIX", "Timestamp": "2026-11-19T00:00:00.000Z"},
    {"AvailabilityZone": "us-east-1b", "InstanceType": "p5.48xlarge", "SpotPrice": "20.000000",
     "ProductDescription": "Linux/UNIX", "Timestamp": "2026-11-19T00:00:00Z"},
    {"AvailabilityZone": "us-east-1b", "InstanceType": "p5.48xlarge", "SpotPrice": "90.000000",
     "ProductDescription": "Windows", "Timestamp": "2026-11-19T00:00:00Z"},
    {"AvailabilityZone": "us-east-1b", "InstanceType": "g4dn.xlarge", "SpotPrice": "0.2",
     "ProductDescription": "Linux/UNIX", "Timestamp": "2026-11-20T00:00:00Z"}]})");
  REQUIRE(made.prices.size() == 2);
  const Offering& p5 = only(made, "p5.48xlarge");
  CHECK(p5.region == "us-east-1");
  CHECK(p5.spot->value.v * kHour == Approx(15.75));
  CHECK(p5.spot->low.v * kHour == Approx(10));
  CHECK(p5.spot->high.v * kHour == Approx(20));
  CHECK(p5.spot->assumed);
  CHECK_FALSE(p5.on_demand);
  CHECK(p5.date == "2026-11-20");
  CHECK_FALSE(only(made, "g4dn.xlarge").spot->assumed);
  CHECK_FALSE(made.complete);
}

TEST_CASE("Azure's retail prices are on demand and spot by the meter's name, without Windows") {
  const auto item = [](const std::string& sku, const std::string& product, const char* price) {
    return R"({"currencyCode": "USD", "retailPrice": )" + std::string(price) +
           R"(, "armRegionName": "eastus", "productName": ")" + product + R"(", "skuName": ")" +
           sku + R"(", "serviceName": "Virtual Machines", "unitOfMeasure": "1 Hour",
              "type": "Consumption", "armSkuName": "Standard_NC6s_v3"})";
  };
  const std::string linux = "Virtual Machines NCSv3 Series";
  const PriceExport made =
      read("{\"Items\": [" + item("NC6s v3", linux, "3.366") + "," +
           item("NC6s v3 Spot", linux, "0.4") + "," + item("NC6s v3 Low Priority", linux, "0.6") +
           "," + item("NC6s v3", linux + " Windows", "9") + "], \"NextPageLink\": null}");
  REQUIRE(made.prices.size() == 1);
  const Offering& machine = made.prices.front();
  CHECK(machine.item == "Standard_NC6s_v3");
  CHECK(machine.on_demand->value.v * kHour == Approx(3.366));
  CHECK(machine.spot->value.v * kHour == Approx(0.4));
  CHECK(machine.date == "2026-11-20");
  CHECK(made.passed_over == 2);
}

TEST_CASE("Google's SKUs price machines by cores and memory, and accelerators by themselves") {
  const auto sku = [](const char* description, const char* usage, const char* unit, int nanos) {
    return R"({"description": ")" + std::string(description) +
           R"(", "category": {"resourceFamily": "Compute", "usageType": ")" + usage +
           R"("}, "serviceRegions": ["us-central1"], "pricingInfo": [{"pricingExpression":
             {"usageUnit": ")" +
           unit + R"(", "tieredRates": [{"startUsageAmount": 0, "unitPrice":
              {"currencyCode": "USD", "units": "0", "nanos": )" +
           std::to_string(nanos) + "}}]}}]}";
  };
  const PriceExport made = read(
      "{\"skus\": [" +
      sku("N1 Predefined Instance Core running in Americas", "OnDemand", "h", 30'000'000) + "," +
      sku("N1 Predefined Instance Ram running in Americas", "OnDemand", "GiBy.h", 4'000'000) + "," +
      sku("Spot Preemptible N1 Predefined Instance Core running in Americas", "Preemptible", "h",
          6'000'000) +
      "," +
      sku("Spot Preemptible N1 Predefined Instance Ram running in Americas", "Preemptible",
          "GiBy.h", 1'000'000) +
      "," + sku("Custom Instance Core running in Americas", "OnDemand", "h", 33'000'000) + "," +
      sku("Nvidia Tesla T4 GPU running in Americas", "OnDemand", "h", 350'000'000) + "," +
      sku("Nvidia Tesla T4 GPU attached to Spot Preemptible VMs running in Americas", "Preemptible",
          "h", 140'000'000) +
      "," + sku("Nvidia Z9 GPU running in Americas", "OnDemand", "h", 1) + "," +
      sku("Network Internet Egress from Americas", "OnDemand", "GiBy", 1) + "]}");
  // 4 vCPUs at 0.030 and 15 GiB at 0.004: 0.18 USD.
  const Offering& n1 = only(made, "n1-standard-4");
  CHECK(n1.covers == Offering::Covers::machine);
  CHECK(n1.on_demand->value.v * kHour == Approx(0.18));
  CHECK(n1.spot->value.v * kHour == Approx(0.039));
  CHECK(only(made, "T4").on_demand->value.v * kHour == Approx(0.35));
  CHECK(only(made, "T4").spot->value.v * kHour == Approx(0.14));
  CHECK(only(made, "n1-custom").on_demand->value.v * kHour == Approx(0.033));
  CHECK(made.unknown == std::map<std::string, std::int64_t>{{"Nvidia Z9", 1}});
  CHECK(made.passed_over == 1);
}

TEST_CASE("descriptions of Google's SKUs name families, accelerators and what is spot") {
  using Covers = Offering::Covers;
  const auto core = price_lists::google_sku("A2 Instance Core running in Iowa");
  REQUIRE(core);
  CHECK(core->name == "a2");
  CHECK(core->covers == Covers::vcpu);
  CHECK(price_lists::google_sku("Compute optimized Ram running in Americas")->name == "c2");
  CHECK(price_lists::google_sku("N2 Custom Instance Core running in Americas")->custom);
  CHECK(price_lists::google_sku("Nvidia L4 GPU attached to Spot Preemptible VMs running in Iowa")
            ->spot);
  CHECK_FALSE(price_lists::google_sku("Commitment v1: N1 Cpu in Americas for 1 Year"));
  CHECK_FALSE(price_lists::google_sku(""));
  const Catalog& catalog = shipped_catalog();
  const auto named = [&](std::string_view name) {
    const Accelerator* found = price_lists::google_accelerator(name, catalog);
    return found == nullptr ? "" : found->name;
  };
  CHECK(named("Nvidia Tesla A100 80GB") == "A100-SXM4-80");
  CHECK(named("Nvidia Tesla A100") == "A100-SXM4-40");
  CHECK(named("Nvidia H100 80GB") == "H100-SXM5-80");
}

TEST_CASE(
    "SkyPilot's table is of the cloud whose regions it names, zones that differ are a range") {
  const std::string header =
      "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Region,"
      "AvailabilityZone,Price,SpotPrice\n";
  const PriceExport aws = read(header +
                               "p5.48xlarge,H100,8,192,2048,\"{'Gpus': [1, 2]}\",us-east-1,"
                               "us-east-1a,50.0,20\n"
                               "p5.48xlarge,H100,8,192,2048,,us-east-1,us-east-1b,50.0,30\n"
                               "m9.huge,,,2,4,,us-east-1,us-east-1a,0.1,\n");
  CHECK(aws.provider.name == "aws");
  const Offering& p5 = only(aws, "p5.48xlarge");
  CHECK(p5.covers == Offering::Covers::machine_with_accelerators);
  CHECK_FALSE(p5.on_demand->assumed);
  CHECK(p5.spot->value.v * kHour == Approx(25));
  CHECK(p5.spot->low.v * kHour == Approx(20));
  CHECK(aws.unknown.at("m9.huge") == 1);
  const PriceExport gcp = read(header +
                               ",T4,4,,,,us-central1,us-central1-a,1.4,0.6\n"
                               "n1-standard-4,,,4,15,,us-central1,us-central1-a,0.19,0.04\n"
                               ",tpu-v2-8,1,,,,us-central1,us-central1-b,4.5,\n");
  CHECK(gcp.provider.name == "gcp");
  CHECK(only(gcp, "T4").on_demand->value.v * kHour == Approx(0.35));  // of one
  CHECK(only(gcp, "n1-standard-4").covers == Offering::Covers::machine);
  CHECK(only(gcp, "v2-8").covers == Offering::Covers::slice);
}

TEST_CASE("mistakes of a price list are named at their place, all at once") {
  const std::string text = refused_export(
      "{\"SpotPriceHistory\": [\n"
      " {\"AvailabilityZone\": \"us-east-1a\", \"InstanceType\": \"p5.48xlarge\",\n"
      "  \"SpotPrice\": \"cheap\", \"Timestamp\": \"2026-11-19T00:00:00Z\"},\n"
      " {\"AvailabilityZone\": \"mars\", \"InstanceType\": \"p5.48xlarge\", \"SpotPrice\": "
      "\"1\"}]}");
  CHECK_THAT(text, Contains("list:3:16: error: 'SpotPrice' is 'cheap', not a price"));
  CHECK_THAT(text, Contains("list:4:2: error: the zone 'mars' of p5.48xlarge is in no region"));
  CHECK_THAT(text, Contains("has no time"));
  CHECK_THAT(
      refused_export(R"({"skus": [{"description": "Nvidia L4 GPU running in Iowa", "category":
      {"usageType": "OnDemand"}, "serviceRegions": ["us-central1"], "pricingInfo":
      [{"pricingExpression": {"usageUnit": "h", "tieredRates": [{"unitPrice":
        {"units": "1e300"}}]}}]}]})"),
      Contains("'1e300' and '' are no price"));
  CHECK_THAT(refused_export("{\"a\": 1}"), Contains("no price list that reckon reads"));
  CHECK_THAT(refused_export("name,price\nx,1\n"), Contains("no price list that reckon reads"));
  CHECK_THAT(refused_export("{\"Items\": [], \"skus\": [{}]}"), Contains("no price of a machine"));
  CHECK_THAT(refused_export("{\"Items\": ["), Contains("no JSON"));
  CHECK_THAT(refused_export(R"({"offerCode": "AmazonS3", "products": {}})"), Contains("AmazonEC2"));
  CHECK_THAT(refused_export("InstanceType,AcceleratorName,AcceleratorCount,Region,Price\n"
                            "p5.48xlarge,H100,8,us-east-1,much\n"),
             Contains("list:2:30: error: 'much' is no Price"));
  CHECK_THAT(refused_export("InstanceType,AcceleratorName,AcceleratorCount,Region,Price\n"
                            "p5.48xlarge,H100,8,mars,1\n"),
             Contains("--provider NAME"));
}

TEST_CASE("a column that stands twice in a table counts once, and short rows are mistakes") {
  const std::string header =
      "InstanceType,AcceleratorName,AcceleratorCount,AcceleratorCount,Region,Price\n";
  const PriceExport made = read(header + "p5.48xlarge,H100,8,x,us-east-1,50\n");
  CHECK(only(made, "p5.48xlarge").on_demand->value.v * kHour == Approx(50));
  CHECK_THAT(refused_export(header + "p5.48xlarge,H100,8,us-east-1,50\n"),
             Contains("list:2:1: error: 5 fields in a table of 6 columns"));
}

TEST_CASE("changes are told against the catalog: changed, new, gone, the same") {
  PriceExport list = read(kOffers);
  PriceChanges changes = price_changes(std::array{list}, shipped_catalog());
  REQUIRE(changes.changed.size() == 1);  // 55.04 USD in the catalog
  CHECK(*changes.changed.front().relative() == Approx(49.536 / 55.04 - 1));
  CHECK(changes.added.empty());
  CHECK(std::ranges::any_of(changes.gone, [](const PriceChange& c) {
    return c.item == "g4dn.xlarge" && c.region == "us-east-1";
  }));
  CHECK(std::ranges::none_of(changes.gone, [](const PriceChange& c) {
    return c.region != "us-east-1" || c.capacity == CapacityType::spot;
  }));
  list.complete = false;
  CHECK(price_changes(std::array{list}, shipped_catalog()).gone.empty());
  list.prices.front().region = "us-mars-1";
  changes = price_changes(std::array{list}, shipped_catalog());
  CHECK(changes.added.size() == 1);
  CHECK(changes.changed.empty());
}

TEST_CASE("an overlay of prices is read as a catalog layer, and its prices count") {
  const PriceExport list = read(kOffers);
  const PriceExport spot = read(
      R"({"SpotPriceHistory": [{"AvailabilityZone": "us-east-1a", "InstanceType": "p5.48xlarge",
        "SpotPrice": "12.5", "Timestamp": "2026-11-19T00:00:00Z"},
       {"AvailabilityZone": "us-east-1b", "InstanceType": "p5.48xlarge", "SpotPrice": "22.5",
        "Timestamp": "2026-11-19T00:00:00Z"}]})");
  const std::array sourced{SourcedPrices{list.source, list.prices},
                           SourcedPrices{spot.source, spot.prices}};
  const Catalog over = overlay_catalog(price_overlay(sourced));
  const Offering* p5 =
      over.find_offering(Provider{"aws"}, "us-east-1", "", "p5.48xlarge",
                         Offering::Covers::machine_with_accelerators, CapacityType::on_demand);
  REQUIRE(p5 != nullptr);
  CHECK(p5->on_demand->value.v * kHour == Approx(49.536));
  CHECK(p5->spot->value.v * kHour == Approx(17.5));
  CHECK(p5->spot->low.v * kHour == Approx(12.5));
  CHECK_THAT(p5->notes, Contains("spot: aws-spot-history-2026-11-19"));
  const Source& source = over.sources[static_cast<std::size_t>(p5->on_demand->source)];
  CHECK(source.id == "aws-price-list-2026-11-19");
  CHECK_THAT(source.reference, Contains("20261119210515"));
}
