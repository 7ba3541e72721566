#include "exchange/bills/bill.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "support/shipped_catalog.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

Bill read(const std::string& text, const BillTag& tag = {}) {
  auto made = read_bill(text, "bill", tag, shipped_catalog());
  if (!made) FAIL(format(made.error()));
  return std::move(*made);
}
std::string refused(const std::string& text) {
  const auto made = read_bill(text, "bill", {}, shipped_catalog());
  REQUIRE_FALSE(made);
  return format(made.error());
}

const BillLine& line(const Bill& bill, BillPart part, const std::string& item = "") {
  const BillLine* found = nullptr;
  for (const BillLine& l : bill.lines)
    if (l.part == part && (item.empty() || l.item == item)) {
      REQUIRE(found == nullptr);
      found = &l;
    }
  REQUIRE(found != nullptr);
  return *found;
}

/// The columns of the legacy report; `modern` gives them the names of CUR 2.0.
std::string cur(const std::string& rows, bool modern = false) {
  const std::string legacy =
      "lineItem/LineItemType,lineItem/UsageStartDate,lineItem/ProductCode,lineItem/UsageType,"
      "lineItem/UsageAmount,lineItem/CurrencyCode,lineItem/UnblendedCost,product/instanceType,"
      "product/regionCode,product/volumeApiName,reservation/EffectiveCost,"
      "reservation/UnusedRecurringFee,savingsPlan/SavingsPlanEffectiveCost,resourceTags/user:job\n";
  const std::string two =
      "line_item_line_item_type,line_item_usage_start_date,line_item_product_code,"
      "line_item_usage_type,line_item_usage_amount,line_item_currency_code,"
      "line_item_unblended_cost,product_instance_type,product_region_code,product_volume_api_name,"
      "reservation_effective_cost,reservation_unused_recurring_fee,"
      "savings_plan_savings_plan_effective_cost,resource_tags\n";
  return (modern ? two : legacy) + rows;
}

}  // namespace

TEST_CASE("AWS's report, legacy and 2.0, is machines by capacity, disks, fees, tax and credits") {
  const std::string rows =
      "Usage,2026-11-19T08:00:00Z,AmazonEC2,SpotUsage:p5.48xlarge,3,USD,60,p5.48xlarge,us-east-1,,"
      ",,,\n"
      "Usage,2026-11-20T08:00:00Z,AmazonEC2,SpotUsage:p5.48xlarge,1,USD,20,p5.48xlarge,us-east-1,,"
      ",,,\n"
      "Usage,2026-11-20T08:00:00Z,AmazonEC2,EUW1-BoxUsage:p5.48xlarge,1,USD,60,,eu-west-1,,,,,\n"
      "Usage,2026-11-20T08:00:00Z,AmazonEC2,EBS:VolumeUsage.gp3,10,USD,0.8,,us-east-1,gp3,,,,\n"
      "Usage,2026-11-20T08:00:00Z,AmazonEKS,USE1-AmazonEKS-Hours:perCluster,5,USD,0.5,,us-east-1,,"
      ",,,\n"
      "Usage,2026-11-20T08:00:00Z,AmazonEC2,DataTransfer-Out-Bytes,9,USD,0.9,,us-east-1,,,,,\n"
      "Usage,2026-11-20T08:00:00Z,AWSELB,LoadBalancerUsage,9,USD,0.2,,us-east-1,,,,,\n"
      "Usage,2026-11-20T08:00:00Z,AmazonEC2,UnusedBox:p5.48xlarge,1,USD,50,,us-east-1,,,,,\n"
      "Fee,2026-11-20T08:00:00Z,AWSSupportBusiness,,1,USD,100,,,,,,,\n"
      "Tax,2026-11-01T00:00:00Z,AmazonEC2,,0,USD,7,,,,,,,\n"
      "Credit,2026-11-20T08:00:00Z,AmazonEC2,SpotUsage:p5.48xlarge,0,USD,-5,,,,,,,\n";
  for (const bool modern : {false, true}) {
    const Bill bill = read(cur(rows, modern));
    CHECK(bill.format == "AWS Cost and Usage Report");
    CHECK(bill.provider->name == "aws");
    CHECK(bill.begin == "2026-11-19");  // a tax is of the month
    CHECK(bill.end == "2026-11-20");
    CHECK(bill.rows == 11);
    CHECK(bill.usd() == Approx(294.4));
    const auto spot = std::ranges::find_if(bill.lines, [](const BillLine& l) {
      return l.part == BillPart::compute && l.capacity == CapacityType::spot;
    });
    REQUIRE(spot != bill.lines.end());
    CHECK(spot->item == "p5.48xlarge");
    CHECK(spot->quantity == Approx(4));
    CHECK(spot->usd == Approx(80));
    CHECK(spot->rows == 2);
    CHECK(spot->covers == Offering::Covers::machine_with_accelerators);
    CHECK(line(bill, BillPart::storage, "ebs-gp3").quantity == Approx(10));
    CHECK(line(bill, BillPart::management).quantity == Approx(5));
    CHECK(line(bill, BillPart::egress).usd == Approx(0.9));
    CHECK(line(bill, BillPart::load_balancers).usd == Approx(0.2));
    CHECK(line(bill, BillPart::idle).usd == Approx(50));
    CHECK(line(bill, BillPart::support).usd == Approx(100));
    CHECK(line(bill, BillPart::tax).usd == Approx(7));
    CHECK(line(bill, BillPart::credits).usd == Approx(-5));
  }
}

