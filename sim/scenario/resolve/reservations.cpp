#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "sim/base/unit_text.h"
#include "sim/catalog/catalog_lookup.h"
#include "sim/catalog/operations_keys.h"
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

/// A number of the provider's blocks; nullopt: the catalog has none.
std::optional<double> of_block(const Draft& draft, std::string (*key)(const Provider&)) {
  const Fact<double>* found = draft.catalog.operations.find(key(draft.plan.provider));
  return found != nullptr ? std::optional(found->value) : std::nullopt;
}

/// A block as the provider sells them: its length in steps, how many machines, when they go.
bool read_block(Draft& draft, const ReservationSpec& spec, const std::string& path,
                PlannedReservation& made) {
  made.ends_before = Seconds{of_block(draft, keys::block_ends_before).value_or(0)};
  const double length = (*made.until - made.from).count();
  const std::string where = path + (spec.length ? ".length" : ".until");
  const std::string& name = draft.plan.provider.name;
  const auto step = of_block(draft, keys::block_step);
  const auto long_step = of_block(draft, keys::block_long_step);
  const auto long_from = of_block(draft, keys::block_long_from);
  const auto longest = of_block(draft, keys::block_longest);
  const auto text = [](double seconds) { return format_duration(Seconds{seconds}); };
  bool good = true;
  if (longest && length > *longest) {
    draft.error(where, fmt::format("{} sells no block of {}", name, text(length)),
                fmt::format("at most {}", text(*longest)));
    good = false;
  } else if (step) {
    const bool is_long = long_step && long_from && length > *long_from;
    const double unit = is_long ? *long_step : *step;
    const double whole = std::ceil(length / unit) * unit;
    if (whole != length) {
      draft.error(where, fmt::format("{} sells no block of {}", name, text(length)),
                  fmt::format("in steps of {}{}: {}", text(unit),
                              is_long ? " beyond " + text(*long_from) : "", text(whole)));
      good = false;
    }
  }
  if (const auto most = of_block(draft, keys::block_most); most && spec.count > *most) {
    draft.error(path + ".count", fmt::format("{} sells no block of {} machines", name, spec.count),
                fmt::format("at most {:.0f}", *most));
    good = false;
  }
  return good;
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
  if (spec.length) made.until = made.from + *spec.length;
  if (made.until && *made.until <= made.from && !spec.from.empty()) {
    draft.error(path + ".until", fmt::format("the reservation ends on {}, before it begins on {}",
                                             spec.until, spec.from));
    return false;
  }
  made.kind = spec.kind;
  made.term = spec.term;
  made.whole = spec.whole || spec.kind == ReservationKind::block;
  if (spec.kind == ReservationKind::commitment && made.whole) made.until = spec.term;
  if (spec.kind == ReservationKind::block && !read_block(draft, spec, path, made)) return false;
  if (made.whole && !made.until) {
    draft.error(path + ".whole", "what is paid whole needs its last day",
                "until: 2026-12-18, or leave 'whole' out");
    return false;
  }
  return true;
}

/// What a node of the pool costs without a reservation; nullopt: not known.
std::optional<HourlyRate> list_price(const PlannedPool& pool) {
  if (!pool.price.known) return std::nullopt;
  return HourlyRate{pool.price.machine.nano_usd_per_hour +
                    pool.price.accelerators.nano_usd_per_hour};
}

/// Of one machine of the pool: as the user says, or so much off its list price. nullopt: an error
/// was reported.
std::optional<HourlyRate> price_of(Draft& draft, const ReservationSpec& spec,
                                   const PlannedPool& pool, const std::string& path) {
  if (spec.discount) {
    const auto list = list_price(pool);
    if (list) return scaled(*list, 1 - *spec.discount);
    draft.error(path + ".discount",
                fmt::format("the on-demand price of {} is not known", spec.machine),
                "price: 44 USD/h, or the on-demand price under prices.rates");
    return std::nullopt;
  }
  if (!spec.price) return HourlyRate{};  // paid already
  const Parsed<UsdPerSecond> rate = to_usd_rate(*spec.price, draft.scenario().prices);
  if (!rate) {
    draft.error(path + ".price", rate.error(), "prices: {currency: EUR, usd_rate: 0.92}");
    return std::nullopt;
  }
  if (!check_hour(draft, path + ".price", "a reserved machine", *rate)) return std::nullopt;
  return to_hourly_rate(*rate);
}

