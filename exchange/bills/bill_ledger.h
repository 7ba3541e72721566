#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "exchange/bills/bill.h"
#include "exchange/prices/price_overlay.h"
#include "sim/forecast/forecast.h"
#include "sim/scenario/plan.h"

// The ledger of a forecast beside a bill: what each says of the same thing, what the forecast has
// no line for, and the catalog that the bill makes.
namespace reckon {

/// One line of both. Money and hours of the ledger are means over the replications.
struct LedgerRow {
  BillPart part = BillPart::other;
  std::string item;                                // compute: "p5.48xlarge, spot"
  std::optional<double> ledger_hours, bill_hours;  // of nodes
  std::optional<double> ledger_usd;                // nullopt: the ledger has no such line
  std::optional<double> bill_usd;                  // nullopt: the bill has none
};

struct BillComparison {
  std::string scenario;
  Bill bill;
  std::optional<Quantiles> forecast_usd;  // nullopt: a price is unknown
  /// Of the ledger's compute: nodes that wait, start or are rounded up. A bill has it in its
  /// machines' lines, but for what it marks as idle itself.
  double ledger_idle_usd = 0;
  std::vector<LedgerRow> rows;      // of compute by machine and capacity, then the other parts
  std::vector<BillLine> forgotten;  // lines that the ledger has none for, dearest first
  double forgotten_usd() const;
};

/// Compute is one row for each machine and capacity of the plan's pools, with everything that its
/// nodes cost. A cloud that bills vCPUs, memory and accelerators each for itself: those of the
/// machine's family and accelerator count to the first row they fit.
BillComparison compare_bill(Bill bill, const Plan& plan, const Forecast& forecast);

/// What the bill says of prices and overheads: files of a catalog directory, and what was learnt.
struct BillCalibration {
  struct Learnt {
    std::string what;     // "p5.48xlarge spot us-east-1"
    std::string unit;     // "USD/h", "USD/GB-month"
    double usd = 0;       // of one unit
    double quantity = 0;  // in the unit's denominator (h, GB-month): that it was learnt from
  };
  std::vector<Learnt> learnt;
  std::vector<std::string> notes;            // sentences: what could not be learnt, and why
  std::map<std::string, std::string> files;  // empty: nothing was learnt
};
/// Prices by hour of the machines, and for a cloud that splits them of vCPUs, memory and
/// accelerators put together for the plan's machines; of storage by GB and month; the hourly fee of
/// a cluster with its load balancers. They are dated on the bill's last day. Credits, tax and
/// support are in none of them.
BillCalibration calibrate_by_bill(const BillComparison& comparison, const Plan& plan,
                                  const std::string& file, const Catalog& catalog);

}  // namespace reckon
