#include "sim/catalog/catalog_lookup.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/catalog/files/text.h"

namespace reckon {
namespace {

using catalog_text::normalised;
using catalog_text::same_name;

constexpr double kOneGib = 1073741824.0, kOneMib = 1048576.0;

/// "24-98304" behind a prefix of the family; nullopt: not one of its names.
std::optional<std::pair<std::int64_t, std::int64_t>> custom_size(const CustomFamily& family,
                                                                 std::string_view name) {
  const std::string wanted = normalised(name);
  for (const std::string& prefix : family.prefixes) {
    const std::string start = normalised(prefix) + "_";
    if (!wanted.starts_with(start)) continue;
    const std::string_view rest = std::string_view(wanted).substr(start.size());
    const std::size_t split = rest.find('_');
    if (split == std::string_view::npos) continue;
    const auto vcpus = parse_integer(rest.substr(0, split));
    const auto memory = parse_integer(rest.substr(split + 1));
    if (vcpus && memory) return std::pair{*vcpus, *memory};
  }
  return std::nullopt;
}

Parsed<FoundMachine> custom_machine(const Catalog& catalog, const CustomFamily& family,
                                    std::int64_t vcpus, std::int64_t memory_mib) {
  if (vcpus < 1 || vcpus > family.vcpus_max || (vcpus > 1 && vcpus % 2 != 0))
    return tl::unexpected(fmt::format("{} vCPUs: a machine of {} has 1 or an even number up to {}",
                                      vcpus, family.name, family.vcpus_max));
  const double step = family.memory_step.v / kOneMib;
  const double least = double(vcpus) * family.memory_per_vcpu_min.value.v / kOneMib;
  const double most = double(vcpus) * family.memory_per_vcpu_max.value.v / kOneMib;
  if (std::fmod(double(memory_mib), step) != 0)
    return tl::unexpected(fmt::format(
        "{} MiB is not a multiple of {:g} MiB; near it are {:.0f} and {:.0f}", memory_mib, step,
        std::floor(double(memory_mib) / step) * step, std::ceil(double(memory_mib) / step) * step));
  if (double(memory_mib) < least || double(memory_mib) > most)
    return tl::unexpected(
        fmt::format("{} MiB for {} vCPUs: {} takes {:.0f} to {:.0f} MiB", memory_mib, vcpus,
                    family.name, std::ceil(least / step) * step, std::floor(most / step) * step));
  const Machine* like = nullptr;
  for (const Machine& machine : catalog.machines) {
    if (machine.provider != family.provider || !machine.name.starts_with(family.like)) continue;
    if (machine.vcpus <= vcpus && (!like || machine.vcpus > like->vcpus)) like = &machine;
  }
  if (!like) return tl::unexpected(fmt::format("no machine is like {}", family.name));
  FoundMachine found{*like, &family};
  found.machine.name = fmt::format("{}-{}-{}", family.prefixes.front(), vcpus, memory_mib);
  found.machine.vcpus = static_cast<int>(vcpus);
  found.machine.memory = Fact<Bytes>(Bytes(double(memory_mib) * kOneMib));
  return found;
}

/// How often `small` goes into `large`: a whole number of at least 2, or 0.
int whole_multiple(double large, double small) {
  if (small <= 0) return 0;
  const double times = large / small;
  return times >= 2 && std::abs(times - std::round(times)) < 1e-9 ? int(std::round(times)) : 0;
}

/// Whether the names differ in one number only: "Standard_NC6s_v3" and "Standard_NC12s_v3".
bool one_family(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  int differing = 0;
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i++] != b[j++]) return false;
      continue;
    }
    const std::size_t from = i, from_b = j;
    while (i < a.size() && digit(a[i])) ++i;
    while (j < b.size() && digit(b[j])) ++j;
    differing += a.substr(from, i - from) != b.substr(from_b, j - from_b) ? 1 : 0;
  }
  return i == a.size() && j == b.size() && differing == 1;
}

int times_larger(const Machine& large, const Machine& small) {
  if (large.provider != small.provider || large.accelerator != small.accelerator) return 0;
  const int times = whole_multiple(large.vcpus, small.vcpus);
  if (times == 0 || whole_multiple(large.memory.value.v, small.memory.value.v) != times) return 0;
  if (large.accelerator_count != times * small.accelerator_count) return 0;
  return one_family(large.name, small.name) ? times : 0;
}

Fact<UsdPerSecond> times(Fact<UsdPerSecond> price, double factor) {
  price.value = price.value * factor;
  price.low = price.low * factor;
  price.high = price.high * factor;
  return price;
}

class Prices {
 public:
  Prices(const Catalog& catalog, const PriceQuestion& question)
      : catalog_(catalog), question_(question) {}

  std::optional<FoundPrice> row(std::string_view item, Offering::Covers covers) const {
    const Offering* offering =
        catalog_.find_offering(question_.provider, question_.region, question_.zone, item, covers,
                               question_.capacity, question_.suspect);
    if (!offering) return std::nullopt;
    const bool spot = question_.capacity == CapacityType::spot;
    FoundPrice found{times(spot ? *offering->spot : *offering->on_demand, 1.0 / offering->count),
                     offering->date, ""};
    if (!spot && offering->suspect)
      found.note = fmt::format("the price of {} looks wrong and was asked for", item);
    return found;
  }

