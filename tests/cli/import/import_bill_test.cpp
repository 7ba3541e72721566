#include <catch2/catch.hpp>
#include <string>

#include "cli/run_reckon.h"

using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

const std::string kBill = read_all(RECKON_SOURCE_DIR "/docs/examples/bill.csv");
const std::string kSpot = RECKON_SOURCE_DIR "/scenarios/aws-p4d-spot.yaml";

}  // namespace

TEST_CASE("a bill stands beside the forecast, and its prices are those of the next one") {
  const Workspace w;
  w.write("bill.csv", kBill);
  const Output made =
      w.run("import bill bill.csv --scenario " + kSpot + " --tag job=resnet --out billed");
  INFO(made.err);
  CHECK(made.code == 0);
  CHECK_THAT(made.out, Contains("the bill is 7.91 USD") && Contains("p4d.24xlarge, spot") &&
                           Contains("The forecast has no line for") &&
                           Contains("5.05 USD/h  of 1.31 h"));
  CHECK_THAT(made.err, Contains("--catalog billed"));
  CHECK_THAT(w.run("catalog list prices p4d --catalog billed").out, Contains("5.0500"));
  CHECK_THAT(w.run("catalog show billing.eks_management_usd_per_hour --catalog billed").out,
             Contains("0.1225"));
  // A second bill at these prices differs in hours only.
  const Output again = w.run("import bill bill.csv --catalog billed --format json --scenario " +
                             kSpot + " --tag job=resnet");
  CHECK_THAT(again.out, Contains("\"command\": \"import bill\""));
  CHECK(w.run("import bill bill.csv --out billed --scenario " + kSpot).code == 2);
}

TEST_CASE("bills come in several files and packed, what does not fit is refused") {
  const Workspace w;
  const std::size_t end = kBill.find('\n', kBill.find("i5,")) + 1;
  w.write("one.csv", kBill.substr(0, end));
  w.write("two.csv", kBill.substr(0, kBill.find('\n') + 1) + kBill.substr(end));
  CHECK(w.run_shell("gzip two.csv").code == 0);
  const Output both = w.run("import bill one.csv two.csv.gz --tag job=resnet --scenario " + kSpot);
  CHECK_THAT(both.out, Contains("the bill is 7.91 USD"));
  w.write("other.csv", "Date,CPUCost,RAMCost,TotalCost\n2026-11-19,1,1,2\n");
  CHECK_THAT(w.run("import bill one.csv other.csv --scenario " + kSpot).err,
             Contains("the files are two bills"));
  CHECK_THAT(w.run("import bill one.csv").err, Contains("whose bill is it?"));
  CHECK_THAT(w.run("import bill one.csv --scenario " + kSpot + " --tag resnet").err,
             Contains("--tag takes KEY=VALUE"));
  CHECK_THAT(w.run("import bill one.csv --scenario " + kSpot + " --model resnet50").err,
             Contains("says nothing of what is trained"));
  CHECK_THAT(w.run("import gke one.csv --tag a=b").err, Contains("are of import bill"));
  w.write("bad.csv", "Date,CPUCost,RAMCost,TotalCost\n2026-11-19,much,1,2\n");
  const Output bad = w.run("import bill bad.csv --scenario " + kSpot);
  CHECK(bad.code == 2);
  CHECK_THAT(bad.err, Contains("bad.csv:2:12: error: CPUCost is 'much', not a number"));
}
