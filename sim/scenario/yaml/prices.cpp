#include <algorithm>

#include "sim/scenario/yaml/fields.h"

namespace reckon {
namespace {

const Fields<ReservationSpec>& reservation_fields() {
  using R = ReservationSpec;
  static const Fields<R> table{
      required(text_field("machine", &R::machine, "Catalog name.", "a3-highgpu-8g")),
      required(number_field("count", &R::count, whole(1, kMostNodes), "Machines reserved.", "4")),
      word_field("kind", &R::kind,
                 "How they were bought; default: machines, billed for what is used.", "block"),
      field<R>(
          "from", Form{Form::Kind::date},
          [](Reader& r, const YamlNode& n, R& t) { t.from = r.date(n).value_or(""); },
          "First day: its machines are not there before.", "2026-12-05"),
      field<R>(
          "until", Form{Form::Kind::date},
          [](Reader& r, const YamlNode& n, R& t) { t.until = r.date(n).value_or(""); }, "Last day.",
          "2027-06-30"),
      number_field("length", &R::length, duration_above_zero(),
                   "From the first day, in place of 'until'.", "14d"),
      number_field("term", &R::term, duration_above_zero(), "Of a commitment.", "1y"),
      field<R>(
          "price", Form{Form::Kind::price},
          [](Reader& r, const YamlNode& n, R& t) { t.price = r.price(n); }, "Of one machine.",
          "44 USD/h"),
      number_field("discount", &R::discount, fraction(),
                   "Off the on-demand price, in place of 'price'.", "37%"),
      boolean_field(
          "whole", &R::whole,
          "All of it is paid, used or not (a capacity block, a commitment): needs 'until'.",
          "true"),
  };
  return table;
}

/// "0.02 USD/GB" for a GB (1e9 bytes).
std::optional<MoneyText> read_price_of_gb(Reader& r, const YamlNode& n) {
  constexpr std::string_view kUnit = "/GB";
  constexpr double kDearest = 1000;  // of the amount's currency, a GB
  const auto text = r.text(n);
  if (!text) return std::nullopt;
  if (text->ends_with(kUnit)) {
    const Parsed<MoneyText> money =
        parse_money(std::string_view(*text).substr(0, text->size() - kUnit.size()));
    if (money && money->amount >= 0 && money->amount <= kDearest) return *money;
  }
  r.error(fmt::format("{}: '{}' is not a price of data such as 0.02 USD/GB", r.subject(),
                      shortened(*text)),
          r.example());
  return std::nullopt;
}

const Fields<EgressSpec>& egress_fields() {
  using E = EgressSpec;
  static const Fields<E> table{
      text_field("checkpoints_in", &E::checkpoints_in,
                 "Region of the bucket of checkpoints; default: the cluster's.", "us-east1"),
      text_field("data_in", &E::data_in,
                 "Region that the data is read from; default: the cluster's.", "europe-west4"),
      number_field("zones", &E::zones, whole(1, 100),
                   "Zones over which the workers' nodes lie evenly.", "2"),
      field<E>(
          "between_regions", Form{Form::Kind::text},
          [](Reader& r, const YamlNode& n, E& e) { e.between_regions = read_price_of_gb(r, n); },
          "Of a GB; default: the provider's.", "0.02 USD/GB"),
      field<E>(
          "between_zones", Form{Form::Kind::text},
          [](Reader& r, const YamlNode& n, E& e) { e.between_zones = read_price_of_gb(r, n); },
          "Of a GB, both ends together; default: the provider's.", "0.02 USD/GB"),
  };
  return table;
}

void read_currency(Reader& reader, const YamlNode& node, PricesSpec& prices) {
  const auto text = reader.text(node);
  if (!text) return;
  const bool code =
      text->size() == 3 && std::ranges::all_of(*text, [](char c) { return c >= 'A' && c <= 'Z'; });
  if (code)
    prices.currency = *text;
  else
    reader.error(fmt::format("{}: '{}' is no currency code such as EUR", reader.subject(),
                             shortened(*text)));
}

}  // namespace

const Fields<PricesSpec>& prices_fields() {
  using P = PricesSpec;
  Form reserved{Form::Kind::list};
  reserved.fields = &infos_of<reservation_fields>;
  static const Fields<P> table{
      field<P>("currency", Form{Form::Kind::text}, read_currency, "In which results are printed.",
               "EUR"),
      number_field("usd_rate", &P::usd_rate, Form{Form::Kind::number, 1e-6, 1e9},
                   "What one USD is worth in it.", "0.92"),
      boolean_field("suspect", &P::suspect,
                    "Use list prices that look wrong (half of other regions') too.", "true"),
      number_field("discount", &P::discount, fraction(), "Off the catalog's prices.", "30%"),
      number_field("uncertainty", &P::uncertainty, fraction(),
                   "How far all prices may be off, your own too (5th to 95th percentile); 0%: not.",
                   "20%"),
      field<P>(
          "rates", Form{.kind = Form::Kind::map, .item = Form::Kind::price},
          [](Reader& r, const YamlNode& n, P& p) {
            r.each_entry(n, [&](const std::string& item, const YamlNode& value) {
              if (const auto price = r.price(value)) p.rates[item] = *price;
            });
          },
          "Your price of a machine or accelerator.", "{a3-highgpu-8g: 61.20 USD/h}"),
      field<P>(
          "reserved", reserved,
          [](Reader& r, const YamlNode& n, P& p) {
            r.each(n, [&](const YamlNode& item) {
              ReservationSpec value;
              if (read_fields(r, item, reservation_fields(), value)) p.reserved.push_back(value);
            });
          },
          "Machines that you hold.",
          "[{machine: a3-highgpu-8g, count: 4, until: 2027-06-30, price: 44 USD/h}]"),
      field<P>(
          "minimum_rental", Form{.kind = Form::Kind::map, .item = Form::Kind::duration},
          [](Reader& r, const YamlNode& n, P& p) {
            r.each_entry(n, [&](const std::string& item, const YamlNode& value) {
              if (const auto time = r.number(value, duration_above_zero()))
                p.minimum_rental[item] = Seconds{*time};
            });
          },
          "Least time that a machine is billed for, each time it is rented.",
          "{gpu_8x_h100_sxm5: 7d}"),
      block_field<egress_fields>("egress", &P::egress, {},
                                 "Data that leaves the zone or the region, and its price.",
                                 "{checkpoints_in: us-east1}"),
  };
  return table;
}

namespace {

/// "10kW" in watts; nullopt: not a power.
std::optional<double> watts(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"MW", 1e6}, {"kW", 1e3}, {"W", 1.0}};
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const Parsed<double> number = parse_number(text.substr(0, text.size() - unit.size()));
    constexpr double kStrongest = 1e9;  // watts: a power station
    if (!number || *number < 0 || *number * factor > kStrongest) return std::nullopt;
    return *number * factor;
  }
  return std::nullopt;
}