TEST_CASE("commitments of AWS are amortised: their unused part is idle") {
  const Bill bill = read(cur(
      "DiscountedUsage,2026-11-20T08:00:00Z,AmazonEC2,BoxUsage:p5.48xlarge,2,USD,0,p5.48xlarge,"
      "us-east-1,,70,,,\n"
      "RIFee,2026-11-20T08:00:00Z,AmazonEC2,HeavyUsage:p5.48xlarge,9,USD,315,,us-east-1,,,30,,\n"
      "SavingsPlanCoveredUsage,2026-11-20T08:00:00Z,AmazonEC2,BoxUsage:g5.xlarge,2,USD,2.0,"
      "g5.xlarge,us-east-1,,,,1.3,\n"
      "SavingsPlanNegation,2026-11-20T08:00:00Z,AmazonEC2,BoxUsage:g5.xlarge,2,USD,-2.0,"
      "g5.xlarge,us-east-1,,,,,\n"));
  CHECK(bill.usd() == Approx(70 + 30 + 1.3));
  CHECK(line(bill, BillPart::compute, "p5.48xlarge").capacity == CapacityType::reserved);
  CHECK(line(bill, BillPart::compute, "g5.xlarge").usd == Approx(1.3));
  CHECK(line(bill, BillPart::idle).usd == Approx(30));
}

TEST_CASE("a tag leaves other rows out, whatever form the tags have") {
  const std::string legacy =
      cur("Usage,2026-11-20T08:00:00Z,AmazonEC2,BoxUsage:p5.48xlarge,1,USD,60,,us-east-1,,,,,ours\n"
          "Usage,2026-11-20T08:00:00Z,AmazonEC2,BoxUsage:p5.48xlarge,1,USD,50,,us-east-1,,,,,\n");
  const Bill bill = read(legacy, {"job", "ours"});
  CHECK(bill.usd() == Approx(60));
  CHECK(bill.left_out_rows == 1);
  CHECK(bill.left_out_usd == Approx(50));
  const std::string modern =
      cur("Usage,2026-11-20T08:00:00Z,AmazonEC2,BoxUsage:p5.48xlarge,1,USD,60,,us-east-1,,,,,"
          "\"{\"\"user_job\"\":\"\"ours\"\"}\"\n"
          "Usage,2026-11-20T08:00:00Z,AmazonEC2,BoxUsage:p5.48xlarge,1,USD,9,,us-east-1,,,,,{}\n",
          true);
  CHECK(read(modern, {"job", "ours"}).usd() == Approx(60));
}

