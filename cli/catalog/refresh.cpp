#include "cli/catalog/refresh.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>

#include "cli/catalog/overlay.h"
#include "cli/exit_code.h"
#include "cli/load/load.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "exchange/prices/price_overlay.h"
#include "exchange/unpacked_file.h"
#include "report/catalog/refresh.h"

namespace reckon::cli {

std::string day_of_file(const std::filesystem::path& file) {
  const auto written = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(file));
  const auto seconds = std::chrono::floor<std::chrono::seconds>(written).time_since_epoch();
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(seconds.count())));
}

int refresh_catalog(const RefreshOptions& options, const CatalogChoice& catalogs,
                    OutputFormat format, const std::string& out) {
  if (options.lists.empty())
    throw UsageError("say what to read: reckon catalog refresh --from FILE");
  if (!out.empty()) require_new_directory(out);
  const auto catalog = checked(load_catalogs(catalogs));
  PriceExportHints hints;
  if (!options.provider.empty()) {
    const ProviderRules* rules = catalog.find_provider(options.provider);
    if (rules == nullptr)
      throw UsageError(fmt::format("the catalog has no provider '{}'", options.provider));
    hints.provider = rules->id;
  }
  std::vector<PriceExport> exports;
  Diagnostics mistakes;
  for (const std::filesystem::path& list : options.lists) {
    const UnpackedFile file(list);
    hints.date = options.date.empty() ? day_of_file(list) : options.date;
    auto read = read_price_export(file.bytes(), list.string(), hints, catalog);
    if (read)
      exports.push_back(std::move(*read));
    else
      mistakes.insert(mistakes.end(), read.error().begin(), read.error().end());
  }
  if (!mistakes.empty()) throw WrongInput(std::move(mistakes));
  constexpr std::size_t kRowsOfTable = 30;
  const bool json = format == OutputFormat::json;
  const auto tables =
      refresh_tables(exports, price_changes(exports, catalog), json ? kAllRows : kRowsOfTable);
  print(json ? print_catalog_json("catalog refresh", tables) : print_catalog_text(tables));
  if (out.empty()) return kDone;
  std::vector<SourcedPrices> sourced;
  for (const PriceExport& each : exports) sourced.push_back({each.source, each.prices, each.files});
  write_overlay(out, price_overlay(sourced), catalogs);
  return kDone;
}

}  // namespace reckon::cli
