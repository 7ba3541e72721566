#include "sim/forecast/purchases.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

/// For which all its machines are paid, used or not; nullopt: what is used of them is.
std::optional<Seconds> paid_time(const PlannedReservation& held) {
  if (held.kind == ReservationKind::commitment) return held.term;
  if (held.whole && held.until) return *held.until - held.from;
  return std::nullopt;
}

std::string machines_text(const PurchaseForecast& p) {
  return fmt::format("{} x {}", p.nodes, p.machine);
}

std::string used_text(const PurchaseForecast& p) {
  return fmt::format("this run uses {} of it ({})", format_percent(p.used.value_or(0)),
                     format_usd(Usd{p.used_usd}));
}

}  // namespace

std::vector<PurchaseForecast> purchases_of(const Plan& plan, const std::vector<LifeResult>& lives) {
  std::vector<PurchaseForecast> found;
  for (std::size_t p = 0; p < plan.pools.size(); ++p) {
    const PlannedPool& pool = plan.pools[p];
    if (!pool.reservation || lives.empty()) continue;
    const PlannedReservation& held = *pool.reservation;
    PurchaseForecast made;
    made.pool = pool.name;
    made.machine = pool.slice ? pool.slice->name : pool.machine.name;
    made.kind = held.kind;
    made.nodes = held.nodes;
    made.usd_per_hour = double(held.price.nano_usd_per_hour) * 1e-9;
    double hours = 0, outlived = 0;
    for (const LifeResult& life : lives) {
      hours += to_seconds(life.reserved_time[p]).count() / 3600;
      outlived += life.outlived[p] ? 1 : 0;
    }
    hours /= double(lives.size());
    made.used_usd = hours * made.usd_per_hour;
    made.time = paid_time(held);
    if (made.time && made.time->count() > 0) {
      const double all = made.time->count() / 3600 * held.nodes;
      made.total_usd = all * made.usd_per_hour;
      made.used = hours / all;
    }
    if (held.kind == ReservationKind::commitment && held.list && held.list->nano_usd_per_hour > 0)
      made.break_even = double(held.price.nano_usd_per_hour) / double(held.list->nano_usd_per_hour);
    if (held.goes()) made.outlived = outlived / double(lives.size());
    found.push_back(std::move(made));
  }
  return found;
}

std::string text_of(const PurchaseForecast& p) {
  std::string text;
  if (p.kind == ReservationKind::commitment && p.total_usd) {
    text = fmt::format("the commitment to {} for {} costs {} whether used or not; {}",
                       machines_text(p), format_duration(*p.time), format_usd(Usd{*p.total_usd}),
                       used_text(p));
    if (p.break_even && *p.break_even < 1)
      text += fmt::format("; on demand is cheaper unless {} of the term is used",
                          format_percent(*p.break_even));
    else if (p.break_even)
      text += "; on demand never costs more";
  } else if (p.total_usd) {
    text = fmt::format("{} of {} for {} costs {} whether used or not; {}",
                       p.kind == ReservationKind::block ? "the block" : "the reservation",
                       machines_text(p), format_duration(*p.time), format_usd(Usd{*p.total_usd}),
                       used_text(p));
  } else if (p.kind == ReservationKind::owned && p.used_usd == 0) {
    text = fmt::format("the private reservation of {} is paid already and costs this run nothing",
                       machines_text(p));
  }
  if (p.outlived > 0)
    text += fmt::format("{}the run outlives the block of pool '{}' with {} probability",
                        text.empty() ? "" : "; ", p.pool, format_percent(p.outlived));
  return text;
}

bool is_warned_of(const PurchaseForecast& p) {
  return (p.kind == ReservationKind::commitment || p.outlived > 0) && !text_of(p).empty();
}

}  // namespace reckon
