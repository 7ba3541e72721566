#include "exchange/bills/bill_ledger.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "support/overlay_catalog.h"
#include "support/shipped_catalog.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

constexpr double kHour = 3600;

/// Two p5.48xlarge on spot in us-east-1 under EKS.
Plan spot_plan() {
  const Catalog& catalog = shipped_catalog();
  Plan plan;
  plan.name = "train";
  plan.provider = Provider{"aws"};
  plan.service = catalog.rules_of(Service{"eks"});
  plan.region = "us-east-1";
  PlannedPool pool;
  pool.name = "p5";
  pool.machine = *catalog.find_machine(plan.provider, "p5.48xlarge");
  pool.accelerator = *catalog.find_accelerator(pool.machine.accelerator);
  pool.accelerators_per_node = 8;
  pool.pricing = CapacityType::spot;
  pool.price.machine = to_hourly_rate(UsdPerSecond{20 / kHour});
  plan.pools.push_back(pool);
  return plan;
}

/// 10 node-hours at 20 USD, 30 of the 200 USD idle; 1 USD of management.
Forecast forecast_of_ten_hours() {
  Forecast forecast;
  forecast.node_hours = {{"p5", 10}};
  const auto set = [&](CostPart part, double usd) {
    forecast.cost_breakdown_usd[static_cast<std::size_t>(part)] = usd;
  };
  set(CostPart::machines, 170);
  set(CostPart::idle, 30);
  set(CostPart::management, 1);
  forecast.cost_usd = Quantiles{201, 150, 200, 260};
  return forecast;
}

BillLine entry(BillPart part, const char* name, double usd) {
  BillLine made;
  made.part = part;
  made.name = name;
  made.region = "us-east-1";
  made.usd = usd;
  made.rows = 1;
  return made;
}

Bill aws_bill() {
  Bill bill;
  bill.format = "AWS Cost and Usage Report";
  bill.provider = Provider{"aws"};
  bill.begin = "2026-11-18";
  bill.end = "2026-11-20";
  BillLine spot = entry(BillPart::compute, "SpotUsage:p5.48xlarge", 264);
  spot.item = "p5.48xlarge";
  spot.covers = Offering::Covers::machine_with_accelerators;
  spot.capacity = CapacityType::spot;
  spot.unit = "h";
  spot.quantity = 12;
  BillLine fee = entry(BillPart::management, "EKS-Hours", 0.6);
  fee.unit = "h";
  fee.quantity = 6;
  BillLine disk = entry(BillPart::storage, "VolumeUsage.gp3", 0.9);
  disk.item = "ebs-gp3";
  disk.covers = Offering::Covers::storage;
  disk.unit = "GB-month";
  disk.quantity = 10;
  bill.lines = {spot,
                fee,
                disk,
                entry(BillPart::load_balancers, "LoadBalancerUsage", 1.8),
                entry(BillPart::egress, "DataTransfer-Out", 5),
                entry(BillPart::credits, "Credit", -3)};
  return bill;
}

const LedgerRow& row(const BillComparison& c, BillPart part) {
  const auto found = std::ranges::find(c.rows, part, &LedgerRow::part);
  REQUIRE(found != c.rows.end());
  return *found;
}

}  // namespace

TEST_CASE("compute stands side by side by machine and capacity, what no ledger has is forgotten") {
  const BillComparison c = compare_bill(aws_bill(), spot_plan(), forecast_of_ten_hours());
  const LedgerRow& compute = row(c, BillPart::compute);
  CHECK(compute.item == "p5.48xlarge, spot");
  CHECK(*compute.ledger_hours == Approx(10));
  CHECK(*compute.bill_hours == Approx(12));
  CHECK(*compute.ledger_usd == Approx(200));  // with what is idle
  CHECK(*compute.bill_usd == Approx(264));
  CHECK(c.ledger_idle_usd == Approx(30));
  CHECK(*row(c, BillPart::management).ledger_usd == Approx(1));
  CHECK(*row(c, BillPart::management).bill_usd == Approx(0.6));
  CHECK_FALSE(row(c, BillPart::egress).ledger_usd);
  REQUIRE(c.forgotten.size() == 4);  // the dearest first
  CHECK(c.forgotten.front().part == BillPart::egress);
  CHECK(c.forgotten_usd() == Approx(5 - 3 + 1.8 + 0.9));
  double sum = 0;
  for (const LedgerRow& r : c.rows) sum += r.bill_usd.value_or(0);
  CHECK(sum == Approx(c.bill.usd()));
}

