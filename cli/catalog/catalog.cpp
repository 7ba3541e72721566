#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/catalog/refresh.h"
#include "cli/command.h"
#include "cli/load/load.h"
#include "cli/options/shared.h"
#include "cli/options/usage_error.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "report/catalog/view.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/yaml/reader.h"

namespace reckon::cli {
namespace {

struct CatalogOptions : Files, AnswerFormat, OutPath, CatalogChoice {
  RefreshOptions refresh;

  std::vector<Option> declared() {
    return {
        {{"from", "FILE", "refresh: price list to read, plain or gzip (repeatable)"},
         paths(refresh.lists),
         true},
        {{"provider", "NAME", "refresh: provider of a SkyPilot table (by its regions)"},
         text(refresh.provider)},
        {{"date", "YYYY-MM-DD", "refresh: date of a price list that names none (the file's date)"},
         text(refresh.date)},
        {{"out", "DIR", "refresh: directory for the catalog of these prices (not written)"},
         file_name(out)},
        format_option(),
        catalog_option()};
  }
  void check() const {
    const bool refreshes = !files.empty() && files.front() == "refresh";
    if (!refreshes && (!refresh.lists.empty() || !refresh.provider.empty() ||
                       !refresh.date.empty() || !out.empty()))
      throw UsageError("--from, --provider, --date and --out are of catalog refresh");
    if (refreshes && files.size() > 1)
      throw UsageErrorWithHint(fmt::format("catalog refresh does not take '{}'", files[1]),
                               "reckon catalog refresh --from FILE");
    if (!refresh.date.empty() && !parse_date(refresh.date))
      throw UsageError(fmt::format("--date {} is no date such as 2026-11-24", refresh.date));
  }
};

int print_tables(std::string_view command, const CatalogOptions& options,
                 std::span<const CatalogTable> tables) {
  print(options.format == OutputFormat::json ? print_catalog_json(command, tables)
                                             : print_catalog_text(tables));
  return kDone;
}

int print_list(const Catalog& catalog, const CatalogOptions& options) {
  const std::vector<std::string> kinds = catalog_kinds();
  if (options.files.size() < 2) {
    CatalogTable table{"", {"kind", "entries"}, {}};
    for (const std::string& kind : kinds)
      table.rows.push_back(
          {kind, static_cast<std::int64_t>(list_catalog(catalog, kind, {})->rows.size())});
    return print_tables("catalog list", options, std::array{table});
  }
  const std::string& kind = options.files[1];
  const auto table = list_catalog(catalog, kind, std::span(options.files).subspan(2));
  if (!table)
    throw UsageErrorWithHint(
        fmt::format("there is no kind '{}'{}", kind, did_you_mean(kind, kinds)),
        fmt::format("kinds: {}", fmt::join(kinds, ", ")));
  return print_tables("catalog list", options, std::array{*table});
}

int print_shown(const Catalog& catalog, const CatalogOptions& options) {
  if (options.files.size() != 2) throw UsageError("catalog show takes one name");
  const std::string& name = options.files[1];
  const std::vector<CatalogTable> tables = show_catalog(catalog, name);
  if (tables.empty())
    throw UsageError(fmt::format("nothing in the catalog is named '{}'{}", name,
                                 did_you_mean(name, catalog_names(catalog))));
  return print_tables("catalog show", options, tables);
}

}  // namespace

std::vector<OptionText> catalog_options() { return shown_options<CatalogOptions>(); }

int run_catalog(const Command& self, std::span<const std::string> arguments) {
  auto options = parse<CatalogOptions>(self, arguments);
  if (!options) return kDone;
  if (options->files.empty()) throw UsageError(fmt::format("say what to do: {}", self.usage));
  const std::string& action = options->files.front();
  const std::array<std::string, 4> kActions{"list", "show", "check", "refresh"};
  if (std::ranges::find(kActions, action) == kActions.end())
    throw UsageError(fmt::format("catalog does list, show, check and refresh, not '{}'{}", action,
                                 did_you_mean(action, kActions)));
  if (action == "refresh")
    return refresh_catalog(options->refresh, *options, options->format, options->out);
  if (action == "check")  // the user's layers over ours
    options->catalogs.insert(options->catalogs.end(), options->files.begin() + 1,
                             options->files.end());
  const auto catalog = checked(load_catalogs(*options));
  if (action == "list") return print_list(catalog, *options);
  if (action == "show") return print_shown(catalog, *options);
  const auto count = [](const auto& entries) { return static_cast<std::int64_t>(entries.size()); };
  if (options->format == OutputFormat::json)
    return print_tables(
        "catalog check", *options,
        std::array{CatalogTable{
            "",
            {"accelerators", "machines", "prices", "locations", "sources", "digest"},
            {{count(catalog.accelerators), count(catalog.machines), count(catalog.offerings),
              count(catalog.locations), count(catalog.sources), catalog.digest}}}});
  print(
      fmt::format("{} accelerators, {} machines, {} prices, {} locations, {} sources: no problem\n"
                  "digest {}\n",
                  catalog.accelerators.size(), catalog.machines.size(), catalog.offerings.size(),
                  catalog.locations.size(), catalog.sources.size(), catalog.digest));
  return kDone;
}

}  // namespace reckon::cli
