#include "sim/scenario/resolve/pricing.h"

#include "sim/catalog/catalog_lookup.h"
#include "sim/catalog/operations_keys.h"
#include "sim/scenario/resolve/price_book.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace reckon::planning {
namespace {

constexpr int kOldPriceDays = 180;

/// The day on which the run is thought to start: its own, else that of the catalog's newest price.
std::string reference_date(const Draft& draft) {
  if (draft.plan.start)
    return fmt::format("{:%Y-%m-%d}", fmt::gmtime(draft.plan.start->time_since_epoch().count()));
  std::string newest;
  for (const Offering& o : draft.catalog.offerings) newest = std::max(newest, o.date);
  return newest;
}

/// Without a start: runs are planned some time after the catalog's newest price.
double years_after(const Draft& draft) {
  if (draft.plan.start) return 0;
  return draft.catalog.operations.at(keys::kLeastPriceAge).value / (365 * 86400.0);
}

std::vector<std::string> priced_names(const Draft& draft) {
  std::vector<std::string> names;
  for (const PlannedPool& pool : draft.plan.pools) {
    if (!pool.slice && !pool.machine.name.empty()) names.push_back(pool.machine.name);
    if (pool.slice)
      names.push_back(pool.slice->name);
    else if (pool.accelerator)
      names.push_back(pool.accelerator->name);
  }
  return names;
}

void read_own_rates(Book& book) {
  Draft& draft = book.draft;
  const auto& prices = draft.scenario().prices;
  if (!prices) return;
  for (const auto& [name, money] : prices->rates) {
    const std::string path = "prices.rates." + name;
    const std::string item = canonical_item(draft, name);
    const std::vector<std::string> names = priced_names(draft);
    if (item.empty()) {
      draft.error(
          path, fmt::format("unknown item '{}' in prices.rates{}", name, did_you_mean(name, names)),
          fmt::format("items of this cluster: {}", join(names, ", ")));
      continue;
    }
    const Parsed<UsdPerSecond> rate = to_usd_rate(money, prices);
    if (!rate)
      draft.error(path, rate.error(), "prices: {currency: EUR, usd_rate: 0.92, ...}");
    else
      book.own[item] = *rate;
  }
}

/// The user's price, else the catalog's newest that holds here; nullopt: none is known.
std::optional<Price> find_price(Book& book, const std::string& item, Offering::Covers covers,
                                CapacityType capacity) {
  Draft& draft = book.draft;
  const Plan& plan = draft.plan;
  const auto& prices = draft.scenario().prices;
  const bool stated = prices && prices->uncertainty;
  if (const auto own = book.own.find(item); own != book.own.end())
    return Price{own->second, "", std::string(kOwnPrices),
                 item,        {}, stated ? range_of(*prices->uncertainty) : PriceRange{}};
  // What is reserved but not covered by a reservation is bought on demand.
  if (capacity == CapacityType::reserved) capacity = CapacityType::on_demand;
  PriceQuestion question{plan.provider, plan.region, plan.zone, capacity,
                         prices && prices->suspect};
  const auto found = reckon::find_price(draft.catalog, question, item, covers);
  if (!found) return std::nullopt;
  PriceRange range = stated ? range_of(*prices->uncertainty)
                            : range_after(found->rate, capacity,
                                          book.later_years + age_years(found->date, book.day),
                                          draft.catalog.operations);
  if (!stated && capacity == CapacityType::spot) {
    question.capacity = CapacityType::on_demand;
    const auto list = reckon::find_price(draft.catalog, question, item, covers);
    if (list && found->rate.value.v > 0)
      range = capped(range, list->rate.value.v / found->rate.value.v);
  }
  const double discount = prices ? prices->discount.value_or(0) : 0;
  return Price{found->rate.value * (1 - discount),
               found->date,
               draft.catalog.sources.at(std::size_t(found->rate.source)).id,
               item,
               found->note,
               range};
}

/// Said at the end, unless a reservation covers the pool.
void unknown_price(Book& book, PlannedPool& pool, const std::string& item) {
  pool.price = NodePrice{.known = false};
  book.unknown.emplace_back(index(pool.id), item);
}

void unknown_price_warning(Draft& draft, std::size_t pool, const std::string& item) {
  const bool spot = draft.plan.pools[pool].pricing == CapacityType::spot;
  const std::string capacity = spot ? "spot" : "on-demand";
  draft.warn(fmt::format(
      "no {} price of {} in {} is known: the cost cannot be said (prices.rates takes yours)",
      capacity, item, draft.plan.region.empty() ? "this place" : draft.plan.region));
}

/// Of machine and accelerators together, which move together.
PriceSpread spread_of(const Book& book, const PlannedPool& pool, const Price& machine,
                      const std::optional<Price>& accelerator, int count) {
  const PriceRange range = accelerator ? sum_of(machine.range, machine.rate, accelerator->range,
                                                accelerator->rate * double(count))
                                       : machine.range;
  if (range.certain()) return {};
  const std::string& item = accelerator ? accelerator->item : machine.item;
  return {market_of(book.draft.plan, item, pool.pricing), range.low, range.high, range.source};
}

void combine(Book& book, PlannedPool& pool, const Price& machine,
             const std::optional<Price>& accelerator, int count) {
  UsdPerSecond whole = machine.rate;
  if (accelerator) whole = whole + accelerator->rate * double(count);
  if (!check_hour(book.draft, book.draft.path(pool), fmt::format("a node of pool '{}'", pool.name),
                  whole))
    return;
  const auto note = [&](const Price& used) {
    if (!used.date.empty()) book.dated[used.date].insert(used.item);
    if (!used.note.empty()) book.notes.insert(used.note);
  };
  note(machine);
  if (accelerator) note(*accelerator);
  NodePrice& price = pool.price;
  price.known = true;
  price.spread = spread_of(book, pool, machine, accelerator, count);
  price.machine = to_hourly_rate(machine.rate);
  price.as_of = machine.date;
  price.source = machine.source;
  if (!accelerator) return;
  price.accelerators = to_hourly_rate(accelerator->rate * double(count));
  if (!accelerator->date.empty() && (price.as_of.empty() || accelerator->date < price.as_of))
    price.as_of = accelerator->date;
  if (accelerator->source != machine.source) price.source += ", " + accelerator->source;
}

/// A machine of the user's own: rate = price, or purchase / amortised_over; plus power x tariff.
/// Power is paid as if the machine always drew it; what it costs while it stands idle is no job's.
void price_inline(Book& book, PlannedPool& pool, const MachineInline& machine) {
  Draft& draft = book.draft;
  if (!machine.price && !machine.purchase && !machine.tariff)
    return unknown_price(book, pool, fmt::format("the machine of pool '{}'", pool.name));
  UsdPerSecond rate{};
  const auto add = [&](const char* key, const std::optional<MoneyText>& money, double factor) {
    if (!money) return;
    const MoneyText part{money->amount * factor, money->currency};
    const Parsed<UsdPerSecond> usd = to_usd_rate(part, draft.scenario().prices);
    if (usd)
      rate = rate + *usd;
    else
      draft.error(draft.path(pool, fmt::format("machine.{}", key)), usd.error(),
                  "prices: {currency: EUR, usd_rate: 0.92}");
  };
  add("price", machine.price, 1);
  if (machine.amortised_over)
    add("purchase", machine.purchase, 1 / machine.amortised_over->count());
  add("tariff", machine.tariff, machine.power_watts);
  const auto& prices = draft.scenario().prices;
  const PriceRange range =
      prices && prices->uncertainty ? range_of(*prices->uncertainty) : PriceRange{};
  combine(book, pool, Price{rate, "", std::string(kOwnPrices), pool.name, {}, range}, std::nullopt,
          0);
}

/// A machine with accelerators built in has one price for all or two that add up, or both: the
/// user's own counts before the catalog's, and of the catalog's the newer.
bool prefer_whole(const Price& whole, const std::optional<Price>& machine,
                  const std::optional<Price>& accelerator) {
  if (!machine || !accelerator || whole.date.empty()) return true;
  if (accelerator->date.empty()) return false;
  return whole.date >= std::min(machine->date, accelerator->date);
}

void price_pool(Book& book, PlannedPool& pool) {
  Draft& draft = book.draft;
  if (const auto* given = std::get_if<MachineInline>(&draft.spec(pool).machine))
    return price_inline(book, pool, *given);
  using Covers = Offering::Covers;
  if (pool.slice) {
    const auto price = find_price(book, pool.slice->name, Covers::slice, pool.pricing);
    if (!price) return unknown_price(book, pool, pool.slice->name);
    combine(book, pool, Price{UsdPerSecond{}, price->date, price->source, price->item}, price, 1);
    return;
  }
  const std::optional<Price> vm =
      find_price(book, pool.machine.name, Covers::machine, pool.pricing);
  if (!pool.accelerator) {
    if (!vm) return unknown_price(book, pool, pool.machine.name);
    return combine(book, pool, *vm, std::nullopt, 0);
  }
  const auto gpu = find_price(book, pool.accelerator->name, Covers::accelerator, pool.pricing);
  const bool built_in = !pool.machine.accelerator.empty();
  const auto whole = built_in ? find_price(book, pool.machine.name,
                                           Covers::machine_with_accelerators, pool.pricing)
                              : std::nullopt;
  if (whole && prefer_whole(*whole, vm, gpu)) return combine(book, pool, *whole, std::nullopt, 0);
  if (!vm) return unknown_price(book, pool, pool.machine.name);
  if (!gpu) return unknown_price(book, pool, pool.accelerator->name);
  combine(book, pool, *vm, gpu, pool.accelerators_per_node);
}

void warn_of_unknown_prices(Book& book) {
  std::set<std::pair<std::string, CapacityType>> said;
  for (const auto& [pool, item] : book.unknown) {
    const PlannedPool& planned = book.draft.plan.pools[pool];
    if (!planned.price.known && said.emplace(item, planned.pricing).second)
      unknown_price_warning(book.draft, pool, item);
  }
}

/// A cost that cannot be said cannot be expected either.
void refuse_cost_expectations(Draft& draft) {
  const PlannedPool* unknown = nullptr;
  for (const PlannedPool& pool : draft.plan.pools)
    if (draft.resolved[index(pool.id)] && !pool.price.known && !unknown) unknown = &pool;
  if (!unknown) return;
  const auto& expect = draft.scenario().expect;
  for (std::size_t i = 0; i < expect.size(); ++i)
    if (expect[i].metric == Metric::cost)
      draft.error(fmt::format("expect.{}", i),
                  fmt::format("'{}' cannot be said: the price of pool '{}' is not known",
                              expect[i].text, unknown->name),
                  "give your price under prices.rates, or leave the expectation out");
}

void price_storage(Book& book) {
  Plan& plan = book.draft.plan;
  if (plan.jobs.empty() || plan.only_job().checkpoint.storage.name.empty()) return;
  const auto price = find_price(book, plan.only_job().checkpoint.storage.name,
                                Offering::Covers::storage, CapacityType::on_demand);
  if (!price) return;
  plan.storage_per_gb = to_hourly_rate(price->rate);
  if (!price->date.empty()) book.dated[price->date].insert(price->item);
}

std::string list(const std::set<std::string>& items) {
  return join(std::vector<std::string>(items.begin(), items.end()));
}

void warn_of_old_prices(Book& book) {
  const std::string& today = book.day;
  std::vector<std::string> old;
  for (const auto& [date, items] : book.dated) {
    const std::optional<int> age = days_between(date, today);
    if (!age)
      book.draft.warn(fmt::format("the price of {} has no date", list(items)));
    else if (*age > kOldPriceDays)
      old.push_back(fmt::format("{} of {}", list(items), date));
  }
  if (!old.empty())
    book.draft.warn(
        fmt::format("prices more than {} days older than {} {}: {}", kOldPriceDays,
                    book.draft.plan.start ? "the start," : "the catalog's newest price,", today,
                    join(old, "; ")));
}

}  // namespace

