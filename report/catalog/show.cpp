#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "report/catalog/rows.h"
#include "sim/catalog/catalog_lookup.h"
#include "sim/catalog/files/text.h"

namespace reckon {
namespace {

using namespace catalog_rows;
using Tables = std::vector<CatalogTable>;
using Covers = Offering::Covers;

std::string hourly_text(double usd_per_second) {
  return fmt::format("{:.4f}", usd_per_second * 3600);
}

void offered(const Catalog& c, const Provider& provider, const std::string& item, Tables& out) {
  CatalogTable t{"offered in", {"provider", "item", "region", "zones"}, {}};
  for (const Location* l : c.locations_of(provider, item))
    t.rows.push_back({text(to_text(l->provider)), l->item,
                      text(l->region.empty() ? "not stated" : l->region),
                      fmt::format("{}", fmt::join(l->zones, " "))});
  if (!t.rows.empty()) out.push_back(std::move(t));
}

void add_price(const Catalog& c, const Offering& o, CatalogTable& t) {
  const auto& fact = o.on_demand ? o.on_demand : o.spot;
  std::string note = o.suspect ? "suspect: used only if asked for" : o.notes;
  if (o.count != 1) note = fmt::format("for {}; {}", o.count, note);
  t.rows.push_back({text(to_text(o.provider)), o.region, fmt::format("{}", fmt::join(o.zones, " ")),
                    o.on_demand ? text(hourly_text(o.on_demand->value.v)) : text(""),
                    o.spot ? text(hourly_text(o.spot->value.v)) : text(""), o.date,
                    id_of(c, fact->source), note});
}

CatalogTable price_table() {
  return {"prices",
          {"provider", "region", "zones", "USD/h", "spot USD/h", "date", "source", "note"},
          {}};
}

void prices_of(const Catalog& c, const std::string& item, const std::optional<Provider>& provider,
               Tables& out) {
  CatalogTable t = price_table();
  for (const Offering& o : c.offerings)
    if (o.item == item && o.covers != Covers::storage && (!provider || o.provider == *provider))
      add_price(c, o, t);
  if (!t.rows.empty()) out.push_back(std::move(t));
}

/// Where no row prices the machine: what follows from other rows, by region.
void derived_prices(const Catalog& c, const Machine& m, Tables& out) {
  CatalogTable t = price_table();
  std::set<std::string> regions;
  for (const Offering& o : c.offerings)
    if (o.provider == m.provider) regions.insert(o.region);
  const Covers covers = m.accelerator.empty() ? Covers::machine : Covers::machine_with_accelerators;
  for (const std::string& region : regions) {
    const auto price = [&](CapacityType capacity) {
      return find_price(c, {m.provider, region, "", capacity, false}, m.name, covers);
    };
    const auto listed = price(CapacityType::on_demand);
    const auto spot = price(CapacityType::spot);
    const auto& any = listed ? listed : spot;
    if (!any || any->note.empty()) continue;
    t.rows.push_back({text(to_text(m.provider)), region, text(""),
                      listed ? text(hourly_text(listed->rate.value.v)) : text(""),
                      spot ? text(hourly_text(spot->rate.value.v)) : text(""), any->date,
                      id_of(c, any->rate.source), any->note});
  }
  if (!t.rows.empty()) out.push_back(std::move(t));
}

Tables show(const Catalog& c, const Accelerator& a) {
  Tables out;
  out.push_back({fmt::format("accelerator {}", a.name),
                 {"what", "value"},
                 {{text("vendor"), a.vendor},
                  {text("architecture"), a.architecture},
                  {text("year"), fmt::format("{}", a.year)},
                  {text("also called"), fmt::format("{}", fmt::join(a.aliases, ", "))},
                  {text("links to peers"), a.peer_link},
                  {text("power"), a.power_watts > 0 ? fmt::format("{} W", a.power_watts) : ""},
                  {text("notes"), a.notes}}});
  Facts facts(c);
  for (std::size_t i = 0; i < kPrecisions.size(); ++i)
    facts.add(fmt::format("peak {}", to_text(kPrecisions[i])), a.peak[i], "TFLOPS", 1e12);
  facts.add("memory", a.memory, "GiB", kGibibyte);
  facts.add("memory bandwidth", a.memory_bandwidth, "GB/s", 1e9);
  facts.add("bandwidth to peers", a.peer_bandwidth, "GB/s", 1e9);
  facts.add("bandwidth to host", a.host_bandwidth, "GB/s", 1e9);
  out.push_back(facts.take("numbers"));
  CatalogTable built{"built into", {"provider", "machine", "count"}, {}};
  for (const Machine& m : c.machines)
    if (m.accelerator == a.name)
      built.rows.push_back({text(to_text(m.provider)), m.name, whole(m.accelerator_count)});
  out.push_back(std::move(built));
  CatalogTable counts{"counts that a machine may carry", {"service", "machine", "counts"}, {}};
  for (const AttachmentRule& r : c.attachments)
    if (r.accelerator == a.name)
      counts.rows.push_back(
          {text(to_text(r.service)), r.machine, fmt::format("{}", fmt::join(r.counts, " "))});
  out.push_back(std::move(counts));
  for (const ProviderRules& p : c.providers) offered(c, p.id, a.name, out);
  prices_of(c, a.name, std::nullopt, out);
  return out;
}

Tables show(const Catalog& c, const Machine& m) {
  Tables out;
  Facts facts(c);
  facts.add("memory", m.memory, "GiB", kGibibyte);
  facts.add("network", m.network, "Gbps", 1e9 / 8);
  const std::string has = m.accelerator_count > 0
                              ? fmt::format(", {} x {}", m.accelerator_count, m.accelerator)
                              : std::string();
  out.push_back(facts.take(
      fmt::format("machine {} of {}: {} vCPUs{}", m.name, to_text(m.provider), m.vcpus, has)));
  if (!m.notes.empty()) out.push_back({"notes", {"note"}, {{m.notes}}});
  CatalogTable counts{"accelerators that it may carry", {"service", "accelerator", "counts"}, {}};
  const ProviderRules& provider = c.rules_of(m.provider);
  for (const Service& s : provider.services) {
    if (!provider.counts_by_table) break;
    for (const Accelerator& a : c.accelerators) {
      const std::vector<int> allowed = c.allowed_counts(s, m.name, a.name);
      if (!allowed.empty())
        counts.rows.push_back(
            {text(to_text(s)), a.name, fmt::format("{}", fmt::join(allowed, " "))});
    }
  }
  out.push_back(std::move(counts));
  offered(c, m.provider, m.name, out);
  prices_of(c, m.name, m.provider, out);
  derived_prices(c, m, out);
  return out;
}

Tables show(const Catalog& c, const TpuSlice& s) {
  Tables out{
      {fmt::format("slice {}: {} chips of {} on {} hosts", s.name, s.chips, s.accelerator, s.hosts),
       {"what", "value"},
       {{text("torus"), fmt::format("{}", fmt::join(s.torus, "x"))},
        {text("closed"), text(s.wraps ? "yes" : "no")},
        {text("host"), s.machine}}}};
  for (const ProviderRules& p : c.providers) offered(c, p.id, s.name, out);
  prices_of(c, s.name, std::nullopt, out);
  return out;
}

Tables show(const Catalog& c, const Dataset& d) {
  Facts facts(c);
  facts.add("samples", d.samples, "", 1);
  facts.add("validation samples", d.validation_samples, "", 1);
  facts.add("bytes a sample", d.bytes_per_sample, "B", 1);
  facts.add("decoding, one vCPU", d.decode_cpu_seconds, "ms", 1e-3);
  return {facts.take(fmt::format("data set {}", d.name))};
}

Tables show(const Catalog& c, const Storage& s) {
  Facts facts(c);
  facts.add("read by a node", s.read_per_node, "MB/s", 1e6);
  facts.add("written by a node", s.write_per_node, "MB/s", 1e6);
  facts.add("latency", s.latency, "ms", 1e-3);
  Tables out{facts.take(fmt::format("storage {} of {}", s.name, to_text(s.provider)))};
  CatalogTable t{"prices", {"region", "USD a GB and month", "date", "source"}, {}};
  constexpr double kMonth = 730 * 3600.0;
  for (const Offering& o : c.offerings)
    if (o.covers == Covers::storage && o.item == s.name && o.on_demand)
      t.rows.push_back(
          {o.region, o.on_demand->value.v * kMonth, o.date, id_of(c, o.on_demand->source)});
  out.push_back(std::move(t));
  return out;
}

Tables show_group(const Catalog& c, std::string_view name) {
  Facts facts(c);
  bool any = false;
  for (const auto& [key, number] : c.operations.numbers) {
    if (key != name && !key.starts_with(std::string(name) + ".")) continue;
    facts.add(key, number, "SI", 1);
    any = true;
  }
  return any ? Tables{facts.take("operations")} : Tables{};
}

}  // namespace

Tables show_catalog(const Catalog& c, std::string_view name) {
  if (const Accelerator* a = c.find_accelerator(name)) return show(c, *a);
  Tables out;
  for (const ProviderRules& p : c.providers)
    if (const auto found = resolve_machine(c, p.id, name))
      for (CatalogTable& table : show(c, found->machine)) out.push_back(std::move(table));
  if (!out.empty()) return out;
  if (const TpuSlice* s = c.find_slice(name)) return show(c, *s);
  if (const Dataset* d = c.find_dataset(name)) return show(c, *d);
  if (const Storage* s = c.find_storage(name)) return show(c, *s);
  if (const LinkClass* l = c.find_link(name)) {
    Facts facts(c);
    facts.add("efficiency", l->efficiency, "", 1);
    facts.add("latency of a hop", l->latency, "us", 1e-6);
    if (l->call) facts.add("call of a collective", *l->call, "us", 1e-6);
    if (l->pieces) facts.add("pieces (c of L + w + c sqrt(L w))", *l->pieces, "", 1);
    if (l->reduction) facts.add("gain of all-reduces in the switches", *l->reduction, "", 1);
    return {facts.take(fmt::format("link {}", l->name))};
  }
  for (const ScaleTier& tier : c.tiers)
    if (catalog_text::same_name(tier.name, name)) {
      CatalogTable table = *list_catalog(c, "tiers", {});
      std::erase_if(table.rows, [&](const Row& row) { return row[1] != Cell{tier.name}; });
      table.title = fmt::format("scale tier {}", tier.name);
      return {table};
    }
  if (const ClusterNames* group = c.find_cluster_names(name)) {
    CatalogTable table = *list_catalog(c, "names", {});
    std::erase_if(table.rows, [&](const Row& row) { return row[0] != Cell{group->name}; });
    return {table};
  }
  if (Tables group = show_group(c, name); !group.empty()) return group;
  for (const Source& s : c.sources)
    if (s.id == name)
      return {
          {fmt::format("source {}", s.id), {"date", "reference"}, {{s.retrieved, s.reference}}}};
  return {};
}

std::vector<std::string> catalog_names(const Catalog& c) {
  std::set<std::string> names;
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows) names.insert(row.name);
  };
  add(c.accelerators);
  add(c.machines);
  add(c.slices);
  add(c.datasets);
  add(c.storages);
  add(c.links);
  add(c.tiers);
  add(c.cluster_names);
  for (const Accelerator& a : c.accelerators) names.insert(a.aliases.begin(), a.aliases.end());
  for (const auto& [key, number] : c.operations.numbers) names.insert(key);
  for (const Source& s : c.sources) names.insert(s.id);
  return {names.begin(), names.end()};
}

}  // namespace reckon
