#pragma once
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "exchange/json_parts.h"
#include "exchange/prices/price_export.h"

// What the readers of price lists share.
namespace reckon::price_lists {

/// What an export says of one item in one region, from many lines.
class PriceRows {
 public:
  /// `usd_per_hour`: of one item.
  void add(Offering::Covers covers, const std::string& item, const std::string& region,
           CapacityType capacity, double usd_per_hour);
  bool empty() const { return rows_.empty(); }
  /// Prices of one that differ become their middle, with the range of all.
  std::vector<Offering> offerings(const Provider& provider, const std::string& date) const;

 private:
  using Key = std::tuple<Offering::Covers, std::string, std::string>;
  struct Prices {
    std::vector<double> on_demand, spot;  // USD an hour of one item
  };
  std::map<Key, Prices> rows_;
};

/// An hour's price as the catalog keeps it; `low` and `high` make a range.
Fact<UsdPerSecond> hourly(double usd);
Fact<UsdPerSecond> hourly(double usd, double low, double high);

/// The price of a machine covers what is built into it.
Offering::Covers covers_of(const Machine& machine);

/// "2026-11-20" of "2026-11-20T08:00:00Z"; "": no date.
std::string day_of(std::string_view time);

/// Collects mistakes, up to kMostMistakes.
class Mistakes {
 public:
  static constexpr std::size_t kMostMistakes = 200;
  void add(SourcePlace at, std::string what, std::string hint = {});
  bool full() const { return found_.size() >= kMostMistakes; }
  bool empty() const { return found_.empty(); }
  Diagnostics take() { return std::move(found_); }

 private:
  Diagnostics found_;
};

/// Whether the first line of a CSV file names all these columns.
bool has_columns(std::string_view bytes, std::span<const std::string_view> columns);

/// The text of the scalar at a key; "": there is none.
std::string_view text_at(const YamlNode& map, std::string_view key);
/// The map or list at a key; nullptr: there is none.
const YamlNode* node_at(const YamlNode& map, std::string_view key);
/// A price in USD: a number, not negative, and no more than the catalog believes of an hour.
std::optional<double> price_in(std::string_view text);
/// The price at a key; a mistake where it is none.
/// As price_in().
std::optional<double> price_at(const YamlNode& map, std::string_view key, Mistakes& mistakes);

/// A format: it is asked for what the file must have, gets it part by part, and says what it found.
class JsonPrices {
 public:
  virtual ~JsonPrices() = default;
  /// Paths of json_parts.h.
  virtual std::vector<std::string_view> paths() const = 0;
  virtual void take(const JsonPart& part, Mistakes& mistakes) = 0;
  virtual PriceExport finish(const std::string& file, const PriceExportHints& hints,
                             Mistakes& mistakes) = 0;
};

std::unique_ptr<JsonPrices> aws_price_list(const Catalog& catalog);
std::unique_ptr<JsonPrices> aws_spot_history(const Catalog& catalog);
std::unique_ptr<JsonPrices> google_skus(const Catalog& catalog);
std::unique_ptr<JsonPrices> azure_retail_prices(const Catalog& catalog);

/// SkyPilot's vms.csv.
bool is_skypilot_table(std::string_view bytes);
PriceExport read_skypilot_table(std::string_view bytes, const std::string& file,
                                const PriceExportHints& hints, const Catalog& catalog,
                                Mistakes& mistakes);

/// The user's own list of machines.
bool is_machine_table(std::string_view bytes);
PriceExport read_machine_table(std::string_view bytes, const std::string& file,
                               const PriceExportHints& hints, const Catalog& catalog,
                               Mistakes& mistakes);
/// Of a table of PriceExport::files; "": it is no table.
std::string_view header_of_machines(std::string_view file);

/// The provider of a format. A mistake of the file where the catalog has none of that name.
Provider provider_named(std::string_view name, const Catalog& catalog, const std::string& file,
                        Mistakes& mistakes);

}  // namespace reckon::price_lists
