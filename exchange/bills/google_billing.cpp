#include <fmt/format.h>

#include "exchange/bills/bill_rows.h"
#include "exchange/prices/google_sku.h"

// Google's billing export: cloud.google.com/billing/docs/how-to/export-data-bigquery-tables.
namespace reckon::bills {
namespace {

/// Amounts as Google bills them: pricing units, hours of a vCPU, of a GiB, GiB-months.
void quantity_of(const BillRow& row, BillLine& line) {
  const std::string_view unit = row.first({"usagepricingunit"});
  const double amount = row.number("usageamountinpricingunits");
  constexpr double kGibibyteInGb = 1.073741824;
  if (unit == "hour" || unit == "gibibyte hour") {
    line.unit = "h";
    line.quantity = amount;
  } else if (unit == "gibibyte month") {
    line.unit = "GB-month";
    line.quantity = amount * kGibibyteInGb;
  } else if (row.first({"usageunit"}) == "seconds") {
    constexpr double kHour = 3600;
    line.unit = "h";
    line.quantity = row.number("usageamount") / kHour;
  }
}

/// Disks and buckets, by the words of their SKUs; Google bills GiB, which the catalog has as GB.
std::string_view storage_in(std::string_view sku) {
  if (mentions(sku, {"Local SSD", "Local Storage"})) return "local-ssd";
  if (mentions(sku, {"Balanced PD"})) return "pd-balanced";
  if (mentions(sku, {"SSD backed PD"})) return "pd-ssd";
  if (mentions(sku, {"PD Capacity"})) return "pd-standard";
  if (mentions(sku, {"Standard Storage"})) return "gcs-standard";
  return sku;
}

void name_compute(const price_lists::GoogleSku& sku, BillLine& line, const Catalog& catalog) {
  line.part = BillPart::compute;
  line.covers = sku.covers;
  line.capacity = sku.spot ? CapacityType::spot : CapacityType::on_demand;
  if (sku.covers == Offering::Covers::accelerator) {
    const Accelerator* accelerator = price_lists::google_accelerator(sku.name, catalog);
    line.item = accelerator == nullptr ? sku.name : accelerator->name;
    if (accelerator == nullptr) line.covers.reset();
    return;
  }
  line.family = sku.name;
  line.item = fmt::format("{}{} {}", sku.name, sku.custom ? " custom" : "",
                          sku.covers == Offering::Covers::vcpu ? "vCPU" : "memory");
}

void classify_sku(const BillRow& row, BillLine& line, const Catalog& catalog) {
  const std::string_view service = row.text("servicedescription");
  const std::string_view sku = row.text("skudescription");
  if (mentions(row.text("costtype"), {"tax"})) {
    line.part = BillPart::tax;
    line.name = "tax";
  } else if (mentions(service, {"Support"})) {
    line.part = BillPart::support;
  } else if (mentions(service, {"Kubernetes Engine"})) {
    line.part = BillPart::management;
    quantity_of(row, line);
  } else if (const auto compute = price_lists::google_sku(sku)) {
    name_compute(*compute, line, catalog);
    quantity_of(row, line);
    // What GKE's cost allocation leaves to no pod.
    if (row.has_tag({"k8s-namespace", "kube:unallocated"})) line.part = BillPart::idle;
  } else if (mentions(sku, {"Load Balanc", "Forwarding Rule"})) {
    line.part = BillPart::load_balancers;
  } else if (mentions(sku, {"Egress", "Data Transfer", "NAT Gateway"})) {
    line.part = BillPart::egress;
  } else if (mentions(sku, {"PD Capacity", "Local SSD", "Local Storage", "PD Snapshot"}) ||
             mentions(service, {"Cloud Storage", "Filestore"})) {
    line.part = BillPart::storage;
    name_storage(line, storage_in(sku), catalog);
    quantity_of(row, line);
  }
}

}  // namespace

void read_google_row(const BillRow& row, BillBook& book) {
  row.require_usd("currency");
  BillLine line;
  line.usd = row.number("cost");
  line.name = row.text("skudescription");
  line.region = row.text("locationregion");
  classify_sku(row, line, book.catalog());
  book.covers_day(row.text("usagestarttime"));
  book.add(row, std::move(line));
  // A row's credits come with it: in JSON as a list, in a flattened table as one.
  for (int k = -1; k == -1 || row.has(fmt::format("credits{}amount", k)); ++k) {
    const std::string list = k < 0 ? "credits" : fmt::format("credits{}", k);
    BillLine credit;
    credit.part = BillPart::credits;
    credit.usd = row.number(list + "amount");
    const std::string type = list + "type", name = list + "name";
    credit.name = row.first({type, name});
    if (credit.name.empty()) credit.name = "credit";
    if (credit.usd != 0) book.add(row, std::move(credit));
  }
}

}  // namespace reckon::bills