std::string canonical_item(const Draft& draft, const std::string& name) {
  if (const auto m = resolve_machine(draft.catalog, draft.plan.provider, name))
    return m->machine.name;
  if (const Accelerator* a = draft.catalog.find_accelerator(name)) return a->name;
  if (const TpuSlice* s = draft.catalog.find_slice(name)) return s->name;
  if (const Storage* s = draft.catalog.find_storage(name)) return s->name;
  return "";
}

/// Reported unless it can be counted on 65,536 nodes for years. The reader bounds what is written;
/// an exchange rate, a purchase written off in a second and many accelerators make more of it.
bool check_hour(Draft& draft, const std::string& path, std::string_view what, UsdPerSecond rate) {
  constexpr double kDearest = 1e6;  // USD, as the reader's of one price
  if (rate.v * 3600 <= kDearest) return true;
  draft.error(path,
              fmt::format("{} costs {:.3g} USD an hour, but must be at most 1,000,000", what,
                          rate.v * 3600),
              "check the price, its unit of time, and prices.usd_rate");
  return false;
}

Parsed<UsdPerSecond> to_usd_rate(const MoneyText& money, const std::optional<PricesSpec>& prices) {
  if (money.currency == "USD") return UsdPerSecond{money.amount};
  const bool stated = prices && prices->currency == money.currency;
  if (stated && prices->usd_rate && *prices->usd_rate > 0)
    return UsdPerSecond{money.amount / *prices->usd_rate};
  return tl::unexpected(fmt::format(
      "the price is in {} and the scenario does not say what a USD costs in it", money.currency));
}

