#include "sim/scenario/pricing.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/chrono.h>
#include <fmt/format.h>

namespace reckon::planning {
namespace {

constexpr int kOldPriceDays = 180;

/// The price of one item for an hour: whose, and as of when.
struct Price {
  UsdPerSecond rate{};
  std::string date;  // "" for the user's own
  std::string source, item;
};

struct Book {
  Draft& draft;
  std::map<std::string, UsdPerSecond> own;             // by canonical item name: prices.rates
  std::map<std::string, std::set<std::string>> dated;  // date -> items priced by it
};

constexpr std::string_view kOwnPrices = "scenario prices";

std::string canonical_item(const Draft& draft, const std::string& name) {
  if (const Machine* m = draft.catalog.find_machine(draft.plan.provider, name)) return m->name;
  if (const Accelerator* a = draft.catalog.find_accelerator(name)) return a->name;
  if (const TpuSlice* s = draft.catalog.find_slice(name)) return s->name;
  if (const Storage* s = draft.catalog.find_storage(name)) return s->name;
  return "";
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
  if (const auto own = book.own.find(item); own != book.own.end())
    return Price{own->second, "", std::string(kOwnPrices), item};
  const Plan& plan = draft.plan;
  const Offering* offering =
      draft.catalog.find_offering(plan.provider, plan.region, plan.zone, item, covers, capacity);
  if (offering == nullptr) return std::nullopt;
  const auto& fact = capacity == CapacityType::spot ? offering->spot : offering->on_demand;
  if (!fact) return std::nullopt;
  const double discount =
      draft.scenario().prices ? draft.scenario().prices->discount.value_or(0) : 0;
  return Price{fact->value * ((1 - discount) / offering->count), offering->date,
               draft.catalog.sources.at(std::size_t(fact->source)).id, item};
}

void unknown_price(Draft& draft, PlannedPool& pool, const std::string& item) {
  pool.price = NodePrice{.known = false};
  const std::string capacity = pool.pricing == CapacityType::spot ? "spot" : "on-demand";
  draft.warn(fmt::format(
      "no {} price of {} in {} is known: the cost cannot be said (prices.rates takes yours)",
      capacity, item, draft.plan.region.empty() ? "this place" : draft.plan.region));
}

void combine(Book& book, PlannedPool& pool, const Price& machine,
             const std::optional<Price>& accelerator, int count) {
  const auto note = [&](const Price& used) {
    if (!used.date.empty()) book.dated[used.date].insert(used.item);
  };
  note(machine);
  if (accelerator) note(*accelerator);
  NodePrice& price = pool.price;
  price.known = true;
  price.machine = to_hourly_rate(machine.rate);
  price.as_of = machine.date;
  price.source = machine.source;
  if (!accelerator) return;
  price.accelerators = to_hourly_rate(accelerator->rate * double(count));
  if (!accelerator->date.empty() && (price.as_of.empty() || accelerator->date < price.as_of))
    price.as_of = accelerator->date;
  if (accelerator->source != machine.source) price.source += ", " + accelerator->source;
}

void price_inline(Book& book, PlannedPool& pool, const MachineInline& machine) {
  Draft& draft = book.draft;
  if (!machine.price)
    return unknown_price(draft, pool, fmt::format("the machine of pool '{}'", pool.name));
  const Parsed<UsdPerSecond> rate = to_usd_rate(*machine.price, draft.scenario().prices);
  if (!rate) {
    draft.error(draft.path(pool, "machine.price"), rate.error(),
                "prices: {currency: EUR, usd_rate: 0.92}");
    return;
  }
  combine(book, pool, Price{*rate, "", std::string(kOwnPrices), pool.name}, std::nullopt, 0);
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
    if (!price) return unknown_price(draft, pool, pool.slice->name);
    combine(book, pool, Price{UsdPerSecond{}, price->date, price->source, price->item}, price, 1);
    return;
  }
  const std::optional<Price> vm =
      find_price(book, pool.machine.name, Covers::machine, pool.pricing);
  if (!pool.accelerator) {
    if (!vm) return unknown_price(draft, pool, pool.machine.name);
    return combine(book, pool, *vm, std::nullopt, 0);
  }
  const auto gpu = find_price(book, pool.accelerator->name, Covers::accelerator, pool.pricing);
  const bool built_in = !pool.machine.accelerator.empty();
  const auto whole = built_in ? find_price(book, pool.machine.name,
                                           Covers::machine_with_accelerators, pool.pricing)
                              : std::nullopt;
  if (whole && prefer_whole(*whole, vm, gpu)) return combine(book, pool, *whole, std::nullopt, 0);
  if (!vm) return unknown_price(draft, pool, pool.machine.name);
  if (!gpu) return unknown_price(draft, pool, pool.accelerator->name);
  combine(book, pool, *vm, gpu, pool.accelerators_per_node);
}

void price_storage(Book& book) {
  Plan& plan = book.draft.plan;
  if (plan.jobs.empty() || plan.jobs.front().checkpoint.storage.name.empty()) return;
  const auto price = find_price(book, plan.jobs.front().checkpoint.storage.name,
                                Offering::Covers::storage, CapacityType::on_demand);
  if (!price) return;
  plan.storage_per_gb = to_hourly_rate(price->rate);
  if (!price->date.empty()) book.dated[price->date].insert(price->item);
}

std::string list(const std::set<std::string>& items) {
  return join(std::vector<std::string>(items.begin(), items.end()));
}

/// The day on which the run is thought to start: its own, else that of the catalog's newest price.
std::string reference_date(const Draft& draft) {
  if (draft.plan.start)
    return fmt::format("{:%Y-%m-%d}", fmt::gmtime(draft.plan.start->time_since_epoch().count()));
  std::string newest;
  for (const Offering& o : draft.catalog.offerings) newest = std::max(newest, o.date);
  return newest;
}

void warn_of_old_prices(Book& book) {
  const std::string today = reference_date(book.draft);
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

Parsed<UsdPerSecond> to_usd_rate(const MoneyText& money, const std::optional<PricesSpec>& prices) {
  if (money.currency == "USD") return UsdPerSecond{money.amount};
  const bool stated = prices && prices->currency == money.currency;
  if (stated && prices->usd_rate && *prices->usd_rate > 0)
    return UsdPerSecond{money.amount / *prices->usd_rate};
  return tl::unexpected(fmt::format(
      "the price is in {} and the scenario does not say what a USD costs in it", money.currency));
}

std::optional<int> days_between(std::string_view from, std::string_view to) {
  const auto day = [](std::string_view text) -> std::optional<std::chrono::sys_days> {
    std::array<int, 3> part{0, 1, 1};  // "2025-07" is its first day
    std::size_t at = 0;
    for (int& p : part) {
      const std::size_t dash = std::min(text.find('-', at), text.size());
      const Parsed<std::int64_t> number = parse_integer(text.substr(at, dash - at));
      if (!number) return std::nullopt;
      p = static_cast<int>(*number);
      if (dash == text.size()) break;
      at = dash + 1;
    }
    const std::chrono::year_month_day date{std::chrono::year{part[0]},
                                           std::chrono::month{static_cast<unsigned>(part[1])},
                                           std::chrono::day{static_cast<unsigned>(part[2])}};
    if (!date.ok()) return std::nullopt;
    return std::chrono::sys_days{date};
  };
  const auto first = day(from), second = day(to);
  if (!first || !second) return std::nullopt;
  return static_cast<int>((*second - *first).count());
}

void price_pools(Draft& draft) {
  Book book{draft, {}, {}};
  read_own_rates(book);
  for (PlannedPool& pool : draft.plan.pools)
    if (draft.resolved[index(pool.id)]) price_pool(book, pool);
  price_storage(book);
  Plan& plan = draft.plan;
  for (const PlannedPool& pool : plan.pools)
    if (!pool.price.as_of.empty() &&
        (plan.prices_as_of.empty() || pool.price.as_of < plan.prices_as_of))
      plan.prices_as_of = pool.price.as_of;
  const bool priced = std::any_of(plan.pools.begin(), plan.pools.end(),
                                  [](const PlannedPool& p) { return !p.price.as_of.empty(); });
  if (priced && (plan.service == Service::ai_platform || plan.service == Service::vertex))
    draft.warn(fmt::format("prices are those of Compute Engine; the catalog has none of {}'s own",
                           to_text(plan.service)));
  warn_of_old_prices(book);
}

}  // namespace reckon::planning