TEST_CASE("another machine, or the same one bought otherwise, has a row without a forecast") {
  Bill bill = aws_bill();
  bill.lines.front().capacity = CapacityType::on_demand;
  BillComparison c = compare_bill(bill, spot_plan(), forecast_of_ten_hours());
  CHECK_FALSE(c.rows[0].bill_usd);
  CHECK(c.rows[1].item == "p5.48xlarge, on_demand");
  CHECK_FALSE(c.rows[1].ledger_usd);
  CHECK(c.forgotten.front().name == "SpotUsage:p5.48xlarge");
  // A reservation covers nodes that the plan buys on demand.
  Plan plan = spot_plan();
  plan.pools.front().pricing = CapacityType::on_demand;
  bill.lines.front().capacity = CapacityType::reserved;
  c = compare_bill(bill, plan, forecast_of_ten_hours());
  CHECK(*c.rows[0].bill_usd == Approx(264));
  const BillCalibration learnt = calibrate_by_bill(c, plan, "bill.csv", shipped_catalog());
  CHECK(std::ranges::any_of(learnt.notes, [](const std::string& note) {
    return note.find("264.00 USD of compute are covered by reservations") != std::string::npos;
  }));
}

TEST_CASE("a forecast without a cost has hours only, and a bill without machines has one row") {
  Forecast forecast = forecast_of_ten_hours();
  forecast.cost_usd.reset();
  CHECK_FALSE(row(compare_bill(aws_bill(), spot_plan(), forecast), BillPart::compute).ledger_usd);
  Plan plan = spot_plan();
  plan.pools.push_back(plan.pools.front());
  plan.pools.back().name = "more";
  plan.pools.back().pricing = CapacityType::on_demand;
  forecast = forecast_of_ten_hours();
  forecast.node_hours.emplace_back("more", 5);
  Bill bill;
  bill.format = "OpenCost";
  bill.lines = {entry(BillPart::compute, "CPU", 3), entry(BillPart::compute, "GPU", 90)};
  const BillComparison c = compare_bill(bill, plan, forecast);
  REQUIRE(c.rows.size() == 2);
  CHECK(c.rows[0].item == "all nodes");
  CHECK(*c.rows[0].ledger_hours == Approx(15));
  CHECK(*c.rows[0].ledger_usd == Approx(200));
  CHECK(*c.rows[0].bill_usd == Approx(93));
  CHECK(c.rows[1].part == BillPart::management);
  CHECK(c.forgotten.empty());
}

TEST_CASE("the bill's prices are a catalog layer that the next forecast uses") {
  const Plan plan = spot_plan();
  const BillComparison c = compare_bill(aws_bill(), plan, forecast_of_ten_hours());
  const BillCalibration learnt = calibrate_by_bill(c, plan, "bill.csv", shipped_catalog());
  REQUIRE(learnt.files.size() == 4);
  const Catalog over = overlay_catalog(learnt.files);
  const Offering* spot =
      over.find_offering(plan.provider, "us-east-1", "", "p5.48xlarge",
                         Offering::Covers::machine_with_accelerators, CapacityType::spot);
  REQUIRE(spot != nullptr);
  CHECK(spot->date == "2026-11-20");
  CHECK(spot->spot->value.v * kHour == Approx(22));  // 264 USD for 12 h
  const Source& source = over.sources[static_cast<std::size_t>(spot->spot->source)];
  CHECK_THAT(source.reference, Contains("bill.csv") && Contains("2026-11-18 to 2026-11-20"));
  const Offering* disk = over.find_offering(plan.provider, "us-east-1", "", "ebs-gp3",
                                            Offering::Covers::storage, CapacityType::on_demand);
  REQUIRE(disk != nullptr);
  CHECK(disk->on_demand->value.v * 730 * kHour == Approx(0.09));
  // 0.6 USD and 1.8 USD of load balancers in 6 h of one cluster.
  CHECK(over.operations.at("billing.eks_management_usd_per_hour").value == Approx(0.4));
}