void price_pools(Draft& draft) {
  Book book{draft, {}, {}, {}, {}, reference_date(draft), years_after(draft)};
  read_own_rates(book);
  for (PlannedPool& pool : draft.plan.pools)
    if (draft.resolved[index(pool.id)]) {
      price_pool(book, pool);
      price_flex_start(draft, pool);
    }
  apply_reservations(book);
  apply_minimum_rentals(book);
  resolve_egress(draft);
  check_usd_rate(book);
  warn_of_unknown_prices(book);
  refuse_cost_expectations(draft);
  price_storage(book);
  Plan& plan = draft.plan;
  if (const auto& prices = draft.scenario().prices; prices && prices->usd_rate)
    plan.currency = {prices->currency, *prices->usd_rate};
  for (const PlannedPool& pool : plan.pools)
    if (!pool.price.as_of.empty() &&
        (plan.prices_as_of.empty() || pool.price.as_of < plan.prices_as_of))
      plan.prices_as_of = pool.price.as_of;
  const bool priced = std::any_of(plan.pools.begin(), plan.pools.end(),
                                  [](const PlannedPool& p) { return !p.price.as_of.empty(); });
  if (priced && !plan.service.prices_of.empty())
    draft.warn(fmt::format("prices are those of {}; the catalog has none of {}'s own",
                           plan.service.prices_of, to_text(plan.service.id)));
  for (const std::string& note : book.notes) draft.warn(note);
  warn_of_old_prices(book);
}

void reprice(Plan& plan, const ScenarioFile& file, const Catalog& catalog) {
  Draft draft{.file = file, .catalog = catalog};
  draft.plan = std::move(plan);
  draft.resolved.assign(draft.plan.pools.size(), true);
  draft.plan.prices_as_of.clear();
  draft.plan.storage_per_gb = {};
  for (PlannedPool& pool : draft.plan.pools) {
    pool.price = {};
    pool.reservation.reset();
  }
  price_pools(draft);
  plan = std::move(draft.plan);
}

}  // namespace reckon::planning