  std::optional<FoundPrice> custom(const FoundMachine& machine) const {
    const auto vcpu = row(machine.family->name, Offering::Covers::vcpu);
    const auto memory = row(machine.family->name, Offering::Covers::memory_gib);
    if (!vcpu || !memory) return std::nullopt;
    const double gib = machine.machine.memory.value.v / kOneGib;
    Fact<UsdPerSecond> sum = times(vcpu->rate, machine.machine.vcpus);
    const Fact<UsdPerSecond> rest = times(memory->rate, gib);
    sum.value = sum.value + rest.value;
    sum.low = sum.low + rest.low;
    sum.high = sum.high + rest.high;
    return FoundPrice{sum, std::min(vcpu->date, memory->date),
                      fmt::format("{} vCPUs and {:g} GiB of {}", machine.machine.vcpus, gib,
                                  machine.family->name)};
  }

  std::optional<FoundPrice> scaled(const Machine& wanted, Offering::Covers covers) const {
    const Machine* best = nullptr;
    int multiple = 0;
    std::optional<FoundPrice> price;
    for (const Machine& machine : catalog_.machines) {
      const int k = times_larger(wanted, machine);
      // The nearest size; the order of the rows says nothing.
      if (k == 0 || (best && (k > multiple || (k == multiple && machine.name > best->name))))
        continue;
      if (auto found = row(machine.name, covers)) {
        best = &machine;
        multiple = k;
        price = std::move(found);
      }
    }
    if (!best) return std::nullopt;
    price->rate = times(price->rate, multiple);
    price->note =
        fmt::format("no price of {} is known: {} x {}", wanted.name, multiple, best->name);
    return price;
  }

 private:
  const Catalog& catalog_;
  const PriceQuestion& question_;
};

/// What the limits allow a machine of this size; zones of their own come first.
std::vector<int> limited_counts(const Catalog& catalog, const Service& service,
                                const Machine& machine, const std::string& accelerator,
                                std::string_view zone) {
  std::vector<int> counts, exceptions;
  for (const AttachmentLimit& limit : catalog.limits) {
    if (limit.service != service || limit.accelerator != accelerator) continue;
    const bool here = std::ranges::find(limit.zones, zone) != limit.zones.end();
    if (!limit.zones.empty() && !here) continue;
    const bool fits =
        machine.vcpus <= limit.vcpus && machine.memory.value.v <= limit.memory.value.v;
    if (here) exceptions.push_back(limit.count);
    const bool excepted = !here && std::ranges::any_of(catalog.limits, [&](const auto& other) {
      return other.service == service && other.accelerator == accelerator &&
             other.count == limit.count &&
             std::ranges::find(other.zones, zone) != other.zones.end();
    });
    if (fits && !excepted) counts.push_back(limit.count);
  }
  std::ranges::sort(counts);
  return counts;
}

bool has_exception(const Catalog& catalog, const Service& service, const std::string& accelerator,
                   int count, std::string_view zone) {
  return std::ranges::any_of(catalog.limits, [&](const AttachmentLimit& limit) {
    return limit.service == service && limit.accelerator == accelerator && limit.count == count &&
           std::ranges::find(limit.zones, zone) != limit.zones.end();
  });
}

}  // namespace

Parsed<FoundMachine> resolve_machine(const Catalog& catalog, const Provider& provider,
                                     std::string_view name) {
  if (const Machine* machine = catalog.find_machine(provider, name))
    return FoundMachine{*machine, nullptr};
  for (const CustomFamily& family : catalog.custom_families) {
    if (family.provider != provider) continue;
    if (const auto size = custom_size(family, name))
      return custom_machine(catalog, family, size->first, size->second);
  }
  return tl::unexpected(std::string());
}

std::optional<FoundPrice> find_price(const Catalog& catalog, const PriceQuestion& question,
                                     std::string_view item, Offering::Covers covers) {
  const Prices prices(catalog, question);
  if (auto found = prices.row(item, covers)) return found;
  using Covers = Offering::Covers;
  if (covers != Covers::machine && covers != Covers::machine_with_accelerators) return std::nullopt;
  const Parsed<FoundMachine> machine = resolve_machine(catalog, question.provider, item);
  if (!machine) return std::nullopt;
  if (machine->family) return covers == Covers::machine ? prices.custom(*machine) : std::nullopt;
  return prices.scaled(machine->machine, covers);
}

std::vector<int> Catalog::allowed_counts(const Service& service, std::string_view machine,
                                         std::string_view accelerator,
                                         std::string_view zone) const {
  const Accelerator* wanted = find_accelerator(accelerator);
  if (!wanted) return {};
  const ProviderRules* owner = provider_of(service);
  const Parsed<FoundMachine> found =
      resolve_machine(*this, owner ? owner->id : Provider{}, machine);
  if (found && found->family)
    return limited_counts(*this, service, found->machine, wanted->name, zone);
  bool machine_has_rules = false;
  for (const AttachmentRule& rule : attachments) {
    if (!same_name(rule.machine, machine)) continue;
    machine_has_rules = true;
    if (rule.service != service || rule.accelerator != wanted->name) continue;
    std::vector<int> counts = rule.counts;
    if (found && !zone.empty()) {
      const std::vector<int> here =
          limited_counts(*this, service, found->machine, wanted->name, zone);
      std::erase_if(counts, [&](int count) {
        return has_exception(*this, service, wanted->name, count, zone) &&
               std::ranges::find(here, count) == here.end();
      });
    }
    return counts;
  }
  if (machine_has_rules) return {};
  for (const Machine& m : machines) {  // built in, and no service restricts it
    if (same_name(m.name, machine) && m.accelerator == wanted->name) return {m.accelerator_count};
  }
  return {};
}

}  // namespace reckon