TEST_CASE(
    "Google's export is vCPUs, memory, accelerators and their credits, as JSON lines or CSV") {
  // Rows of the export: what is sold, what it cost, and the rest of the row.
  const auto row = [](const std::string& service, const std::string& sku, const char* cost,
                      const std::string& rest = "") {
    return R"({"service": {"description": ")" + service + R"("}, "sku": {"description": ")" + sku +
           R"("}, "currency": "USD", "location": {"region": "us-central1"}, "cost": )" + cost +
           rest + "}\n";
  };
  const auto usage = [](const char* amount, const std::string& unit) {
    return std::string(R"(, "usage": {"amount_in_pricing_units": )") + amount +
           R"(, "pricing_unit": ")" + unit + R"("})";
  };
  const std::string time = R"(, "usage_start_time": "2026-11-19 08:00:00 UTC")";
  const std::string ours = R"(, "labels": [{"key": "job", "value": "ours"}])";
  const std::string credited = R"(, "credits": [
      {"name": "Sustained use", "amount": -0.2, "type": "SUSTAINED_USAGE_DISCOUNT"},
      {"name": "trial", "amount": -0.1, "type": "PROMOTION"}])";
  const std::string lines =
      row("Compute Engine", "N1 Predefined Instance Core running in Americas", "1.2",
          time + usage("40.0", "hour") + ours + credited) +
      row("Compute Engine",
          "Nvidia Tesla P100 GPU attached to Spot Preemptible VMs running in Americas", "8.6",
          time + usage("20.0", "hour") + R"(, "labels": [], "credits": [])") +
      row("Compute Engine", "SSD backed PD Capacity", "1.7", usage("10", "gibibyte month")) +
      row("Kubernetes Engine", "Zonal Kubernetes Clusters", "1.0", usage("10", "hour")) +
      row("Compute Engine", "Network Internet Egress from Americas to EMEA", "0.5") +
      row("Invoice", "Tax", "0.3", R"(, "cost_type": "tax")");
  const Bill bill = read(lines);
  CHECK(bill.begin == "2026-11-19");
  const BillLine& cores = line(bill, BillPart::compute, "n1 vCPU");
  CHECK(cores.quantity == Approx(40));
  CHECK(cores.covers == Offering::Covers::vcpu);
  const BillLine& gpu = line(bill, BillPart::compute, "P100-PCIE-16");
  CHECK(gpu.capacity == CapacityType::spot);
  CHECK(gpu.quantity == Approx(20));
  CHECK(line(bill, BillPart::storage, "pd-ssd").quantity == Approx(10.73741824));  // GB
  CHECK(line(bill, BillPart::management).usd == Approx(1));
  CHECK(line(bill, BillPart::egress).usd == Approx(0.5));
  CHECK(line(bill, BillPart::tax).usd == Approx(0.3));
  double credits = 0;
  for (const BillLine& l : bill.lines)
    if (l.part == BillPart::credits) credits += l.usd;
  CHECK(credits == Approx(-0.3));
  CHECK(read(lines, {"job", "ours"}).usd() == Approx(0.9));
  const Bill flat = read(
      "service_description,sku_description,cost,currency,location_region,"
      "usage_amount_in_pricing_units,usage_pricing_unit\n"
      "Compute Engine,N1 Predefined Instance Ram running in Americas,2.5,USD,us-central1,600,"
      "gibibyte hour\n");
  CHECK(line(flat, BillPart::compute, "n1 memory").quantity == Approx(600));
}

TEST_CASE("Azure's actual cost names machines in AdditionalInfo, spot in the pricing model") {
  const Bill bill = read(
      "Date,MeterCategory,MeterSubCategory,MeterName,Quantity,UnitOfMeasure,CostInBillingCurrency,"
      "BillingCurrency,ResourceLocation,ChargeType,PricingModel,AdditionalInfo,Tags\n"
      "11/19/2026,Virtual Machines,NCSv3 Series,NC6s v3 Spot,4,1 Hour,1.6,USD,eastus,Usage,Spot,"
      "\"{\"\"ServiceType\"\":\"\"Standard_NC6s_v3\"\"}\",\"\"\"job\"\": \"\"ours\"\"\"\n"
      "11/20/2026,Virtual Machines,NCSv3 Series,NC6s v3,1,10 Hours,30.6,USD,eastus,Usage,OnDemand,"
      "\"{\"\"ServiceType\"\":\"\"Standard_NC6s_v3\"\"}\",\n"
      "11/20/2026,Storage,Premium SSD Managed Disks,P30 LRS Disk,0.1,1/Month,13.5,USD,eastus,Usage,"
      ",,\n"
      "11/20/2026,Bandwidth,,Standard Data Transfer Out,8,1 GB,0.7,USD,eastus,Usage,,,\n"
      "11/20/2026,Load Balancer,,Standard Included Rules,5,1 Hour,0.1,USD,eastus,Usage,,,\n"
      "11/20/2026,Azure Kubernetes Service,,Uptime SLA,5,1 Hour,0.5,USD,eastus,Usage,,,\n"
      "11/20/2026,Virtual Machines,,Reservation,1,1 Hour,3,USD,eastus,UnusedReservation,,,\n");
  CHECK(bill.begin == "2026-11-19");
  CHECK(bill.usd() == Approx(50));
  double hours = 0;
  for (const BillLine& l : bill.lines)
    if (l.part == BillPart::compute) {
      CHECK(l.item == "Standard_NC6s_v3");
      hours += l.quantity;
    }
  CHECK(hours == Approx(14));
  CHECK(line(bill, BillPart::storage, "azure-premium-ssd").unit.empty());  // sold by the disk
  CHECK(line(bill, BillPart::management).quantity == Approx(5));
  CHECK(line(bill, BillPart::idle).usd == Approx(3));
  CHECK(line(bill, BillPart::egress).usd == Approx(0.7));
}

