#include "sim/catalog/machine_choice.h"

#include <algorithm>

namespace reckon {
namespace {

constexpr int kVcpusPerAccelerator = 8;

bool holds(const Machine& machine, const HostRoom& room) {
  return machine.vcpus >= room.vcpus && machine.memory.value >= room.memory;
}

}  // namespace

std::vector<const Machine*> machines_with(const Catalog& catalog, const Provider& provider,
                                          const Accelerator& accelerator, int count,
                                          const HostRoom& room) {
  std::vector<const Machine*> built_in, attached;
  const ProviderRules* rules = catalog.find_provider(provider.name);
  if (rules == nullptr) return {};
  const Service& service = rules->services.front();
  for (const Machine& m : catalog.machines) {
    if (m.provider != provider || !m.services.empty() || !holds(m, room)) continue;
    if (!m.accelerator.empty()) {
      if (m.accelerator == accelerator.name && m.accelerator_count == count) built_in.push_back(&m);
      continue;
    }
    const auto counts = catalog.allowed_counts(service, m.name, accelerator.name);
    if (std::find(counts.begin(), counts.end(), count) != counts.end()) attached.push_back(&m);
  }
  const bool asked = room.vcpus > 0 || room.memory > Bytes{};
  if (attached.empty() && built_in.empty() && asked)
    return machines_with(catalog, provider, accelerator, count);
  if (attached.empty()) return built_in;
  const auto enough = [&](const Machine* m) { return m->vcpus >= kVcpusPerAccelerator * count; };
  const auto better = [&](const Machine* a, const Machine* b) {
    if (enough(a) != enough(b)) return enough(a);
    return enough(a) ? a->vcpus < b->vcpus : a->vcpus > b->vcpus;
  };
  built_in.push_back(*std::min_element(attached.begin(), attached.end(), better));
  return built_in;
}

}  // namespace reckon