/// "0.15 USD/kWh" for a joule.
std::optional<MoneyText> tariff_of(std::string_view text) {
  constexpr std::pair<std::string_view, double> kUnits[] = {{"/kWh", 3.6e6}, {"/MWh", 3.6e9}};
  for (const auto& [unit, joules] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const Parsed<MoneyText> money = parse_money(text.substr(0, text.size() - unit.size()));
    constexpr double kDearest = 1e6;  // a unit
    if (!money || money->amount < 0 || money->amount > kDearest) return std::nullopt;
    return MoneyText{money->amount / joules, money->currency};
  }
  return std::nullopt;
}

}  // namespace

void read_purchase(Reader& reader, const YamlNode& node, MachineInline& machine) {
  const auto text = reader.text(node);
  if (!text) return;
  const Parsed<MoneyText> money = parse_money(*text);
  if (!money)
    reader.error(fmt::format("{}: {}", reader.subject(), money.error()));
  else if (money->amount < 0 || money->amount > 1e9)
    reader.error(fmt::format("{} is {}, but must be between 0 and 1,000,000,000", reader.subject(),
                             shortened(*text)));
  else
    machine.purchase = *money;
}

void read_power(Reader& reader, const YamlNode& node, MachineInline& machine) {
  const auto text = reader.text(node);
  if (!text) return;
  if (const auto power = watts(*text))
    machine.power_watts = *power;
  else
    reader.error(fmt::format("{}: '{}' is not a power such as 700W or 10kW", reader.subject(),
                             shortened(*text)),
                 reader.example() + "\nat most 1000MW");
}

void read_tariff(Reader& reader, const YamlNode& node, MachineInline& machine) {
  const auto text = reader.text(node);
  if (!text) return;
  if (const auto tariff = tariff_of(*text))
    machine.tariff = *tariff;
  else
    reader.error(fmt::format("{}: '{}' is not a price of electricity such as 0.15 USD/kWh",
                             reader.subject(), shortened(*text)),
                 reader.example() + "\nat most 1,000,000 a kWh or MWh");
}