TEST_CASE("FOCUS names the machine in the description, and OpenCost names none") {
  const Bill focus = read(
      "BilledCost,EffectiveCost,BillingCurrency,ChargeCategory,ChargeDescription,ServiceCategory,"
      "ServiceName,PricingCategory,ConsumedQuantity,ConsumedUnit,RegionId,ChargePeriodStart,"
      "CommitmentDiscountStatus,Tags\n"
      "0,20,USD,Usage,$20 per p5.48xlarge Linux/UNIX Spot Instance Hour,Compute,Amazon EC2,Dynamic,"
      "1,Hours,us-east-1,2026-11-19T00:00:00Z,,\"{\"\"job\"\": \"\"ours\"\"}\"\n"
      "5,5,USD,Tax,VAT,,,,,,,2026-11-19T00:00:00Z,,\n"
      "-2,-2,USD,Credit,promotion,,,,,,,2026-11-19T00:00:00Z,,\n"
      "0,7,USD,Usage,Reserved p5.48xlarge,Compute,Amazon EC2,Committed,1,Hours,us-east-1,"
      "2026-11-19T00:00:00Z,Unused,\n"
      "1,1,USD,Usage,Data out,Networking,Amazon VPC,Standard,9,GB,us-east-1,2026-11-20T00:00:00Z,,"
      "\n");
  CHECK(focus.format == "FOCUS");
  CHECK_FALSE(focus.provider);
  const BillLine& spot = line(focus, BillPart::compute, "p5.48xlarge");
  CHECK(spot.capacity == CapacityType::spot);
  CHECK(spot.usd == Approx(20));
  CHECK(spot.unit == "h");
  CHECK(line(focus, BillPart::idle).usd == Approx(7));
  CHECK(line(focus, BillPart::egress).usd == Approx(1));
  CHECK(focus.usd() == Approx(31));
  const Bill opencost = read(
      "Date,Namespace,ControllerKind,ControllerName,Pod,Container,CPUCoreUsageAverage,"
      "CPUCoreRequestAverage,RAMBytesUsageAverage,RAMBytesRequestAverage,NetworkReceiveBytes,"
      "NetworkTransferBytes,GPUs,PVBytes,CPUCost,RAMCost,NetworkCost,PVCost,GPUCost,TotalCost\n"
      "2026-11-19,train,Job,resnet,resnet-0,main,3,4,1,2,0,0,1,0,1.5,0.5,0.1,0.2,9,11.3\n"
      "2026-11-19,__idle__,,,,,0,0,0,0,0,0,0,0,2,1,0,0,3,6\n");
  CHECK(opencost.usd() == Approx(17.3));
  CHECK(opencost.rows == 2);
  CHECK(line(opencost, BillPart::compute, "GPU").usd == Approx(9));
  double idle = 0;
  for (const BillLine& l : opencost.lines)
    if (l.part == BillPart::idle) idle += l.usd;
  CHECK(idle == Approx(6));
}

TEST_CASE("mistakes of a bill are named at their place, all at once") {
  const std::string text =
      refused(cur("Usage,2026-11-20T08:00:00Z,AmazonEC2,BoxUsage:p5.48xlarge,many,USD,60,,,,,,,\n"
                  "Usage,2026-11-20T08:00:00Z,AmazonEC2,BoxUsage:p5.48xlarge,1,EUR,x,,,,,,,\n"
                  "Usage,1,2\n"));
  CHECK_THAT(text, Contains("bill:2:59: error: lineItem/UsageAmount is 'many', not a number"));
  CHECK_THAT(text, Contains("bill:3:61: error: the row is in EUR"));
  CHECK_THAT(text, Contains("bill:3:65: error: lineItem/UnblendedCost is 'x'"));
  CHECK_THAT(text, Contains("bill:4:1: error: 3 fields in a table of 14 columns"));
  CHECK_THAT(refused("a,b\n1,2\n"), Contains("of no bill that reckon reads") &&
                                        Contains("metercategory, metername, quantity"));
  CHECK_THAT(refused(""), Contains("the file is empty"));
  CHECK_THAT(refused("{\"a\": 1}\n"), Contains("of no bill that reckon reads"));
  CHECK_THAT(refused("{\"a\": "), Contains("no JSON"));
}
