#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_map>

#include "exchange/prices/price_rows.h"
#include "sim/scenario/yaml/reader.h"

namespace reckon::price_lists {
namespace {

/// The offer file of one service (docs.aws.amazon.com, "Reading the service price list file"):
/// `products` by SKU, then `terms` by kind of contract and SKU.
class AwsPriceList final : public JsonPrices {
 public:
  explicit AwsPriceList(const Catalog& catalog) : catalog_(catalog) {}

  std::vector<std::string_view> paths() const override {
    return {"offerCode", "version", "publicationDate", "products.*", "terms.OnDemand.*"};
  }

  void take(const JsonPart& part, Mistakes& mistakes) override {
    if (part.path.front() == "products") return product(part.value);
    if (part.path.front() == "terms") return terms(part, mistakes);
    if (part.path.front() == "version") version_ = part.value.text;
    if (part.path.front() == "publicationDate") date_ = day_of(part.value.text);
    if (part.path.front() == "offerCode" && part.value.text != "AmazonEC2")
      mistakes.add(part.value.at, fmt::format("the price list is of {}", describe(part.value)),
                   "machines are in that of AmazonEC2");
  }

  PriceExport finish(const std::string& file, const PriceExportHints& hints,
                     Mistakes& mistakes) override {
    PriceExport out;
    out.provider = provider_named("aws", catalog_, file, mistakes);
    const std::string date = date_.empty() ? hints.date : date_;
    out.source = {fmt::format("aws-price-list-{}", date),
                  fmt::format("AWS price list AmazonEC2, version {}, {}",
                              version_.empty() ? "unknown" : version_, file),
                  date};
    out.prices = rows_.offerings(out.provider, date);
    out.unknown = std::move(unknown_);
    out.passed_over = passed_over_;
    return out;
  }

 private:
  struct Product {
    const Machine* machine;
    std::string region;
  };

  void product(const YamlNode& value) {
    const YamlNode* attributes = node_at(value, "attributes");
    if (attributes == nullptr) return;
    const std::string_view name = text_at(*attributes, "instanceType");
    if (!of_plain_machine(*attributes) || name.empty()) {
      ++passed_over_;
      return;
    }
    const Machine* machine = catalog_.find_machine(Provider{"aws"}, name);
    if (machine == nullptr) {
      ++unknown_[std::string(name)];
      return;
    }
    products_[std::string(text_at(value, "sku"))] = {
        machine, std::string(text_at(*attributes, "regionCode"))};
  }

  /// Linux on shared hardware, without software that costs, in a region. What an attribute does not
  /// say is as it is usual.
  static bool of_plain_machine(const YamlNode& attributes) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kPlain{{
        {"operatingSystem", "Linux"},
        {"tenancy", "Shared"},
        {"preInstalledSw", "NA"},
        {"capacitystatus", "Used"},
        {"locationType", "AWS Region"},
        {"marketoption", "OnDemand"},
    }};
    return std::ranges::all_of(kPlain, [&](const auto& wanted) {
      const std::string_view is = text_at(attributes, wanted.first);
      return is.empty() || is == wanted.second;
    });
  }

  void terms(const JsonPart& part, Mistakes& mistakes) {
    const auto product = products_.find(part.path.back());
    if (product == products_.end()) return;
    for (const YamlNode::Entry& offer : part.value.entries) {
      const YamlNode* dimensions = node_at(offer.value, "priceDimensions");
      if (dimensions == nullptr) continue;
      for (const YamlNode::Entry& dimension : dimensions->entries) {
        if (text_at(dimension.value, "unit") != "Hrs") continue;
        const YamlNode* price = node_at(dimension.value, "pricePerUnit");
        if (price == nullptr) continue;
        const auto usd = price_at(*price, "USD", mistakes);
        // Free SKUs are those of machines that are paid for elsewhere (dedicated hosts).
        if (!usd || *usd == 0) continue;
        const Machine& machine = *product->second.machine;
        rows_.add(covers_of(machine), machine.name, product->second.region, CapacityType::on_demand,
                  *usd);
      }
    }
  }

  const Catalog& catalog_;
  std::string version_, date_;
  std::unordered_map<std::string, Product> products_;  // by SKU; looked up only
  PriceRows rows_;
  std::map<std::string, std::int64_t> unknown_;
  std::int64_t passed_over_ = 0;
};

/// `aws ec2 describe-spot-price-history`: each change of a machine's price in a zone.
class AwsSpotHistory final : public JsonPrices {
 public:
  explicit AwsSpotHistory(const Catalog& catalog) : catalog_(catalog) {}

  std::vector<std::string_view> paths() const override { return {"SpotPriceHistory.*"}; }

