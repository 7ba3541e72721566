#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "exchange/prices/price_rows.h"
#include "sim/base/text/csv.h"
#include "sim/base/unit_text.h"

// Machines of a cloud that the catalog does not have, a line each, as a catalog of their own.
namespace reckon::price_lists {
namespace {

constexpr std::array<std::string_view, 6> kNeededOfMachine{"provider",   "machine", "vcpus",
                                                           "memory_gib", "region",  "usd_per_hour"};
constexpr std::array<std::string_view, 8> kOtherOfMachine{
    "accelerator", "count", "network_gbps",      "network_link",
    "peer_fabric", "zone",  "spot_usd_per_hour", "minimum_rental"};

/// Read as gigabits a second where a line names none: what is rented by the hour has at least that.
constexpr std::string_view kUnknownNetwork = "10 [1 100]";

class MachineTable {
 public:
  MachineTable(std::string_view bytes, const std::string& file, Mistakes& mistakes)
      : file_(file), mistakes_(mistakes), reader_(bytes, CsvReader::Comments::hash) {
    std::vector<CsvField> header;
    reader_.next(header);
    width_ = header.size();
    for (std::size_t k = 0; k < width_; ++k) {
      const std::string name(header[k].text);
      const bool known = std::ranges::find(kNeededOfMachine, name) != kNeededOfMachine.end() ||
                         std::ranges::find(kOtherOfMachine, name) != kOtherOfMachine.end();
      if (!known)
        mistakes_.add({file_, header[k].line, header[k].column},
                      fmt::format("unknown column '{}'", name),
                      fmt::format("columns: {}, {}", fmt::join(kNeededOfMachine, ", "),
                                  fmt::join(kOtherOfMachine, ", ")));
      columns_.try_emplace(name, k);
    }
  }

  /// False: there is no further line.
  bool next() {
    while (!mistakes_.full() && reader_.next(fields_)) {
      for (const CsvProblem& problem : reader_.problems())
        mistakes_.add({file_, problem.line, problem.column}, problem.what, problem.hint);
      if (fields_.empty() || (fields_.size() == 1 && fields_.front().text.empty())) continue;
      if (fields_.size() == width_) return true;
      mistakes_.add(at(fields_.front()),
                    fmt::format("{} fields in a table of {} columns", fields_.size(), width_));
    }
    return false;
  }

  std::string text(std::string_view column) const {
    const CsvField* found = field(column);
    return found == nullptr ? "" : std::string(found->text);
  }
  /// A mistake where nothing stands there.
  std::string needed(std::string_view column) {
    std::string value = text(column);
    if (value.empty()) mistakes_.add(at(fields_.front()), fmt::format("'{}' is empty", column));
    return value;
  }
  std::optional<double> price(std::string_view column) {
    const CsvField* found = field(column);
    if (found == nullptr || found->text.empty()) return std::nullopt;
    if (const auto value = price_in(found->text)) return value;
    mistakes_.add(at(*found), fmt::format("'{}' is no price in USD an hour", found->text),
                  "a number such as 2.49");
    return std::nullopt;
  }
  void complain(std::string_view column, std::string what, std::string hint) {
    const CsvField* found = field(column);
    mistakes_.add(at(found == nullptr ? fields_.front() : *found), std::move(what),
                  std::move(hint));
  }

 private:
  const CsvField* field(std::string_view column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() ? nullptr : &fields_[found->second];
  }
  SourcePlace at(const CsvField& field) const { return {file_, field.line, field.column}; }

  const std::string& file_;
  Mistakes& mistakes_;
  CsvReader reader_;
  std::size_t width_ = 0;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<CsvField> fields_;
};

/// A provider that the catalog does not have: what nobody said of it has a wide range.
std::string provider_yaml(const std::string& name, bool spot) {
  return fmt::format(
      R"({0}:
  called: {0}
  source: general-knowledge
  services: [none]
  spot_sold: {1}
  provisioning:
    cpu_s: {{value: 3min, low: 1min, high: 10min}}
    gpu_s: {{value: 5min, low: 2min, high: 20min}}
  spot:
    notice_s: {{value: 0s, low: 0s, high: 2min}}
    free_if_reclaimed_within_s: {{value: 0s, low: 0s, high: 0s}}
  maintenance:
    every_s: {{value: 90d, low: 30d, high: 365d}}
    notice_s: {{value: 0s, low: 0s, high: 15min}}
  billing:
    granularity_s: {{value: 60s, low: 1s, high: 1h}}
    minimum_s: {{value: 60s, low: 1s, high: 1h}}
)",
      name, spot);
}

std::string storage_yaml(const std::string& name) {
  return fmt::format(
      R"({0}-storage:
  source: general-knowledge
  provider: {0}
  default: true
  read_per_node: {{value: 1 GB/s, low: 0.2 GB/s, high: 4 GB/s}}
  write_per_node: {{value: 0.5 GB/s, low: 0.1 GB/s, high: 2 GB/s}}
  latency: {{value: 20 ms, low: 1 ms, high: 100 ms}}
)",
      name);
}

