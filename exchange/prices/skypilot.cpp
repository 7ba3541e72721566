#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "exchange/prices/price_rows.h"
#include "sim/base/text/csv.h"
#include "sim/base/unit_text.h"

namespace reckon::price_lists {
namespace {

/// Columns of SkyPilot's vms.csv (skypilot-org/skypilot-catalog) that prices need.
constexpr std::array<std::string_view, 5> kNeeded{"InstanceType", "AcceleratorName",
                                                  "AcceleratorCount", "Region", "Price"};
constexpr std::string_view kSpot = "SpotPrice";

struct SkyRow {
  SourcePlace at;
  std::string machine, accelerator, region;
  double count = 1;
  std::optional<double> on_demand, spot;
};

class SkyTable {
 public:
  SkyTable(std::string_view bytes, const std::string& file, Mistakes& mistakes)
      : file_(file), mistakes_(mistakes), reader_(bytes) {
    std::vector<CsvField> header;
    reader_.next(header);
    width_ = header.size();  // a name that stands there twice: its first column counts
    for (std::size_t k = 0; k < width_; ++k) columns_.try_emplace(std::string(header[k].text), k);
  }

  bool next(SkyRow& row) {
    if (mistakes_.full() || !reader_.next(fields_)) return false;
    for (const CsvProblem& problem : reader_.problems())
      mistakes_.add({file_, problem.line, problem.column}, problem.what, problem.hint);
    row = SkyRow{};
    if (fields_.empty()) return true;
    row.at = {file_, fields_.front().line, fields_.front().column};
    if (fields_.size() != width_) {
      mistakes_.add(row.at,
                    fmt::format("{} fields in a table of {} columns", fields_.size(), width_));
      return true;
    }
    row.machine = text("InstanceType");
    row.accelerator = text("AcceleratorName");
    row.region = text("Region");
    row.count = number("AcceleratorCount").value_or(1);
    row.on_demand = number("Price");
    row.spot = number(kSpot);
    return true;
  }

 private:
  const CsvField* field(std::string_view column) const {
    const auto at = columns_.find(column);
    return at == columns_.end() ? nullptr : &fields_[at->second];
  }
  std::string text(std::string_view column) const {
    const CsvField* found = field(column);
    return found == nullptr ? "" : std::string(found->text);
  }
  std::optional<double> number(std::string_view column) {
    const CsvField* found = field(column);
    if (found == nullptr || found->text.empty()) return std::nullopt;
    if (const auto value = price_in(found->text)) return value;
    mistakes_.add({file_, found->line, found->column},
                  fmt::format("'{}' is no {}", found->text, column), "a number such as 0.526");
    return std::nullopt;
  }

  const std::string& file_;
  Mistakes& mistakes_;
  CsvReader reader_;
  std::size_t width_ = 0;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<CsvField> fields_;
};

/// Whose regions the table names, as the table does not name its cloud.
std::optional<Provider> provider_of_regions(const std::map<std::string, int>& regions,
                                            const Catalog& catalog) {
  std::map<Provider, int> rows;
  std::set<std::pair<Provider, std::string>> known;
  for (const Offering& offering : catalog.offerings)
    known.emplace(offering.provider, offering.region);
  for (const Location& location : catalog.locations)
    known.emplace(location.provider, location.region);
  for (const auto& [provider, region] : known)
    if (const auto found = regions.find(region); found != regions.end())
      rows[provider] += found->second;
  const auto most = std::ranges::max_element(
      rows, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == rows.end() ? std::nullopt : std::optional(most->first);
}

/// What a row prices: a machine with what is built in, a machine alone, an accelerator or a slice.
void add_row(const SkyRow& row, const Provider& provider, const Catalog& catalog, PriceRows& rows,
             PriceExport& out) {
  using Covers = Offering::Covers;
  constexpr std::string_view kTpu = "tpu-";
  std::optional<Covers> covers;
  std::string item;
  double count = 1;
  if (row.accelerator.starts_with(kTpu)) {
    if (const TpuSlice* slice = catalog.find_slice(row.accelerator.substr(kTpu.size()))) {
      covers = Covers::slice;
      item = slice->name;
    }
  } else if (!row.machine.empty()) {
    if (const Machine* machine = catalog.find_machine(provider, row.machine)) {
      covers = row.accelerator.empty() ? Covers::machine : covers_of(*machine);
      item = machine->name;
    }
  } else if (const Accelerator* found = catalog.find_accelerator(row.accelerator)) {
    covers = Covers::accelerator;
    item = found->name;
    count = row.count;
  }
  if (!covers) {
    ++out.unknown[row.machine.empty() || row.accelerator.starts_with(kTpu) ? row.accelerator
                                                                           : row.machine];
    return;
  }
  for (const auto& [capacity, price] :
       {std::pair(CapacityType::on_demand, row.on_demand), {CapacityType::spot, row.spot}})
    if (price && *price > 0 && count > 0)
      rows.add(*covers, item, row.region, capacity, *price / count);
}

}  // namespace

bool is_skypilot_table(std::string_view bytes) { return has_columns(bytes, kNeeded); }

PriceExport read_skypilot_table(std::string_view bytes, const std::string& file,
                                const PriceExportHints& hints, const Catalog& catalog,
                                Mistakes& mistakes) {
  PriceExport out;
  std::optional<Provider> provider = hints.provider;
  if (!provider) {
    std::map<std::string, int> regions;
    Mistakes told_later;
    SkyTable table(bytes, file, told_later);
    SkyRow row;
    while (table.next(row)) ++regions[row.region];
    provider = provider_of_regions(regions, catalog);
  }
  if (!provider) {
    mistakes.add({file}, "the table does not say whose machines it prices, nor do its regions",
                 "--provider NAME");
    return out;
  }
  out.provider = *provider;
  out.source = {fmt::format("skypilot-{}-{}", provider->name, hints.date),
                fmt::format("SkyPilot catalog, {}", file), hints.date};
  SkyTable table(bytes, file, mistakes);
  SkyRow row;
  PriceRows rows;
  while (table.next(row))
    if (!row.machine.empty() || !row.accelerator.empty())
      add_row(row, *provider, catalog, rows, out);
  out.prices = rows.offerings(*provider, hints.date);
  return out;
}

}  // namespace reckon::price_lists
