#include "exchange/prices/price_export.h"

#include <fmt/format.h>

#include <array>

#include "exchange/prices/price_rows.h"

namespace reckon {
namespace {

using price_lists::JsonPrices;
using price_lists::Mistakes;

constexpr std::string_view kFormats =
    "AmazonEC2's offer file, aws ec2 describe-spot-price-history, Google's skus, Azure's Items, "
    "SkyPilot's vms.csv, a CSV of your own with a machine a line (provider, machine, vcpus, "
    "memory_gib, region, usd_per_hour)";

PriceExport read_json(std::string_view bytes, const std::string& file,
                      const PriceExportHints& hints, const Catalog& catalog, Mistakes& mistakes) {
  const std::array<std::unique_ptr<JsonPrices>, 4> formats{
      price_lists::aws_price_list(catalog), price_lists::aws_spot_history(catalog),
      price_lists::google_skus(catalog), price_lists::azure_retail_prices(catalog)};
  std::vector<std::string_view> wanted;
  std::map<std::string_view, JsonPrices*> of_key;  // the last key but "*" says whose it is
  for (const auto& format : formats) {
    for (const std::string_view path : format->paths()) {
      wanted.push_back(path);
      const std::string_view top = path.starts_with("*.") ? path.substr(2) : path;
      of_key[top.substr(0, top.find('.'))] = format.get();
    }
  }
  JsonPrices* used = nullptr;
  Diagnostics broken = for_each_json_part(bytes, file, wanted, [&](const JsonPart& part) {
    const std::string& first = part.path.front();
    JsonPrices* const format = of_key.at(first.empty() ? part.path[1] : first);
    if (used != nullptr && format != used) {
      mistakes.add(part.value.at, "the file mixes two kinds of price lists", "one kind a file");
      return false;
    }
    used = format;
    used->take(part, mistakes);
    return !mistakes.full();
  });
  for (Diagnostic& d : broken) mistakes.add(d.at, d.what, d.hint);
  if (used != nullptr) return used->finish(file, hints, mistakes);
  if (mistakes.empty())
    mistakes.add({file}, "the file is no price list that reckon reads",
                 fmt::format("price lists: {}", kFormats));
  return {};
}

}  // namespace

Expected<PriceExport> read_price_export(std::string_view bytes, const std::string& file,
                                        const PriceExportHints& hints, const Catalog& catalog) {
  Mistakes mistakes;
  const std::size_t begin = bytes.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const bool json = begin != std::string_view::npos && (bytes[begin] == '{' || bytes[begin] == '[');
  PriceExport out;
  if (json)
    out = read_json(bytes, file, hints, catalog, mistakes);
  else if (price_lists::is_skypilot_table(bytes))
    out = price_lists::read_skypilot_table(bytes, file, hints, catalog, mistakes);
  else if (price_lists::is_machine_table(bytes))
    out = price_lists::read_machine_table(bytes, file, hints, catalog, mistakes);
  else
    mistakes.add({file}, "the file is no price list that reckon reads",
                 fmt::format("price lists: {}", kFormats));
  if (mistakes.empty() && out.prices.empty()) {
    std::int64_t unknown = 0;
    for (const auto& [name, lines] : out.unknown) unknown += lines;
    mistakes.add(
        {file},
        fmt::format("no price of a machine of the catalog: {} lines of unknown machines, {} "
                    "of other things",
                    unknown, out.passed_over),
        "a machines.csv of your own adds machines: --catalog DIR");
  }
  if (!mistakes.empty()) return tl::unexpected(mistakes.take());
  return out;
}

}  // namespace reckon