  void take(const JsonPart& part, Mistakes& mistakes) override {
    const YamlNode& change = part.value;
    const std::string_view name = text_at(change, "InstanceType");
    const std::string_view product = text_at(change, "ProductDescription");
    if (!product.empty() && !product.starts_with("Linux/UNIX")) {
      ++passed_over_;
      return;
    }
    const Machine* machine = catalog_.find_machine(Provider{"aws"}, name);
    if (machine == nullptr) {
      ++unknown_[name.empty() ? "(no InstanceType)" : std::string(name)];
      return;
    }
    const std::string_view zone = text_at(change, "AvailabilityZone");
    const std::string region = region_of(zone);
    if (region.empty())
      mistakes.add(change.at, fmt::format("the zone '{}' of {} is in no region", zone, name),
                   "\"AvailabilityZone\": \"us-east-1a\"");
    const auto usd = price_at(change, "SpotPrice", mistakes);
    const auto time = utc(text_at(change, "Timestamp"));
    if (!time)
      mistakes.add(change.at, fmt::format("the price of {} has no time", name),
                   "\"Timestamp\": \"2026-11-20T08:00:00Z\"");
    if (!usd || !time || region.empty()) return;
    changes_[{machine->name, region}][std::string(zone)].push_back({*time, *usd});
    first_ = std::min(first_, *time);
    last_ = std::max(last_, *time);
  }

  PriceExport finish(const std::string& file, const PriceExportHints& hints,
                     Mistakes& mistakes) override {
    PriceExport out;
    out.provider = provider_named("aws", catalog_, file, mistakes);
    const std::string date = changes_.empty() ? hints.date : day(last_);
    out.source = {fmt::format("aws-spot-history-{}", date),
                  fmt::format("aws ec2 describe-spot-price-history, {}", file), date};
    for (auto& [key, zones] : changes_) out.prices.push_back(offering(key, zones, date));
    for (Offering& made : out.prices) made.provider = out.provider;
    out.unknown = std::move(unknown_);
    out.passed_over = passed_over_;
    out.complete = false;  // the machines that somebody asked for
    return out;
  }

 private:
  struct Change {
    std::chrono::sys_seconds at;
    double usd;
  };
  using Zones = std::map<std::string, std::vector<Change>>;

  static std::optional<std::chrono::sys_seconds> utc(std::string_view text) {
    constexpr std::size_t kSeconds = 19;  // "2026-11-20T08:00:00"; AWS writes UTC, in several forms
    return parse_utc_time(std::string(text.substr(0, kSeconds)) + "Z");
  }
  static std::string day(std::chrono::sys_seconds time) {
    return fmt::format("{:%Y-%m-%d}", fmt::gmtime(time.time_since_epoch().count()));
  }
  /// "us-east-1" of "us-east-1a"; of a local zone "us-east-1-bos-1a" itself without its letter.
  static std::string region_of(std::string_view zone) {
    const bool lettered = zone.size() > 1 && zone.back() >= 'a' && zone.back() <= 'z' &&
                          zone[zone.size() - 2] >= '0' && zone[zone.size() - 2] <= '9';
    return lettered ? std::string(zone.substr(0, zone.size() - 1)) : std::string();
  }

  /// A price holds from its time until the next of its zone, the last until the history's end.
  Offering offering(const std::pair<std::string, std::string>& machine_region, Zones& zones,
                    const std::string& date) const {
    double sum = 0;
    double low = std::numeric_limits<double>::infinity(), high = 0;
    std::size_t changes = 0;
    for (auto& [zone, list] : zones) {
      std::ranges::sort(list, {}, &Change::at);
      double weighted = 0, weight = 0;
      for (std::size_t k = 0; k < list.size(); ++k) {
        const auto until = k + 1 < list.size() ? list[k + 1].at : last_;
        const auto held = static_cast<double>((until - list[k].at).count());
        weighted += held * list[k].usd;
        weight += held;
        low = std::min(low, list[k].usd);
        high = std::max(high, list[k].usd);
      }
      sum += weight > 0 ? weighted / weight : list.back().usd;
      changes += list.size();
    }
    const double mean = std::clamp(sum / static_cast<double>(zones.size()), low, high);
    Offering made;
    made.region = machine_region.second;
    made.item = machine_region.first;
    made.covers = covers_of(*catalog_.find_machine(Provider{"aws"}, made.item));
    made.spot = low == high ? hourly(mean) : hourly(mean, low, high);
    made.date = date;
    made.notes =
        fmt::format("spot: mean, lowest and highest of {} recorded from {} to {}, zones: {}",
                    changes, day(first_), day(last_), zones.size());
    return made;
  }

  const Catalog& catalog_;
  std::map<std::pair<std::string, std::string>, Zones> changes_;  // by machine and region
  std::chrono::sys_seconds first_ = std::chrono::sys_seconds::max(),
                           last_ = std::chrono::sys_seconds::min();
  std::map<std::string, std::int64_t> unknown_;
  std::int64_t passed_over_ = 0;
};

}  // namespace

std::unique_ptr<JsonPrices> aws_price_list(const Catalog& catalog) {
  return std::make_unique<AwsPriceList>(catalog);
}
std::unique_ptr<JsonPrices> aws_spot_history(const Catalog& catalog) {
  return std::make_unique<AwsSpotHistory>(catalog);
}

}  // namespace reckon::price_lists
