#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/words.h"
#include "sim/catalog/catalog.h"

// What a cloud charged, line by line, in the words that the ledger of a forecast shares where it
// can.
namespace reckon {

/// What a line is for. The first four are what a forecast has too.
enum class BillPart {
  compute,
  storage,
  management,  // of clusters
  idle,        // capacity that the bill itself says nobody used
  egress,      // data that left, and gateways
  load_balancers,
  support,
  tax,
  credits,  // credits, refunds and discounts: negative
  other
};
constexpr auto words_of(BillPart) {
  using enum BillPart;
  using Part = Word<BillPart>;
  return std::array{Part{"compute", compute},       Part{"storage", storage},
                    Part{"management", management}, Part{"idle", idle},
                    Part{"egress", egress},         Part{"load_balancers", load_balancers},
                    Part{"support", support},       Part{"tax", tax},
                    Part{"credits", credits},       Part{"other", other}};
}

/// Rows of a bill that are for the same thing, added up.
struct BillLine {
  BillPart part = BillPart::other;
  std::string
      item;  // of the catalog where it has it (machine, accelerator, storage), else the bill's
  std::string family;  // of vCPUs and memory: "n1"
  /// What the item is, where it is of the catalog, or vCPUs or memory of a family.
  std::optional<Offering::Covers> covers;
  CapacityType capacity = CapacityType::on_demand;  // of compute
  std::string region;
  std::string name;     // the bill's own words
  std::string unit;     // of quantity: "h", "GB-month", "GB"; "": none that counts
  double quantity = 0;  // in `unit`
  double usd = 0;
  std::int64_t rows = 0;
};

struct Bill {
  std::string format;                // "AWS CUR"
  std::optional<Provider> provider;  // nullopt: the format is of none
  std::string begin, end;            // ISO days of the first and the last row; "": they have none
  std::vector<BillLine> lines;       // dearest first
  std::int64_t rows = 0;
  /// Rows without the tag that was asked for, and their cost: not in lines.
  std::int64_t left_out_rows = 0;
  double left_out_usd = 0;

  double usd() const;
};

/// Rows count that have this tag or label; an empty key: all rows.
struct BillTag {
  std::string key, value;
};

/// Takes by the names of their columns:
/// - AWS Cost and Usage Report, legacy or 2.0, CSV. Costs are amortised: what reservations and
///   savings plans cover has its share of their fees, the unused rest is idle;
/// - Google's billing export from BigQuery, as JSON lines or CSV (nested columns with dots or
///   underscores);
/// - Azure's cost export (actual cost), CSV;
/// - FOCUS 1.0, CSV: the effective cost;
/// - OpenCost's CSV export.
/// Amounts must be in USD. Memory: the bytes and one line for each thing that was charged, at most
/// kMostBillLines. Mistakes are collected, up to 200.
Expected<Bill> read_bill(std::string_view bytes, const std::string& file, const BillTag& tag,
                         const Catalog& catalog);
inline constexpr std::size_t kMostBillLines = 50'000;

}  // namespace reckon