bool is_a_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

/// One line; its place, its price, and once the machine.
void add_machine(MachineTable& table, const Catalog& catalog, PriceExport& out,
                 std::set<std::string>& machines, const std::string& date) {
  const std::string name = table.needed("machine"), region = table.needed("region");
  const std::string accelerator = table.text("accelerator"), zone = table.text("zone");
  if (!accelerator.empty() && catalog.find_accelerator(accelerator) == nullptr) {
    std::vector<std::string> names;
    for (const Accelerator& a : catalog.accelerators) names.push_back(a.name);
    table.complain(
        "accelerator",
        fmt::format("unknown accelerator '{}'{}", accelerator, did_you_mean(accelerator, names)),
        "reckon catalog list accelerators; one of your own: accelerators.yaml, --catalog");
    return;
  }
  if (!zone.empty() && !zone.starts_with(region))
    table.complain("zone", fmt::format("zone '{}' is not in region '{}'", zone, region),
                   fmt::format("{}-a, or leave it empty", region));
  const std::string count = accelerator.empty() ? "" : table.text("count");
  const std::string network = table.text("network_gbps");
  if (machines.insert(name).second)
    out.files["machines.csv"] += csv_line(std::vector<std::string>{
        out.provider.name, name, table.needed("vcpus"), table.needed("memory_gib"),
        network.empty() ? std::string(kUnknownNetwork) : network, accelerator,
        accelerator.empty() || !count.empty() ? count : "1", table.text("peer_fabric"),
        table.text("network_link"), table.text("minimum_rental"), out.source.id});
  out.files["locations.csv"] +=
      csv_line(std::vector<std::string>{out.provider.name, name, region, zone});
  Offering made;
  made.provider = out.provider;
  made.region = region;
  if (!zone.empty()) made.zones = {zone};
  made.item = name;
  made.covers =
      accelerator.empty() ? Offering::Covers::machine : Offering::Covers::machine_with_accelerators;
  made.date = date;
  if (const auto price = table.price("usd_per_hour")) made.on_demand = hourly(*price);
  if (const auto price = table.price("spot_usd_per_hour")) made.spot = hourly(*price);
  if (!made.on_demand && !made.spot)
    table.complain("usd_per_hour", "there is no price", "usd_per_hour, spot_usd_per_hour or both");
  out.prices.push_back(std::move(made));
}

}  // namespace

bool is_machine_table(std::string_view bytes) {
  while (bytes.starts_with('#') && bytes.find('\n') != std::string_view::npos)
    bytes.remove_prefix(bytes.find('\n') + 1);
  return has_columns(bytes, kNeededOfMachine);
}

PriceExport read_machine_table(std::string_view bytes, const std::string& file,
                               const PriceExportHints& hints, const Catalog& catalog,
                               Mistakes& mistakes) {
  PriceExport out;
  out.complete = false;
  MachineTable table(bytes, file, mistakes);
  std::set<std::string> machines;
  while (table.next()) {
    const std::string provider = table.needed("provider");
    if (out.provider.name.empty()) {
      if (!is_a_name(provider)) {
        table.complain("provider", fmt::format("'{}' is no name of a provider", provider),
                       "small letters, digits, '_' and '-': lambda");
        return out;
      }
      out.provider = Provider{provider};
      out.source = {fmt::format("machines-{}-{}", provider, hints.date),
                    fmt::format("machines of {} as its user lists them, {}", provider, file),
                    hints.date};
    } else if (provider != out.provider.name) {
      table.complain(
          "provider",
          fmt::format("machines of {} and of {} in one file", out.provider.name, provider),
          "one file a provider: --from A --from B");
      continue;
    }
    add_machine(table, catalog, out, machines, hints.date);
  }
  if (out.provider.name.empty() || catalog.find_provider(out.provider.name) != nullptr) return out;
  const bool spot =
      std::ranges::any_of(out.prices, [](const Offering& o) { return o.spot.has_value(); });
  out.files["providers.yaml"] = provider_yaml(out.provider.name, spot);
  out.files["storages.yaml"] = storage_yaml(out.provider.name);
  return out;
}

std::string_view header_of_machines(std::string_view file) {
  if (file == "machines.csv")
    return "provider,machine,vcpus,memory_gib,network_gbps,accelerator,accelerators,peer_fabric,"
           "network_link,minimum_rental,source\n";
  if (file == "locations.csv") return "provider,items,region,zones\n";
  return "";
}

}  // namespace reckon::price_lists
