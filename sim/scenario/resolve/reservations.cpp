#include <algorithm>
#include <chrono>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "sim/scenario/resolve/price_book.h"

// Machines that the user holds: how many, from when until when, at which price.
namespace reckon::planning {
namespace {

/// Seconds from the start of the run to the beginning of a day, negative before it; nullopt with an
/// error where the scenario has no start.
std::optional<Seconds> begin_of(Draft& draft, const std::string& path, const std::string& day) {
  if (!draft.plan.start) {
    draft.error(path, "a reservation with a date needs the day on which the run starts",
                "start: 2026-12-01T08:00:00Z, or leave 'from' and 'until' out");
    return std::nullopt;
  }
  const std::string today =
      fmt::format("{:%Y-%m-%d}", fmt::gmtime(draft.plan.start->time_since_epoch().count()));
  const auto begun = draft.plan.start->time_since_epoch() % std::chrono::hours(24);
  return Seconds(days_between(today, day).value_or(0) * 86400.0 - double(begun.count()));
}

/// When the reservation holds; false: an error was reported.
bool read_term(Draft& draft, const ReservationSpec& spec, const std::string& path,
               PlannedReservation& made) {
  if (!spec.from.empty()) {
    const auto from = begin_of(draft, path + ".from", spec.from);
    if (!from) return false;
    made.from = std::max(Seconds{0}, *from);
  }
  if (!spec.until.empty()) {
    const auto last = begin_of(draft, path + ".until", spec.until);
    if (!last) return false;
    made.until = std::max(Seconds{0}, *last + Seconds{86400});  // the last day counts
  }
  if (made.until && *made.until <= made.from && !spec.from.empty()) {
    draft.error(path + ".until", fmt::format("the reservation ends on {}, before it begins on {}",
                                             spec.until, spec.from));
    return false;
  }
  made.whole = spec.whole;
  if (made.whole && !made.until) {
    draft.error(path + ".whole", "what is paid whole needs its last day",
                "until: 2026-12-18, or leave 'whole' out");
    return false;
  }
  return true;
}

/// Deals the reserved machines out to the pools of that machine, in their order. Spot nodes are not
/// covered.
void reserve(Book& book, const ReservationSpec& spec, const std::string& path) {
  Draft& draft = book.draft;
  const Parsed<UsdPerSecond> rate = to_usd_rate(spec.price, draft.scenario().prices);
  if (!rate)
    return draft.error(path + ".price", rate.error(), "prices: {currency: EUR, usd_rate: 0.92}");
  if (!check_hour(draft, path + ".price", "a reserved machine", *rate)) return;
  PlannedReservation made;
  made.price = to_hourly_rate(*rate);
  if (!read_term(draft, spec, path, made)) return;
  const std::string item = canonical_item(draft, spec.machine);
  int left = spec.count;
  bool used = false;
  for (PlannedPool& pool : draft.plan.pools) {
    if (!draft.resolved[index(pool.id)] || pool.pricing == CapacityType::spot) continue;
    // Karpenter launches into a reservation where a NodePool asks for that capacity type.
    if (pool.node_pool && pool.pricing != CapacityType::reserved) continue;
    const std::string& name = pool.slice ? pool.slice->name : pool.machine.name;
    if (name != (item.empty() ? spec.machine : item)) continue;
    used = true;
    if (pool.reservation) {
      draft.error(path, fmt::format("pool '{}' has a reservation already", pool.name),
                  "one reservation for each machine");
      return;
    }
    const int nodes = std::min(left, pool.nodes_max);
    left -= nodes;
    made.nodes = nodes;
    if (nodes > 0) pool.reservation = made;
  }
  if (!used)
    draft.warn(fmt::format("the reservation of {} is not used: no pool that is not spot has it",
                           spec.machine));
}

}  // namespace

void apply_reservations(Book& book) {
  Draft& draft = book.draft;
  const auto& prices = draft.scenario().prices;
  if (prices)
    for (std::size_t i = 0; i < prices->reserved.size(); ++i)
      reserve(book, prices->reserved[i], fmt::format("prices.reserved.{}", i));
  for (PlannedPool& pool : draft.plan.pools) {
    if (!draft.resolved[index(pool.id)]) continue;
    if (pool.pricing == CapacityType::reserved && !pool.reservation && draft.errors.empty())
      draft.error(draft.path(pool, "pricing"),
                  fmt::format("no reservation covers pool '{}'", pool.name),
                  fmt::format("prices: {{reserved: [{{machine: {}, count: {}, price: ...}}]}}",
                              pool.machine.name, pool.nodes_max));
    const bool covers_all =
        pool.reservation && !pool.reservation->until && pool.reservation->nodes >= pool.nodes_max;
    if (covers_all)
      pool.price = NodePrice{true, pool.reservation->price, {}, "", std::string(kOwnPrices)};
  }
}

}  // namespace reckon::planning
