#include <algorithm>

#include "sim/scenario/yaml/fields.h"

namespace reckon {
namespace {

const Fields<ReservationSpec>& reservation_fields() {
  using R = ReservationSpec;
  static const Fields<R> table{
      required(text_field("machine", &R::machine, "Catalog name.", "a3-highgpu-8g")),
      required(number_field("count", &R::count, whole(1, kMostNodes), "Machines reserved.", "4")),
      field<R>(
          "from", Form{Form::Kind::date},
          [](Reader& r, const YamlNode& n, R& t) { t.from = r.date(n).value_or(""); },
          "First day: its machines are not there before.", "2026-12-05"),
      field<R>(
          "until", Form{Form::Kind::date},
          [](Reader& r, const YamlNode& n, R& t) { t.until = r.date(n).value_or(""); }, "Last day.",
          "2027-06-30"),
      required(field<R>(
          "price", Form{Form::Kind::price},
          [](Reader& r, const YamlNode& n, R& t) { t.price = r.price(n).value_or(MoneyText{}); },
          "Of one machine.", "44 USD/h")),
      boolean_field(
          "whole", &R::whole,
          "All of it is paid, used or not (a capacity block, a commitment): needs 'until'.",
          "true"),
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
      if (const auto* price = reserved->value.entries[i].value.find("price"))
        check_currency(reader, price->value.at, "the price", prices.reserved[i].price, &prices);
}

}  // namespace reckon