void check_machine_costs(Reader& reader, const YamlNode& node, const MachineInline& machine) {
  const auto together = [&](std::string_view one, bool has_one, std::string_view other,
                            bool has_other, std::string_view example) {
    if (has_one == has_other) return;
    const std::string_view given = has_one ? one : other;
    reader.error(node.find(given)->key_at,
                 fmt::format("'{}' needs '{}'", given, has_one ? other : one),
                 fmt::format("example: {}", example));
  };
  together("purchase", machine.purchase.has_value(), "amortised_over",
           machine.amortised_over.has_value(), "purchase: 250000 USD, amortised_over: 3y");
  together("power", node.has("power"), "tariff", machine.tariff.has_value(),
           "power: 10kW, tariff: 0.15 USD/kWh");
  if (machine.price && machine.purchase)
    reader.error(node.find("purchase")->key_at, "'purchase' cannot stand beside 'price'",
                 "a machine is rented at a price or bought; power comes on top of either");
}

void check_currency(Reader& reader, const SourcePlace& at, std::string_view path,
                    const MoneyText& money, const PricesSpec* prices) {
  if (money.currency.empty() || money.currency == "USD") return;
  if (prices != nullptr && money.currency == prices->currency) return;
  reader.error(
      at, fmt::format("{} is in {}, whose rate is not known", path, money.currency),
      fmt::format("write USD, or give prices: {{currency: {}, usd_rate: ...}}", money.currency));
}

namespace {

/// What a kind needs, and what it cannot have.
void check_reservation(Reader& reader, const YamlNode& node, const ReservationSpec& spec,
                       const PricesSpec& prices) {
  if (node.kind != YamlNode::Kind::map) return;
  const auto at = [&](std::string_view key) {
    const auto* found = node.find(key);
    return found != nullptr ? found->key_at : node.at;
  };
  const std::string_view kind = to_text(spec.kind);
  if (spec.price) check_currency(reader, at("price"), "the price", *spec.price, &prices);
  if (node.has("price") == node.has("discount")) {
    if (node.has("price"))
      reader.error(at("discount"), "'discount' cannot stand beside 'price'", "one of the two");
    else if (spec.kind != ReservationKind::owned)
      reader.error(node.at, fmt::format("a reservation of kind '{}' needs 'price'", kind),
                   "price: 44 USD/h, or discount: 37% off the on-demand price");
  }
  if (node.has("until") && node.has("length"))
    reader.error(at("length"), "'length' cannot stand beside 'until'", "one of the two");
  if (spec.kind == ReservationKind::block && !node.has("until") && !node.has("length"))
    reader.error(node.at, "a block needs 'length'", "from: 2026-12-03, length: 14d");
  if (spec.kind == ReservationKind::commitment) {
    if (!node.has("term")) reader.error(node.at, "a commitment needs 'term'", "term: 1y, or 3y");
    for (const char* key : {"from", "until", "length"})
      if (node.has(key))
        reader.error(at(key), fmt::format("a commitment has no '{}': it holds no machine", key),
                     "term: 1y; to hold machines, add a reservation of another kind");
  } else if (node.has("term")) {
    reader.error(at("term"), fmt::format("'term' is of kind 'commitment', this is '{}'", kind),
                 "kind: commitment, or until: 2027-06-30");
  }
}

}  // namespace

void check_prices(Reader& reader, const YamlNode& node, const PricesSpec& prices) {
  if (prices.currency != "USD" && !node.has("usd_rate"))
    reader.error(
        node.find("currency")->value.at,
        fmt::format("prices in {} need 'usd_rate'", prices.currency),
        fmt::format("what one USD is worth in {}\nexample: usd_rate: 0.92", prices.currency));
  if (const auto* rates = node.find("rates"))
    for (const auto& entry : rates->value.entries)
      if (const auto found = prices.rates.find(entry.key); found != prices.rates.end())
        check_currency(reader, entry.value.at, "the price of " + shortened(entry.key),
                       found->second, &prices);
  if (const auto* reserved = node.find("reserved"))
    for (std::size_t i = 0; i < prices.reserved.size() && i < reserved->value.entries.size(); ++i)
      check_reservation(reader, reserved->value.entries[i].value, prices.reserved[i], prices);
  if (const auto* egress = node.find("egress"); egress != nullptr && prices.egress)
    for (const auto& [key, price] : {std::pair("between_regions", prices.egress->between_regions),
                                     {"between_zones", prices.egress->between_zones}})
      if (const auto* at = egress->value.find(key); at != nullptr && price)
        check_currency(reader, at->value.at, "the price", *price, &prices);
}

}  // namespace reckon
