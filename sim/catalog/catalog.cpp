#include "sim/catalog/catalog.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/catalog/build/build.h"
#include "sim/catalog/convergence_laws.h"

namespace reckon {
namespace {

using catalog_text::same_name;

template <class Row>
bool named(const Row& row, std::string_view name) {
  if constexpr (requires { row.aliases; }) {
    for (const std::string& alias : row.aliases) {
      if (same_name(alias, name)) return true;
    }
  }
  return same_name(row.name, name);
}

template <class Row>
const Row* find_named(const std::vector<Row>& rows, std::string_view name) {
  for (const Row& row : rows) {
    if (named(row, name)) return &row;
  }
  return nullptr;
}

bool holds_in(const std::vector<std::string>& zones, std::string_view zone) {
  return zone.empty() || zones.empty() || std::ranges::find(zones, zone) != zones.end();
}

}  // namespace

const ProviderRules* Catalog::find_provider(std::string_view name) const {
  const auto found =
      std::ranges::find(providers, name, [](const auto& p) { return to_text(p.id); });
  return found == providers.end() ? nullptr : &*found;
}
const ServiceRules* Catalog::find_service(std::string_view name) const {
  const auto found = std::ranges::find(services, name, [](const auto& s) { return to_text(s.id); });
  return found == services.end() ? nullptr : &*found;
}
const ProviderRules& Catalog::rules_of(const Provider& provider) const {
  const ProviderRules* found = find_provider(provider.name);
  RECKON_CHECK(found != nullptr);
  return *found;
}
const ServiceRules& Catalog::rules_of(const Service& service) const {
  const ServiceRules* found = find_service(service.name);
  RECKON_CHECK(found != nullptr);
  return *found;
}
std::size_t Catalog::place_of(const Provider& provider) const {
  const ProviderRules* found = find_provider(provider.name);
  return found == nullptr ? providers.size() : static_cast<std::size_t>(found - providers.data());
}
const ProviderRules* Catalog::provider_of(const Service& service) const {
  const ProviderRules* only = nullptr;
  for (const ProviderRules& p : providers) {
    if (std::ranges::find(p.services, service) == p.services.end()) continue;
    if (only != nullptr) return nullptr;
    only = &p;
  }
  return only;
}
const ProviderRules& Catalog::own_machines() const {
  const auto found = std::ranges::find(providers, true, &ProviderRules::owned);
  RECKON_CHECK(found != providers.end());
  return *found;
}

std::optional<Fact<FlopsPerSecond>> Accelerator::peak_for(Precision p) const {
  for (std::size_t i = 0; i < kPrecisions.size(); ++i) {
    if (kPrecisions[i] == p) return peak[i];
  }
  return std::nullopt;
}

const Fact<double>& OperationalDefaults::at(std::string_view key) const {
  const Fact<double>* found = find(key);
  RECKON_CHECK(found != nullptr);
  return *found;
}

const Fact<double>* OperationalDefaults::find(std::string_view key) const {
  const auto found = numbers.find(key);
  return found == numbers.end() ? nullptr : &found->second;
}

const ClusterNames::Name* ClusterNames::find(std::string_view key) const {
  const auto found = names.find(key);
  return found == names.end() ? nullptr : &found->second;
}

const Accelerator* Catalog::find_accelerator(std::string_view name) const {
  return find_named(accelerators, name);
}
const TpuSlice* Catalog::find_slice(std::string_view name) const {
  return find_named(slices, name);
}
const Dataset* Catalog::find_dataset(std::string_view name) const {
  return find_named(datasets, name);
}
const Storage* Catalog::find_storage(std::string_view name) const {
  return find_named(storages, name);
}
const CustomFamily* Catalog::find_custom_family(const Provider& provider,
                                                std::string_view name) const {
  for (const CustomFamily& family : custom_families) {
    if (family.provider == provider && same_name(family.name, name)) return &family;
  }
  return nullptr;
}
Precision Accelerator::training_precision() const {
  for (const Precision p : {Precision::bf16, Precision::fp16})
    if (peak_for(p)) return p;
  return Precision::fp32;
}

bool Machine::offered_under(const Service& service) const {
  return services.empty() || std::ranges::find(services, service) != services.end();
}

std::vector<Convergence> Catalog::convergence_of(std::string_view model,
                                                 std::string_view dataset) const {
  return convergence_laws(convergence, model, dataset);
}

const PublishedModel* Catalog::find_published(std::string_view model) const {
  const auto found = std::ranges::find(published_models, model, &PublishedModel::model);
  return found == published_models.end() ? nullptr : &*found;
}

const ScaleTier* Catalog::find_tier(const Service& service, std::string_view name) const {
  for (const ScaleTier& tier : tiers) {
    if (tier.service == service && same_name(tier.name, name)) return &tier;
  }
  return nullptr;
}
const ClusterNames* Catalog::find_cluster_names(std::string_view name) const {
  return find_named(cluster_names, name);
}
const LinkClass* Catalog::find_link(std::string_view name) const { return find_named(links, name); }

const Machine* Catalog::find_machine(const Provider& provider, std::string_view name) const {
  for (const Machine& machine : machines) {
    if (machine.provider == provider && same_name(machine.name, name)) return &machine;
  }
  return nullptr;
}

const Efficiency* Catalog::find_efficiency(const Accelerator& accelerator, Precision precision,
                                           std::string_view stack) const {
  const auto row = [&](std::string_view name, std::string_view wanted) -> const Efficiency* {
    for (const Efficiency& e : efficiencies) {
      if (e.precision == precision && same_name(e.accelerator, name) && same_name(e.stack, wanted))
        return &e;
    }
    return nullptr;
  };
  const std::string_view of_class = class_of_stack(stack);
  for (const std::string& name : {accelerator.name, accelerator.architecture}) {
    if (const Efficiency* own = row(name, stack)) return own;
    if (const Efficiency* alike = of_class.empty() ? nullptr : row(name, of_class)) return alike;
    if (const Efficiency* any = row(name, "")) return any;
  }
  return nullptr;
}

/// "megatron*" is how names begin, anything else a name.
static bool is_one_of(std::string_view stack, std::string_view stacks) {
  const bool begins =
      stacks.ends_with('*') && stack.size() + 1 >= stacks.size() &&
      same_name(stack.substr(0, stacks.size() - 1), stacks.substr(0, stacks.size() - 1));
  return begins || same_name(stacks, stack);
}

std::string_view Catalog::class_of_stack(std::string_view stack) const {
  for (const StackClass& c : stack_classes)
    if (is_one_of(stack, c.stacks) || same_name(c.name, stack)) return c.name;
  return "";
}

const StackMemory* Catalog::find_stack_memory(std::string_view stack) const {
  const auto at = std::ranges::find_if(
      stack_memories, [&](const StackMemory& m) { return is_one_of(stack, m.stacks); });
  return at == stack_memories.end() ? nullptr : &*at;
}

const SoftwareStack* Catalog::find_stack(std::string_view stack) const {
  if (const SoftwareStack* own = find_named(stacks, stack)) return own;
  const std::size_t dash = stack.rfind('-');
  const std::string_view end = dash == std::string_view::npos ? stack : stack.substr(dash + 1);
  return find_named(stacks, "*-" + std::string(end));
}

Efficiency with_stack(Efficiency any, const SoftwareStack& stack) {
  const double factor = stack.speed.value;
  for (Fact<double>* part : {&any.convolution, &any.matmul, &any.attention, &any.memory}) {
    part->value *= factor;
    part->low *= factor;
    part->high *= factor;
  }
  any.launch.value /= factor;
  any.launch.low /= factor;
  any.launch.high /= factor;
  any.host = stack.host;
  any.stack = stack.name;
  return any;
}

std::vector<const Location*> Catalog::locations_of(const Provider& provider,
                                                   std::string_view item) const {
  const Accelerator* accelerator = find_accelerator(item);
  const auto matches = [&](const Location& location) {
    if (!accelerator) return same_name(location.item, item);
    if (location.item == accelerator->name) return true;
    const TpuSlice* slice =
        accelerator->kind == AcceleratorKind::tpu ? find_slice(location.item) : nullptr;
    return slice && slice->accelerator == accelerator->name;
  };
  std::vector<const Location*> result;
  for (const Location& location : locations) {
    if (location.provider == provider && matches(location)) result.push_back(&location);
  }
  std::ranges::stable_sort(
      result, {}, [](const Location* location) -> const std::string& { return location->region; });
  return result;
}

const Offering* Catalog::find_offering(const Provider& provider, std::string_view region,
                                       std::string_view zone, std::string_view item,
                                       Offering::Covers covers, CapacityType capacity,
                                       bool suspect) const {
  if (capacity == CapacityType::reserved) return nullptr;
  std::string_view name = item;
  if (covers == Offering::Covers::accelerator) {
    if (const Accelerator* found = find_accelerator(item)) name = found->name;
  } else if (covers == Offering::Covers::storage) {
    if (const Storage* found = find_storage(item)) name = found->name;
  }
  const Offering* best = nullptr;
  for (const Offering& offering : offerings) {
    // What rules out most rows without comparing characters comes first.
    if (offering.covers != covers || offering.region != region || offering.provider != provider)
      continue;
    if (!same_name(offering.item, name) || !holds_in(offering.zones, zone)) continue;
    const bool priced = capacity == CapacityType::spot
                            ? offering.spot.has_value()
                            : offering.on_demand.has_value() && (suspect || !offering.suspect);
    if (priced &&
        (!best || std::tie(offering.date, offering.layer) >= std::tie(best->date, best->layer)))
      best = &offering;
  }
  return best;
}

}  // namespace reckon
