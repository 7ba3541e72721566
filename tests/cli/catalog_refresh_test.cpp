#include <catch2/catch.hpp>
#include <string>

#include "cli/run_reckon.h"

using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

const std::string kHistory = R"({"SpotPriceHistory": [
  {"AvailabilityZone": "us-east-1a", "InstanceType": "p5.48xlarge", "SpotPrice": "20",
   "ProductDescription": "Linux/UNIX", "Timestamp": "2026-11-19T00:00:00Z"},
  {"AvailabilityZone": "us-east-1b", "InstanceType": "p5.48xlarge", "SpotPrice": "30",
   "ProductDescription": "Linux/UNIX", "Timestamp": "2026-11-20T00:00:00Z"}]})";

}  // namespace

TEST_CASE("a refreshed catalog is a layer, whose prices the next refresh finds the same") {
  const Workspace w;
  w.write("history.json", kHistory);
  const Output first = w.run("catalog refresh --from history.json --out prices");
  INFO(first.err);
  CHECK(first.code == 0);
  CHECK_THAT(first.err, Contains("prices is written: --catalog prices"));
  CHECK_THAT(first.out, Contains("changed: 1"));
  CHECK_THAT(read_all(w.path("prices/prices.csv")), Contains("25 [20 30],2026-11-20"));
  CHECK_THAT(w.run("catalog list prices p5.48xlarge us-east-1 --catalog prices").out,
             Contains("25.0000"));
  const Output again = w.run("catalog refresh --from history.json --catalog prices --format json");
  CHECK(again.code == 0);
  CHECK_THAT(again.out, Contains("\"changed\": 0") && Contains("\"the_same\": 1"));
  const Output overwritten = w.run("catalog refresh --from history.json --out prices");
  CHECK(overwritten.code == 2);
  CHECK_THAT(overwritten.err, Contains("'prices' exists"));
}

TEST_CASE("packed price lists are read, and mistakes of several lists are named together") {
  const Workspace w;
  w.write("history.json", kHistory);
  w.write("bad.json", "{\"skus\": [");
  w.write("other.csv", "a,b\n1,2\n");
  CHECK(w.run_shell("gzip history.json").code == 0);
  CHECK(w.run("catalog refresh --from history.json.gz").code == 0);
  const Output wrong = w.run("catalog refresh --from bad.json --from other.csv --out prices");
  CHECK(wrong.code == 2);
  CHECK_THAT(wrong.err, Contains("bad.json:1:") && Contains("no JSON") &&
                            Contains("other.csv: error: the file is no price list"));
  CHECK(w.run_shell("test -e prices").code == 1);
  CHECK_THAT(w.run("catalog list --out x").err, Contains("are of catalog refresh"));
  CHECK_THAT(w.run("catalog refresh --from other.csv --date today").err, Contains("is no date"));
  CHECK(w.run("catalog refresh").code == 2);
}
