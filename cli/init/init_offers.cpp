#include "cli/init/init_offers.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/catalog/machine_choice.h"

namespace reckon::cli {
namespace {

std::vector<std::string> regions_for(const Catalog& catalog, const Provider& provider,
                                     std::string_view item, const std::string& wanted) {
  std::vector<std::string> regions;
  for (const Location* l : catalog.locations_of(provider, item))
    if ((wanted.empty() || l->region == wanted) &&
        std::find(regions.begin(), regions.end(), l->region) == regions.end())
      regions.push_back(l->region);
  return regions;
}

std::vector<Provider> providers_of(const InitAnswers& answers, const Catalog& catalog) {
  if (answers.provider) return {*answers.provider};
  std::vector<Provider> sellers;
  for (const ProviderRules& p : catalog.providers)
    if (!p.owned) sellers.push_back(p.id);
  return sellers;
}

std::vector<Offer> gpu_offers(const InitAnswers& answers, const Catalog& catalog,
                              const Accelerator& accelerator) {
  std::vector<Offer> offers;
  for (const Provider& provider : providers_of(answers, catalog)) {
    const auto regions = regions_for(catalog, provider, accelerator.name, answers.region);
    // AWS and Azure list machines, not accelerators, and not everywhere: they are offered to who
    // asks for them.
    if (regions.empty() && !answers.provider) continue;
    // The most on one node first: what they tell each other then stays inside it.
    for (int per_node = std::min(answers.count, 64); per_node >= 1; --per_node) {
      if (answers.count % per_node != 0) continue;
      const auto machines = machines_with(catalog, provider, accelerator, per_node);
      const std::size_t before = offers.size();
      for (const Machine* machine : machines)
        for (const std::string& region :
             regions.empty() ? regions_for(catalog, provider, machine->name, answers.region)
                             : regions)
          offers.push_back(
              {provider, region, machine, nullptr, per_node, answers.count / per_node, ""});
      if (offers.size() > before) break;
    }
  }
  return offers;
}

/// A size to begin with, where the catalog knows no machine.
std::string usual_size(int accelerators) {
  constexpr int kVcpus = 8, kGib = 32;  // of an accelerator, or of a node without
  const int of = std::max(1, accelerators);
  return fmt::format("{{vcpu: {}, memory: {}GiB, network: {}Gbps}}", kVcpus * of, kGib * of,
                     accelerators > 1 ? 100 : 10);
}

std::string first_region(const InitAnswers& answers, const Catalog& catalog,
                         const Provider& provider) {
  if (!answers.region.empty()) return answers.region;
  for (const Location& l : catalog.locations)
    if (l.provider == provider && !l.region.empty()) return l.region;
  return "main";  // its regions are not listed: any name is one
}

bool lists_machines(const Catalog& catalog, const Provider& provider) {
  return std::ranges::any_of(catalog.machines,
                             [&](const Machine& m) { return m.provider == provider; });
}

/// On nodes of a provider whose machines are not listed, as one's own are.
std::vector<Offer> offers_by_size(const InitAnswers& answers, const Catalog& catalog) {
  if (!answers.provider) return {};
  constexpr int kMostOnANode = 8;
  int per_node = answers.accelerator.empty() ? 1 : std::min(answers.count, kMostOnANode);
  while (answers.count % per_node != 0) --per_node;
  Offer offer{*answers.provider,
              "",
              nullptr,
              nullptr,
              per_node,
              answers.count / per_node,
              usual_size(answers.accelerator.empty() ? 0 : per_node)};
  if (!catalog.rules_of(*answers.provider).owned) {
    if (!answers.accelerator.empty() && lists_machines(catalog, *answers.provider)) return {};
    offer.region = first_region(answers, catalog, *answers.provider);
  }
  return {offer};
}

/// Listed machines without accelerators, the smallest that has what a node usually has.
std::vector<Offer> processor_offers(const InitAnswers& answers, const Catalog& catalog) {
  constexpr int kVcpus = 8;
  std::vector<Offer> offers;
  for (const Provider& provider : providers_of(answers, catalog)) {
    const Machine* best = nullptr;
    for (const Machine& machine : catalog.machines)
      if (machine.provider == provider && machine.accelerator.empty() && machine.services.empty() &&
          machine.vcpus >= kVcpus && (best == nullptr || machine.vcpus < best->vcpus))
        best = &machine;
    if (best == nullptr) continue;
    auto regions = regions_for(catalog, provider, best->name, answers.region);
    if (regions.empty()) regions = {first_region(answers, catalog, provider)};
    for (const std::string& region : regions)
      offers.push_back({provider, region, best, nullptr, 1, answers.count, ""});
  }
  return offers.empty() ? offers_by_size(answers, catalog) : offers;
}

std::vector<Offer> tpu_offers(const InitAnswers& answers, const Catalog& catalog,
                              const Accelerator& accelerator) {
  std::vector<Offer> offers;
  for (const TpuSlice& slice : catalog.slices) {
    if (slice.accelerator != accelerator.name || slice.chips != answers.count) continue;
    for (const Provider& provider : providers_of(answers, catalog))
      for (const std::string& region : regions_for(catalog, provider, slice.name, answers.region))
        offers.push_back({provider, region, nullptr, &slice, slice.chips, 1, ""});
  }
  return offers;
}

Diagnostics no_offer(const InitAnswers& answers, const Catalog& catalog,
                     const Accelerator& accelerator) {
  std::string hint;
  if (accelerator.kind == AcceleratorKind::tpu) {
    hint = "slices (chips):";
    for (const TpuSlice& s : catalog.slices)
      if (s.accelerator == accelerator.name) hint += fmt::format(" {} ({})", s.name, s.chips);
  } else {
    for (const Location& l : catalog.locations)
      if (l.item == accelerator.name)
        hint += fmt::format("{}{}/{}", hint.empty() ? "offered in: " : ", ", to_text(l.provider),
                            l.region);
    if (hint.empty()) hint = "no place in the catalog offers it; describe your own: --catalog DIR";
  }
  return {{Severity::error,
           {"--accelerator", 0, 0},
           fmt::format("no machine of the catalog offers {} x {}{}{}", answers.count,
                       accelerator.name, answers.region.empty() ? "" : " in " + answers.region,
                       answers.provider ? fmt::format(" of {}", to_text(*answers.provider)) : ""),
           hint}};
}

}  // namespace

Expected<std::vector<Offer>> offers_for(const InitAnswers& answers, const Catalog& catalog) {
  const Accelerator* accelerator = catalog.find_accelerator(answers.accelerator);
  if (accelerator == nullptr) {
    auto nodes = processor_offers(answers, catalog);
    if (!nodes.empty()) return nodes;
    return tl::unexpected(
        Diagnostics{{Severity::error,
                     {"--accelerator", 0, 0},
                     "no provider of the catalog lists a machine without accelerators",
                     "say whose machines they are: --provider on_premises"}});
  }
  const bool tpu = accelerator->kind == AcceleratorKind::tpu;
  auto offers =
      tpu ? tpu_offers(answers, catalog, *accelerator) : gpu_offers(answers, catalog, *accelerator);
  if (offers.empty() && !tpu) offers = offers_by_size(answers, catalog);
  if (offers.empty()) return tl::unexpected(no_offer(answers, catalog, *accelerator));
  return offers;
}

}  // namespace reckon::cli
