#pragma once
#include <string>
#include <vector>

#include "cli/options/shared.h"
#include "exchange/bills/bill.h"

namespace reckon::cli {

struct BillOptions {
  std::string scenario;  // or the directory of a run
  std::string tag;       // "KEY=VALUE"; "": all rows
  friend bool operator==(const BillOptions&, const BillOptions&) = default;
};

/// The files of one bill, added up; `tag`: KEY=VALUE, of the rows that count. Throws WrongInput,
/// UsageError.
Bill read_bills(const std::vector<std::string>& files, const std::string& tag,
                const Catalog& catalog);

/// `reckon import bill`: the exit code. `out`: the directory of the catalog that the bill makes;
/// "": none.
int import_bill(const std::vector<std::string>& files, const BillOptions& options,
                const CatalogChoice& catalogs, OutputFormat format, const std::string& out);

}  // namespace reckon::cli