TEST_CASE("vCPUs and memory of a bill make the price of the plan's machine") {
  const Catalog& catalog = shipped_catalog();
  Plan plan = spot_plan();
  plan.provider = Provider{"gcp"};
  plan.service = catalog.rules_of(Service{"gke"});
  plan.region = "us-central1";
  PlannedPool& pool = plan.pools.front();
  pool.machine = *catalog.find_machine(plan.provider, "n1-standard-16");
  pool.accelerator = *catalog.find_accelerator("P100");
  pool.accelerators_per_node = 2;
  Bill bill;
  bill.format = "Google Cloud billing export";
  bill.provider = plan.provider;
  bill.begin = bill.end = "2026-11-20";
  const auto split = [&](Offering::Covers covers, const char* item, double hours, double usd) {
    BillLine made = entry(BillPart::compute, item, usd);
    made.covers = covers;
    made.item = item;
    made.family = covers == Offering::Covers::accelerator ? "" : "n1";
    made.capacity = CapacityType::spot;
    made.region = "us-central1";
    made.unit = "h";
    made.quantity = hours;
    bill.lines.push_back(made);
  };
  split(Offering::Covers::vcpu, "n1 vCPU", 160, 1.6);          // 10 nodes-hours, 0.01 USD/h
  split(Offering::Covers::memory_gib, "n1 memory", 600, 0.6);  // 0.001 USD/h
  split(Offering::Covers::accelerator, "P100-PCIE-16", 20, 9);
  const BillComparison c = compare_bill(bill, plan, forecast_of_ten_hours());
  CHECK(c.rows.front().item == "n1-standard-16 + 2 x P100-PCIE-16, spot");
  CHECK(*c.rows.front().bill_hours == Approx(10));
  CHECK(*c.rows.front().bill_usd == Approx(11.2));
  CHECK(c.forgotten.empty());
  const BillCalibration learnt = calibrate_by_bill(c, plan, "bill.json", catalog);
  const Catalog over = overlay_catalog(learnt.files);
  const auto spot_usd = [&](const char* item, Offering::Covers covers) {
    const Offering* found =
        over.find_offering(plan.provider, "us-central1", "", item, covers, CapacityType::spot);
    REQUIRE(found != nullptr);
    return found->spot->value.v * kHour;
  };
  // 16 x 0.01 + 60 x 0.001
  CHECK(spot_usd("n1-standard-16", Offering::Covers::machine) == Approx(0.22));
  CHECK(spot_usd("P100-PCIE-16", Offering::Covers::accelerator) == Approx(0.45));
}

TEST_CASE("a bill without days teaches nothing, and an old one says that it does not count") {
  const Plan plan = spot_plan();
  Bill bill = aws_bill();
  bill.begin = bill.end = "";
  BillCalibration learnt = calibrate_by_bill(compare_bill(bill, plan, forecast_of_ten_hours()),
                                             plan, "b", shipped_catalog());
  CHECK(learnt.files.empty());
  CHECK_THAT(learnt.notes.front(), Contains("no dates"));
  bill = aws_bill();
  bill.lines.front().quantity = 1e-9;
  learnt = calibrate_by_bill(compare_bill(bill, plan, forecast_of_ten_hours()), plan, "b",
                             shipped_catalog());
  CHECK_THAT(learnt.notes.front(), Contains("p5.48xlarge would cost 2.64e+11 USD"));
  CHECK(learnt.files.count("prices.csv") == 0);
  bill = aws_bill();
  bill.begin = bill.end = "2020-01-01";
  learnt = calibrate_by_bill(compare_bill(bill, plan, forecast_of_ten_hours()), plan, "b",
                             shipped_catalog());
  CHECK(std::ranges::any_of(learnt.notes, [](const std::string& note) {
    return note.find("later than the bill") != std::string::npos;
  }));
}
