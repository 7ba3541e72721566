#include <algorithm>

#include "exchange/bills/bill_rows.h"
#include "sim/catalog/files/text.h"

// FOCUS 1.0 (focus.finops.org) and OpenCost's CSV export (opencost.io), which are of any cloud.
namespace reckon::bills {
namespace {

/// FOCUS has no column for the machine: the charge's description and the provider's own columns
/// name it. "": none that the catalog knows.
const Machine* machine_of(const BillRow& row, const Catalog& catalog) {
  for (const std::string_view column : {"xinstancetype", "xskuinstancetype", "chargedescription",
                                        "xusagetype", "skuid", "resourcetype"}) {
    std::string text(row.text(column));
    for (char& c : text)
      if (c == ':' || c == ',' || c == '/' || c == '"') c = ' ';
    for (const std::string_view word : catalog_text::words(text))
      for (const ProviderRules& provider : catalog.providers)
        if (const Machine* found = catalog.find_machine(provider.id, word)) return found;
  }
  return nullptr;
}

void classify_usage_of_focus(const BillRow& row, BillLine& line, const Catalog& catalog) {
  const std::string_view category = row.text("servicecategory");
  const std::string_view service = row.text("servicename");
  const std::string_view what = row.text("chargedescription");
  const std::string_view unit = row.first({"consumedunit", "pricingunit"});
  const double quantity = row.first_number({"consumedquantity", "pricingquantity"});
  if (row.text("commitmentdiscountstatus") == "Unused") {
    line.part = BillPart::idle;
  } else if (mentions(service, {"Kubernetes", "EKS"})) {
    line.part = BillPart::management;
    if (mentions(unit, {"Hour", "Hrs"})) line.unit = "h";
  } else if (mentions(service, {"Support"}) || mentions(what, {"Support plan"})) {
    line.part = BillPart::support;
  } else if (mentions(service, {"Load Balanc"}) ||
             mentions(what, {"LoadBalancer", "Load Balanc"})) {
    line.part = BillPart::load_balancers;
  } else if (category == "Networking" || mentions(what, {"data transfer", "egress"})) {
    line.part = BillPart::egress;
  } else if (category == "Storage" || mentions(what, {"provisioned storage", "GB-month"})) {
    line.part = BillPart::storage;
    line.item = service;
  } else if (category == "Compute") {
    line.part = BillPart::compute;
    const Machine* machine = machine_of(row, catalog);
    if (machine == nullptr || !name_machine(line, machine->provider.name, machine->name, catalog))
      line.item = row.first({"resourcetype", "servicename"});
    const std::string_view pricing = row.text("pricingcategory");
    line.capacity = pricing == "Dynamic" || mentions(what, {"spot", "preemptible"})
                        ? CapacityType::spot
                    : pricing == "Committed" ? CapacityType::reserved
                                             : CapacityType::on_demand;
    if (mentions(unit, {"Hour", "Hrs"})) line.unit = "h";
  }
  if (!line.unit.empty()) line.quantity = quantity;
}

}  // namespace

void read_focus_row(const BillRow& row, BillBook& book) {
  row.require_usd("billingcurrency");
  const std::string_view category = row.text("chargecategory");
  BillLine line;
  line.usd = row.first_number({"effectivecost", "billedcost"});
  line.name = row.first({"chargedescription", "servicename"});
  line.region = row.first({"regionid", "region"});
  if (category == "Tax") {
    line.part = BillPart::tax;
  } else if (category == "Credit" || category == "Adjustment") {
    line.part = BillPart::credits;
  } else if (category == "Usage") {
    classify_usage_of_focus(row, line, book.catalog());
  } else if (mentions(row.text("servicename"), {"Support"})) {
    line.part = BillPart::support;
  }
  book.covers_day(row.text("chargeperiodstart"));
  book.add(row, std::move(line));
}

void read_opencost_row(const BillRow& row, BillBook& book) {
  book.covers_day(row.text("date"));
  const bool idle = row.text("namespace") == "__idle__" || row.text("pod") == "__idle__" ||
                    row.text("controllername") == "__idle__";
  const auto add = [&](std::string_view column, BillPart part, std::string_view what) {
    BillLine line;
    line.part = idle && part == BillPart::compute ? BillPart::idle : part;
    line.usd = row.number(column);
    line.item = line.name = what;
    if (line.usd != 0) book.add(row, std::move(line));
  };
  add("cpucost", BillPart::compute, "CPU");
  add("ramcost", BillPart::compute, "memory");
  add("gpucost", BillPart::compute, "GPU");
  add("pvcost", BillPart::storage, "persistent volumes");
  add("networkcost", BillPart::egress, "network");
  add("loadbalancercost", BillPart::load_balancers, "load balancers");
  add("sharedcost", BillPart::other, "shared");
}

}  // namespace reckon::bills
