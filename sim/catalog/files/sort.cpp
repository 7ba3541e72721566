#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "sim/catalog/build/build.h"

namespace reckon::catalog_text {
namespace {

/// The parts that name a row, joined: compared as one natural name.
template <class Row, class Name>
void sort_by(std::vector<Row>& rows, Name name) {
  std::vector<std::pair<std::string, std::size_t>> order;
  for (std::size_t i = 0; i < rows.size(); ++i) order.emplace_back(name(rows[i]), i);
  std::ranges::sort(order, [](const auto& a, const auto& b) {
    if (a.first != b.first) return natural_less(a.first, b.first);
    return a.second < b.second;  // equal names are layers of one price, in their order
  });
  std::vector<Row> sorted;
  sorted.reserve(rows.size());
  for (const auto& [key, i] : order) sorted.push_back(std::move(rows[i]));
  rows = std::move(sorted);
}

std::string all(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

}  // namespace

void sort_rows(Catalog& c) {
  const auto own_name = [](const auto& row) { return row.name; };
  const auto place = [&](const Provider& provider) { return c.place_of(provider); };
  const auto place_of_service = [&](const Service& service) {
    return std::ranges::find(c.services, service, &ServiceRules::id) - c.services.begin();
  };
  sort_by(c.accelerators, own_name);
  sort_by(c.slices, own_name);
  sort_by(c.machines,
          [&](const Machine& m) { return fmt::format("{} {}", place(m.provider), m.name); });
  sort_by(c.attachments, [&](const AttachmentRule& r) {
    return fmt::format("{} {} {}", place_of_service(r.service), r.machine, r.accelerator);
  });
  sort_by(c.limits, [&](const AttachmentLimit& l) {
    return fmt::format("{} {} {} {}", place_of_service(l.service), l.accelerator, l.count,
                       all(l.zones));
  });
  sort_by(c.custom_families, own_name);
  sort_by(c.tiers, [&](const ScaleTier& t) {
    return fmt::format("{} {}", place_of_service(t.service), t.name);
  });
  sort_by(c.cluster_names, own_name);
  sort_by(c.locations, [&](const Location& l) {
    return fmt::format("{} {} {}", place(l.provider), l.region, l.item);
  });
  sort_by(c.regions,
          [&](const Region& r) { return fmt::format("{} {}", place(r.provider), r.name); });
  sort_by(c.offerings, [&](const Offering& o) {
    return fmt::format("{} {} {} {} {} {} {}", place(o.provider), int(o.covers), o.item, o.region,
                       all(o.zones), o.count, o.date);
  });
  sort_by(c.datasets, own_name);
  sort_by(c.storages, own_name);
  sort_by(c.efficiencies, [](const Efficiency& e) {
    return fmt::format("{} {} {}", e.accelerator, int(e.precision), e.stack);
  });
  sort_by(c.published_models, [](const PublishedModel& m) { return m.model; });
  sort_by(c.convergence, [](const ConvergencePoint& p) {
    return fmt::format("{} {} {:.6f} {} {:020} {:020}", p.model, p.dataset, p.accuracy,
                       p.starts_from, p.sequence_length, p.global_batch);
  });
  sort_by(c.stacks, own_name);
  sort_by(c.stack_classes, [](const StackClass& s) { return s.stacks; });
  sort_by(c.stack_memories, [](const StackMemory& s) { return s.stacks; });
  sort_by(c.links, own_name);
}

}  // namespace reckon::catalog_text
