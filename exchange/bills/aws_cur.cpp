#include "exchange/bills/bill_rows.h"

// AWS Cost and Usage Report: docs.aws.amazon.com/cur/latest/userguide, data dictionary.
namespace reckon::bills {
namespace {

/// Amortised, by the kind of row ("Understanding your amortized reservation data" and "savings
/// plans" in the guide): what a commitment covers costs its share of the fees.
double amortised_usd(const BillRow& row, std::string_view type) {
  if (type == "DiscountedUsage") return row.number("reservationeffectivecost");
  if (type == "RIFee")
    return row.number("reservationunusedamortizedupfrontfeeforbillingperiod") +
           row.number("reservationunusedrecurringfee");
  if (type == "SavingsPlanCoveredUsage") return row.number("savingsplansavingsplaneffectivecost");
  if (type == "SavingsPlanRecurringFee")
    return row.number("savingsplantotalcommitmenttodate") - row.number("savingsplanusedcommitment");
  // What a plan's covered usage would have cost is taken back; what was paid at once is spread.
  if (type == "SavingsPlanNegation" || type == "SavingsPlanUpfrontFee") return 0;
  return row.number("lineitemunblendedcost");
}

/// "BoxUsage:p5.48xlarge" of "USE1-BoxUsage:p5.48xlarge".
std::string_view machine_in(std::string_view usage_type) {
  const std::size_t colon = usage_type.find(':');
  return colon == std::string_view::npos ? "m1.small" : usage_type.substr(colon + 1);
}

/// The volumes of EBS by the API's names, as the catalog has them: "ebs-gp3".
void name_volume(const BillRow& row, std::string_view usage_type, BillLine& line,
                 const Catalog& catalog) {
  std::string_view volume = row.text("productvolumeapiname");
  if (volume.empty()) {
    const std::size_t dot = usage_type.rfind('.');
    volume = dot == std::string_view::npos ? "standard" : usage_type.substr(dot + 1);
  }
  name_storage(line, "ebs-" + std::string(volume), catalog);
}

void classify_usage(const BillRow& row, std::string_view usage_type, BillLine& line,
                    const Catalog& catalog) {
  const std::string_view product = row.first({"lineitemproductcode", "productproductname"});
  const std::string_view machine = row.first({"productinstancetype"});
  if (mentions(usage_type, {"UnusedBox:", "UnusedDed:"})) {
    line.part = BillPart::idle;
    line.item = machine_in(usage_type);
  } else if (mentions(usage_type, {"BoxUsage", "SpotUsage", "DedicatedUsage", "HeavyUsage"})) {
    line.part = BillPart::compute;
    if (mentions(usage_type, {"SpotUsage"})) line.capacity = CapacityType::spot;
    const std::string_view name = machine.empty() ? machine_in(usage_type) : machine;
    if (!name_machine(line, "aws", name, catalog)) line.item = name;
    line.unit = "h";
  } else if (mentions(usage_type, {"EBS:VolumeUsage"})) {
    line.part = BillPart::storage;
    name_volume(row, usage_type, line, catalog);
    line.unit = "GB-month";
  } else if (mentions(usage_type, {"EBS:", "TimedStorage"})) {
    line.part = BillPart::storage;
    if (mentions(usage_type, {"TimedStorage-ByteHrs"})) {
      name_storage(line, "s3-standard", catalog);
      line.unit = "GB-month";
    }
  } else if (mentions(usage_type, {"LoadBalancerUsage", "LCUUsage"})) {
    line.part = BillPart::load_balancers;
  } else if (mentions(usage_type, {"DataTransfer", "-Out-Bytes", "-In-Bytes", "NatGateway"})) {
    line.part = BillPart::egress;
  } else if (mentions(product, {"AmazonEKS"})) {
    line.part = BillPart::management;
    line.unit = "h";
  } else if (mentions(product, {"Support"})) {
    line.part = BillPart::support;
  }
}

}  // namespace

void read_aws_row(const BillRow& row, BillBook& book) {
  row.require_usd("lineitemcurrencycode");
  const std::string_view type = row.text("lineitemlineitemtype");
  const std::string_view usage_type = row.text("lineitemusagetype");
  BillLine line;
  line.usd = amortised_usd(row, type);
  line.name = usage_type.empty() ? row.text("lineitemlineitemdescription") : usage_type;
  line.region = row.first({"productregioncode", "productregion"});
  if (type == "Tax") {
    line.part = BillPart::tax;
  } else if (type == "Credit" || type == "Refund" || mentions(type, {"Discount"})) {
    line.part = type == "DiscountedUsage" ? BillPart::compute : BillPart::credits;
  } else if (type == "RIFee" || type == "SavingsPlanRecurringFee") {
    line.part = BillPart::idle;
    line.name = type == "RIFee" ? "unused reservation" : "unused savings plan";
  } else if (type == "Fee" &&
             mentions(row.first({"lineitemproductcode", "productproductname"}), {"Support"})) {
    line.part = BillPart::support;
  }
  if (type == "Usage" || type == "DiscountedUsage" || type == "SavingsPlanCoveredUsage") {
    classify_usage(row, usage_type, line, book.catalog());
    if (type != "Usage" && line.part == BillPart::compute) line.capacity = CapacityType::reserved;
    if (!line.unit.empty()) line.quantity = row.number("lineitemusageamount");
  }
  if (type == "SavingsPlanNegation" || type == "SavingsPlanUpfrontFee") return;
  if (line.part == BillPart::credits || line.part == BillPart::tax) {
    line.name = type == "Tax" ? "tax" : type;
    line.region.clear();
  }
  if (line.part != BillPart::tax) book.covers_day(row.text("lineitemusagestartdate"));  // a month's
  book.add(row, std::move(line));
}

}  // namespace reckon::bills