/// May the pool's nodes be of it? Spot nodes are not covered. A commitment holds no machine, so
/// what has reserved machines only needs one of another kind.
bool covers(const ReservationSpec& spec, const PlannedPool& pool) {
  if (pool.pricing == CapacityType::spot) return false;
  if (spec.kind == ReservationKind::commitment) return pool.pricing == CapacityType::on_demand;
  // Karpenter launches into a reservation where a NodePool asks for that capacity type.
  return !pool.node_pool || pool.pricing == CapacityType::reserved;
}

/// Deals the reserved machines out to the pools of that machine, in their order.
void reserve(Book& book, const ReservationSpec& spec, const std::string& path) {
  Draft& draft = book.draft;
  PlannedReservation made;
  if (!read_term(draft, spec, path, made)) return;
  const std::string item = canonical_item(draft, spec.machine);
  int left = spec.count;
  bool used = false;
  for (PlannedPool& pool : draft.plan.pools) {
    if (!draft.resolved[index(pool.id)] || !covers(spec, pool)) continue;
    const std::string& name = pool.slice ? pool.slice->name : pool.machine.name;
    if (name != (item.empty() ? spec.machine : item)) continue;
    used = true;
    if (pool.reservation) {
      draft.error(path, fmt::format("pool '{}' has a reservation already", pool.name),
                  "one reservation for each machine");
      return;
    }
    const auto price = price_of(draft, spec, pool, path);
    if (!price) return;
    made.price = *price;
    made.list = list_price(pool);
    const int nodes = std::min(left, pool.nodes_max);
    left -= nodes;
    made.nodes = nodes;
    if (nodes > 0) pool.reservation = made;
  }
  if (!used)
    draft.warn(
        fmt::format("the reservation of {} is not used: no pool that {} has it", spec.machine,
                    spec.kind == ReservationKind::commitment ? "is on demand" : "is not spot"));
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

void apply_minimum_rentals(Book& book) {
  Draft& draft = book.draft;
  const auto& prices = draft.scenario().prices;
  for (PlannedPool& pool : draft.plan.pools) pool.minimum_rental = pool.machine.minimum_rental;
  if (!prices) return;
  for (const auto& [machine, time] : prices->minimum_rental) {
    const std::string item = canonical_item(draft, machine);
    bool used = false;
    for (PlannedPool& pool : draft.plan.pools) {
      const std::string& name = pool.slice ? pool.slice->name : pool.machine.name;
      if (name != (item.empty() ? machine : item)) continue;
      pool.minimum_rental = time;
      used = true;
    }
    if (!used)
      draft.warn(fmt::format("the minimum rental of {} is not used: no pool has it", machine));
  }
}

namespace {

/// The user's price of a GB, or the provider's.
Fact<double> price_of_gb(Draft& draft, const std::optional<MoneyText>& own, const std::string& path,
                         const std::string& key) {
  if (own) {
    const Parsed<UsdPerSecond> usd = to_usd_rate(*own, draft.scenario().prices);
    if (usd) return Fact<double>{usd->v};
    draft.error(path, usd.error(), "prices: {currency: EUR, usd_rate: 0.92}");
    return {};
  }
  if (const Fact<double>* found = draft.catalog.operations.find(key)) return *found;
  draft.error(path, fmt::format("no price of data is known of {}", draft.plan.provider.name),
              "example: 0.02 USD/GB");
  return {};
}

}  // namespace

void resolve_egress(Draft& draft) {
  const auto& prices = draft.scenario().prices;
  if (!prices || !prices->egress) return;
  const EgressSpec& spec = *prices->egress;
  const Plan& plan = draft.plan;
  EgressRules rules;
  const auto elsewhere = [&](const std::string& region, const char* key) {
    if (region.empty() || region == plan.region) return false;
    const auto& regions = draft.catalog.regions;
    std::vector<std::string> names;
    for (const Region& r : regions)
      if (r.provider == plan.provider) names.push_back(r.name);
    if (!names.empty() && std::ranges::find(names, region) == names.end())
      draft.error(fmt::format("prices.egress.{}", key),
                  fmt::format("unknown region '{}' of {}{}", region, plan.provider.name,
                              did_you_mean(region, names)),
                  fmt::format("regions: {}", join(names, ", ")));
    return true;
  };
  rules.checkpoints = elsewhere(spec.checkpoints_in, "checkpoints_in");
  rules.data = elsewhere(spec.data_in, "data_in");
  rules.zones = spec.zones;
  if (rules.checkpoints || rules.data)
    rules.between_regions =
        price_of_gb(draft, spec.between_regions, "prices.egress.between_regions",
                    keys::egress_between_regions(plan.provider));
  if (rules.zones > 1)
    rules.between_zones = price_of_gb(draft, spec.between_zones, "prices.egress.between_zones",
                                      keys::egress_between_zones(plan.provider));
  draft.plan.egress = rules;
}

}  // namespace reckon::planning
