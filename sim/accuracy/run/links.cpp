#include "sim/accuracy/run/links.h"

namespace reckon {
namespace {

std::string_view tcp_link_of(const Machine& machine, const Catalog& catalog) {
  const ProviderRules* provider = catalog.find_provider(machine.provider.name);
  if (provider == nullptr || provider->tcp_link.empty()) return "ethernet";
  return provider->tcp_link;
}

/// RDMA from 100 Gb/s a node on: general knowledge of published clusters. Below, TCP: that
/// of the provider whose machine in the catalog is like a row's nodes.
std::string_view network_link_of(const PlannedPool& pool, const Catalog& catalog) {
  constexpr BytesPerSecond kRdma{100e9 / 8};
  const BytesPerSecond network = pool.machine.network.value;
  if (network >= kRdma) return "infiniband";
  for (const Machine& m : catalog.machines)
    if (pool.accelerator && m.accelerator == pool.accelerator->name &&
        m.accelerator_count >= pool.accelerators_per_node && m.network.value == network)
      return tcp_link_of(m, catalog);
  return "ethernet";
}

/// NVLink that a row prints among cards whose catalog entry has no links: those of the form of this
/// architecture that has them (four GH200 of a node; of a pair, the form that is joined in pairs).
void join_by_nvlink(PlannedPool& pool, const Catalog& catalog) {
  Accelerator& card = *pool.accelerator;
  const Accelerator* joined = nullptr;
  for (const Accelerator& a : catalog.accelerators) {
    if (a.architecture != card.architecture || !a.peer_bandwidth) continue;
    const bool in_pairs = a.name.starts_with(card.name);
    const bool better =
        joined == nullptr || a.peer_bandwidth->value > joined->peer_bandwidth->value;
    if (in_pairs && pool.accelerators_per_node == 2) {
      joined = &a;
      break;
    }
    if (better) joined = &a;
  }
  if (joined == nullptr) return;
  if (pool.accelerators_per_node == 2 && !joined->name.starts_with(card.name)) return;
  card.peer_bandwidth = joined->peer_bandwidth;
  if (const LinkClass* link = catalog.find_link(joined->peer_link)) pool.peer_link = *link;
}

}  // namespace

void set_links(Plan& plan, const RunConfiguration& run, const Catalog& catalog) {
  for (PlannedPool& pool : plan.pools) {
    if (pool.slice) continue;
    if (const LinkClass* link = catalog.find_link(network_link_of(pool, catalog)))
      pool.network_link = *link;
    if (!pool.accelerator) continue;
    const bool own_links = pool.accelerator->peer_bandwidth.has_value();
    if (own_links && run.intra_node_link.starts_with("pcie")) {
      pool.accelerator->peer_bandwidth.reset();  // its peer_link is on PCIe
      if (const LinkClass* link = catalog.find_link("pcie")) pool.peer_link = *link;
    } else if (!own_links && run.intra_node_link.starts_with("nvlink")) {
      join_by_nvlink(pool, catalog);
    }
  }
}

}  // namespace reckon
