#include "cli/import/bill.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/catalog/overlay.h"
#include "cli/exit_code.h"
#include "cli/load/load.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "exchange/bills/bill_ledger.h"
#include "exchange/unpacked_file.h"
#include "report/run/bill.h"

namespace reckon::cli {
namespace {

BillTag tag_of(const std::string& text) {
  if (text.empty()) return {};
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw UsageError(fmt::format("--tag takes KEY=VALUE, such as team=vision, not '{}'", text));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// Parts of one bill: a report comes in several files.
Bill joined_names(std::vector<Bill> bills) {
  Bill all = std::move(bills.front());
  for (std::size_t k = 1; k < bills.size(); ++k) {
    Bill& next = bills[k];
    if (next.format != all.format)
      throw UsageError(fmt::format("the files are two bills: {} and {}", all.format, next.format));
    all.lines.insert(all.lines.end(), std::make_move_iterator(next.lines.begin()),
                     std::make_move_iterator(next.lines.end()));
    all.rows += next.rows;
    all.left_out_rows += next.left_out_rows;
    all.left_out_usd += next.left_out_usd;
    if (!next.begin.empty()) {
      all.begin = all.begin.empty() ? next.begin : std::min(all.begin, next.begin);
      all.end = std::max(all.end, next.end);
    }
  }
  return all;
}

}  // namespace

Bill read_bills(const std::vector<std::string>& files, const std::string& tag_text,
                const Catalog& catalog) {
  const BillTag tag = tag_of(tag_text);
  std::vector<Bill> bills;
  Diagnostics mistakes;
  for (const std::string& name : files) {
    const UnpackedFile file(name);
    auto bill = read_bill(file.bytes(), name, tag, catalog);
    if (bill)
      bills.push_back(std::move(*bill));
    else
      mistakes.insert(mistakes.end(), bill.error().begin(), bill.error().end());
  }
  if (!mistakes.empty()) throw WrongInput(std::move(mistakes));
  return joined_names(std::move(bills));
}

int import_bill(const std::vector<std::string>& files, const BillOptions& options,
                const CatalogChoice& catalogs, OutputFormat format, const std::string& out) {
  if (files.empty()) throw UsageError("import bill takes the files of a bill");
  if (options.scenario.empty())
    throw UsageErrorWithHint("whose bill is it?",
                             fmt::format("reckon import bill {} --scenario FILE", files.front()));
  if (!out.empty()) require_new_directory(out);
  const auto catalog = checked(load_catalogs(catalogs));
  Bill bill = read_bills(files, options.tag, catalog);
  const LoadedPlan loaded = checked(load_plan(options.scenario, {}, catalog));
  const auto network = make_network({});
  ForecastOptions how = forecast_options({});
  how.assumption_effects = false;
  const Forecast forecast = checked(
      in_bounds(options.scenario, [&] { return make_forecast(loaded.plan, *network, how); }));
  const BillComparison comparison = compare_bill(std::move(bill), loaded.plan, forecast);
  const BillCalibration calibration =
      calibrate_by_bill(comparison, loaded.plan, fmt::format("{}", fmt::join(files, " ")), catalog);
  print(format == OutputFormat::json ? bill_json(comparison, calibration)
                                     : bill_table(comparison, calibration));
  if (out.empty()) return kDone;
  if (calibration.files.empty()) {
    print_error(fmt::format(
        "the bill has no price that the catalog could hold: '{}' is not written\n", out));
    return kDone;
  }
  write_overlay(out, calibration.files, catalogs);
  return kDone;
}

}  // namespace reckon::cli
