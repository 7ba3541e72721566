#include <array>

#include "exchange/bills/bill_rows.h"
#include "exchange/json_parts.h"

// Azure's cost and usage details: learn.microsoft.com/azure/cost-management-billing/dataset-schema.
namespace reckon::bills {
namespace {

/// The size of the machine, which stands in the service's own metadata: {"ServiceType": "..."}.
std::string size_in(std::string_view additional) {
  const std::string object =
      additional.starts_with('{') ? std::string(additional) : "{" + std::string(additional) + "}";
  constexpr std::array<std::string_view, 1> kSize{"ServiceType"};
  std::string machine;
  for_each_json_part(object, "", kSize, [&](const JsonPart& part) {
    machine = part.value.text;
    return true;
  });
  return machine;
}

/// "1 GB/Month", "10 Hours": so many of a unit are one of the quantity.
double units_in(std::string_view measure) {
  double units = 0;
  for (const char c : measure) {
    if (c < '0' || c > '9') break;
    units = units * 10 + (c - '0');
  }
  return units > 0 ? units : 1;
}

void classify_meter(const BillRow& row, BillLine& line, const Catalog& catalog) {
  const std::string_view category = row.text("metercategory");
  const std::string_view measure = row.text("unitofmeasure");
  const double quantity = row.number("quantity") * units_in(measure);
  if (mentions(category, {"Virtual Machines"})) {
    line.part = BillPart::compute;
    const std::string machine = size_in(row.text("additionalinfo"));
    if (machine.empty() || !name_machine(line, "azure", machine, catalog))
      line.item = machine.empty() ? std::string(row.text("metername")) : machine;
    const std::string_view model = row.text("pricingmodel");
    if (model == "Spot" || mentions(row.text("metername"), {"Spot"}))
      line.capacity = CapacityType::spot;
    else if (model == "Reservation" || model == "SavingsPlan")
      line.capacity = CapacityType::reserved;
    line.unit = "h";
    line.quantity = quantity;
  } else if (mentions(category, {"Load Balancer", "Application Gateway"})) {
    line.part = BillPart::load_balancers;
  } else if (mentions(category, {"Bandwidth", "NAT Gateway"})) {
    line.part = BillPart::egress;
  } else if (mentions(category, {"Kubernetes"})) {
    line.part = BillPart::management;
    line.unit = "h";
    line.quantity = quantity;
  } else if (mentions(category, {"Storage"})) {
    line.part = BillPart::storage;
    const std::string_view kind = row.text("metersubcategory");
    name_storage(line,
                 mentions(kind, {"Premium SSD"}) ? "azure-premium-ssd"
                 : mentions(kind, {"Blob"})      ? "azure-blob"
                                                 : kind,
                 catalog);
    if (mentions(measure, {"GB/Month"})) {
      line.unit = "GB-month";
      line.quantity = quantity;
    }
  } else if (mentions(category, {"Support"})) {
    line.part = BillPart::support;
  }
}

}  // namespace

void read_azure_row(const BillRow& row, BillBook& book) {
  BillLine line;
  if (row.has("costinusd")) {
    line.usd = row.number("costinusd");
  } else {
    row.require_usd(row.has("billingcurrencycode") ? "billingcurrencycode" : "billingcurrency");
    line.usd = row.first_number({"costinbillingcurrency", "cost", "pretaxcost"});
  }
  const std::string_view charge = row.text("chargetype");
  line.name = row.first({"metername", "productname", "chargetype"});
  line.region = row.first({"resourcelocation", "location"});
  if (mentions(charge, {"Tax"})) {
    line.part = BillPart::tax;
  } else if (mentions(charge, {"Unused"})) {
    line.part = BillPart::idle;
    line.name = charge;
  } else if (mentions(charge, {"Refund", "Credit", "Adjustment"})) {
    line.part = BillPart::credits;
    line.name = charge;
  } else {
    classify_meter(row, line, book.catalog());
  }
  book.covers_day(row.first({"date", "usagedatetime"}));
  book.add(row, std::move(line));
}

}  // namespace reckon::bills
