#include "report/prices.h"

#include <fmt/format.h>

#include "report/table.h"
#include "report/text.h"
#include "sim/base/printed_currency.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr int kPurchaseWidth = 110;

std::string amount_of(double usd) { return fmt::format("{:.2f}", in_printed_currency(usd)); }

std::string how_sure(const PriceForecast& p) {
  std::string text = p.as_of;
  if (p.certain) return text.empty() ? "certain: yours" : text + ", certain";
  const std::string source = p.source == "user" ? "as you say" : p.source;
  return text + (text.empty() || source.empty() ? "" : ", ") + source;
}

}  // namespace

std::string hour_range(const PriceForecast& p) {
  const std::string& code = printed_currency().code;
  if (p.certain || p.low == p.high) return fmt::format("{} {}/h", amount_of(p.usd_per_hour), code);
  return fmt::format("{} {}/h ({} .. {})", amount_of(p.usd_per_hour), code, amount_of(p.low),
                     amount_of(p.high));
}

std::string price_lines(const Forecast& f) {
  Columns rows(Columns::Kind::facts);
  for (const PriceForecast& p : f.prices) rows.row({p.what, hour_range(p), how_sure(p)});
  std::string out;
  if (!f.prices.empty())
    out = "  prices of a node (median, 5th .. 95th percentile)\n" + rows.text();
  for (const PurchaseForecast& p : f.purchases)
    if (const std::string text = text_of(p); !text.empty() && !is_warned_of(p))
      for (const std::string& line : wrap(text, kPurchaseWidth)) out += "  " + line + "\n";
  return out;
}

std::string rank_turn_text(const Forecast& cheaper, const Forecast& other) {
  const auto turn = rank_turn(cheaper, other);
  if (!turn) return "";
  const std::string chance =
      turn->price.certain ? std::string("a certain price")
                          : fmt::format("{} with {} probability", turn->dearer ? "higher" : "lower",
                                        probability_text(turn->chance, cheaper.replications));
  return fmt::format("as long as an hour of {} costs {} {} {} (now {}; {})", turn->price.what,
                     turn->dearer ? "under" : "over", amount_of(turn->usd_per_hour),
                     printed_currency().code, amount_of(turn->price.usd_per_hour), chance);
}

std::string energy_text(const Forecast& f) {
  return f.energy ? energy_range(f.energy->joules) : "unknown";
}

std::string co2_text(const Forecast& f) {
  return f.energy && f.energy->co2_grams ? mass_range(*f.energy->co2_grams) : "unknown";
}

std::string power_note(const Forecast& f) {
  if (!f.energy) return "";
  std::string text =
      fmt::format("{} a node, PUE {:.2f}",
                  f.energy->watts >= 1000 ? fmt::format("{:.1f} kW", f.energy->watts / 1000)
                                          : fmt::format("{:.0f} W", f.energy->watts),
                  f.energy->pue);
  if (f.energy->grams_per_kwh)
    text +=
        fmt::format(", {:.0f} g CO2 a kWh ({})", *f.energy->grams_per_kwh, f.energy->grid_source);
  else
    text += ", the region's grid is not known";
  return text;
}

}  // namespace reckon
