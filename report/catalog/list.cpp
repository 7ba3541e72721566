#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "report/catalog/rows.h"
#include "report/text.h"
#include "sim/base/text/lower_case.h"
#include "sim/catalog/operations_keys.h"

namespace reckon {
namespace {

using namespace catalog_rows;

Cell hourly(const std::optional<Fact<UsdPerSecond>>& price) {
  return price ? text(fmt::format("{:.4f}", price->value.v * 3600)) : text("");
}

std::string joined_words(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::string_view covers_text(Offering::Covers covers) {
  using Covers = Offering::Covers;
  switch (covers) {
    case Covers::machine:
      return "machine";
    case Covers::accelerator:
      return "accelerator";
    case Covers::slice:
      return "slice";
    case Covers::machine_with_accelerators:
      return "machine with accelerators";
    case Covers::vcpu:
      return "vCPU";
    case Covers::memory_gib:
      return "GiB";
    case Covers::storage:
      return "GB stored";
  }
  return "";
}

CatalogTable accelerators(const Catalog& c) {
  CatalogTable t{"", {"name", "vendor", "architecture", "year", "TFLOPS", "at", "GiB", "GB/s"}, {}};
  for (const Accelerator& a : c.accelerators) {
    double best = 0;
    Precision at = Precision::fp32;
    for (std::size_t i = 0; i < kPrecisions.size(); ++i) {  // 16 bits where it has them
      const bool sixteen = kPrecisions[i] == Precision::bf16 || kPrecisions[i] == Precision::fp16;
      if (a.peak[i] && (best == 0 || sixteen)) {
        best = a.peak[i]->value.v / 1e12;
        at = kPrecisions[i];
      }
    }
    t.rows.push_back({a.name, a.vendor, a.architecture, whole(a.year), best,
                      text(reckon::to_text(at)), a.memory.value.v / kGibibyte,
                      a.memory_bandwidth.value.v / 1e9});
  }
  return t;
}

CatalogTable machines(const Catalog& c) {
  CatalogTable t{"", {"provider", "name", "vCPUs", "GiB", "Gbps", "accelerators", "network"}, {}};
  for (const Machine& m : c.machines)
    t.rows.push_back({text(reckon::to_text(m.provider)), m.name, whole(m.vcpus),
                      m.memory.value.v / kGibibyte, m.network.value.v * 8 / 1e9,
                      m.accelerator_count > 0
                          ? fmt::format("{} x {}", m.accelerator_count, m.accelerator)
                          : std::string(),
                      m.network_link});
  return t;
}

CatalogTable providers(const Catalog& c) {
  CatalogTable t{"",
                 {"name", "called", "services", "node GPU s", "spot notice s", "maintained every h",
                  "billed in s", "at least s"},
                 {}};
  for (const ProviderRules& p : c.providers) {
    std::vector<std::string> services;
    for (const Service& s : p.services) services.push_back(s.name);
    const auto number = [&](const std::string& key) { return c.operations.at(key).value; };
    t.rows.push_back({p.id.name, p.called, joined_words(services),
                      number(keys::provisioning(p.id, keys::NodeKind::gpu)),
                      number(keys::spot_notice(p.id)), number(keys::maintenance_every(p.id)) / 3600,
                      number(keys::billing_granularity(p.id)),
                      number(keys::billing_minimum(p.id))});
  }
  return t;
}

CatalogTable services(const Catalog& c) {
  CatalogTable t{"",
                 {"name", "called", "provider", "Kubernetes", "scales", "clusters made with",
                  "USD/h of a cluster"},
                 {}};
  for (const ServiceRules& s : c.services) {
    const ProviderRules* provider = c.provider_of(s.id);
    t.rows.push_back({s.id.name, s.called,
                      provider == nullptr ? text("several") : provider->id.name,
                      text(s.kubernetes ? "yes" : "no"), text(reckon::to_text(s.scales)),
                      s.cluster_tool.empty() ? text("no tool of export") : s.cluster_tool,
                      c.operations.at(keys::management_fee(s.id)).value});
  }
  return t;
}

CatalogTable prices(const Catalog& c) {
  CatalogTable t{"",
                 {"provider", "item", "covers", "region", "zones", "count", "USD/h", "spot USD/h",
                  "date", "flag"},
                 {}};
  for (const Offering& o : c.offerings) {
    if (o.covers == Offering::Covers::storage) continue;  // listed with the storages
    t.rows.push_back({text(reckon::to_text(o.provider)), o.item, text(covers_text(o.covers)),
                      o.region, joined_words(o.zones), whole(o.count), hourly(o.on_demand),
                      hourly(o.spot), o.date, text(o.suspect ? "suspect" : "")});
  }
  return t;
}

CatalogTable locations(const Catalog& c) {
  CatalogTable t{"", {"provider", "item", "region", "zones"}, {}};
  for (const Location& l : c.locations)
    t.rows.push_back({text(reckon::to_text(l.provider)), l.item, l.region, joined_words(l.zones)});
  return t;
}

CatalogTable attachments(const Catalog& c) {
  CatalogTable t{"", {"service", "machine", "accelerator", "counts"}, {}};
  for (const AttachmentRule& r : c.attachments)
    t.rows.push_back({text(reckon::to_text(r.service)), r.machine, r.accelerator,
                      fmt::format("{}", fmt::join(r.counts, " "))});
  return t;
}

CatalogTable limits(const Catalog& c) {
  CatalogTable t{"", {"service", "accelerator", "count", "vCPUs", "GiB", "zones"}, {}};
  for (const AttachmentLimit& l : c.limits)
    t.rows.push_back({text(reckon::to_text(l.service)), l.accelerator, whole(l.count),
                      whole(l.vcpus), l.memory.value.v / kGibibyte, joined_words(l.zones)});
  return t;
}

CatalogTable slices(const Catalog& c) {
  CatalogTable t{"", {"name", "accelerator", "chips", "torus", "wraps", "hosts", "machine"}, {}};
  for (const TpuSlice& s : c.slices)
    t.rows.push_back({s.name, s.accelerator, whole(s.chips),
                      fmt::format("{}", fmt::join(s.torus, "x")), text(s.wraps ? "yes" : "no"),
                      whole(s.hosts), s.machine});
  return t;
}

CatalogTable custom_families(const Catalog& c) {
  CatalogTable t{"", {"name", "written", "vCPUs", "GiB a vCPU", "step MiB"}, {}};
  for (const CustomFamily& f : c.custom_families)
    t.rows.push_back({f.name, fmt::format("{}-VCPUS-MEMORY_MIB", f.prefixes.front()),
                      fmt::format("1, or even to {}", f.vcpus_max),
                      fmt::format("{:g} to {:g}", f.memory_per_vcpu_min.value.v / kGibibyte,
                                  f.memory_per_vcpu_max.value.v / kGibibyte),
                      f.memory_step.v / 1048576.0});
  return t;
}

CatalogTable tiers(const Catalog& c) {
  CatalogTable t{"", {"service", "tier", "role", "count", "machine", "accelerators"}, {}};
  for (const ScaleTier& tier : c.tiers) {
    if (tier.parts.empty())
      t.rows.push_back({text(reckon::to_text(tier.service)), tier.name, text("as given"), whole(0),
                        text(""), text("")});
    for (const auto& p : tier.parts)
      t.rows.push_back(
          {text(reckon::to_text(tier.service)), tier.name, p.role, whole(p.count), p.machine,
           !p.slice.empty()          ? "TPU " + p.slice
           : p.accelerator_count > 0 ? fmt::format("{} x {}", p.accelerator_count, p.accelerator)
                                     : std::string()});
  }
  return t;
}

CatalogTable names(const Catalog& c) {
  CatalogTable t{"", {"service", "key", "text", "source"}, {}};
  for (const ClusterNames& group : c.cluster_names)
    for (const auto& [key, name] : group.names)
      t.rows.push_back({group.name, key, name.text, id_of(c, name.source)});
  return t;
}

CatalogTable datasets(const Catalog& c) {
  CatalogTable t{"", {"name", "samples", "validation", "bytes a sample", "CPU ms a sample"}, {}};
  for (const Dataset& d : c.datasets)
    t.rows.push_back({d.name, d.samples.value.v, d.validation_samples.value.v,
                      d.bytes_per_sample.value.v, d.decode_cpu_seconds.value * 1e3});
  return t;
}

CatalogTable storages(const Catalog& c) {
  CatalogTable t{"", {"provider", "name", "read MB/s", "write MB/s", "latency ms"}, {}};
  for (const Storage& s : c.storages)
    t.rows.push_back({text(reckon::to_text(s.provider)), s.name, s.read_per_node.value.v / 1e6,
                      s.write_per_node.value.v / 1e6, s.latency.value.count() * 1e3});
  return t;
}

CatalogTable links(const Catalog& c) {
  CatalogTable t{"", {"name", "efficiency", "latency us"}, {}};
  for (const LinkClass& l : c.links)
    t.rows.push_back({l.name, l.efficiency.value, l.latency.value.count() * 1e6});
  return t;
}

CatalogTable efficiencies(const Catalog& c) {
  CatalogTable t{"",
                 {"accelerator", "precision", "stack", "convolution", "matmul", "attention",
                  "memory", "source"},
                 {}};
  for (const Efficiency& e : c.efficiencies)
    t.rows.push_back({e.accelerator, text(reckon::to_text(e.precision)), e.stack,
                      e.convolution.value, e.matmul.value, e.attention.value, e.memory.value,
                      id_of(c, e.matmul.source)});
  return t;
}

CatalogTable stacks(const Catalog& c) {
  CatalogTable t{"", {"stack", "speed", "host us", "source"}, {}};
  for (const SoftwareStack& s : c.stacks)
    t.rows.push_back({s.name, s.speed.value, s.host.value.count() * 1e6, id_of(c, s.speed.source)});
  return t;
}

CatalogTable operations(const Catalog& c) {
  Facts facts(c);
  for (const auto& [key, number] : c.operations.numbers) facts.add(key, number, "SI", 1);
  return facts.take("");
}

CatalogTable sources(const Catalog& c) {
  CatalogTable t{"", {"id", "date", "reference"}, {}};
  for (const Source& s : c.sources) t.rows.push_back({s.id, s.retrieved, s.reference});
  return t;
}

struct ListedKind {
  std::string_view name;
  CatalogTable (*table)(const Catalog&);
};
constexpr std::array kKinds{ListedKind{"providers", providers},
                            ListedKind{"services", services},
                            ListedKind{"accelerators", accelerators},
                            ListedKind{"machines", machines},
                            ListedKind{"custom", custom_families},
                            ListedKind{"slices", slices},
                            ListedKind{"prices", prices},
                            ListedKind{"locations", locations},
                            ListedKind{"attachments", attachments},
                            ListedKind{"limits", limits},
                            ListedKind{"tiers", tiers},
                            ListedKind{"names", names},
                            ListedKind{"datasets", datasets},
                            ListedKind{"storages", storages},
                            ListedKind{"links", links},
                            ListedKind{"stacks", stacks},
                            ListedKind{"efficiencies", efficiencies},
                            ListedKind{"operations", operations},
                            ListedKind{"sources", sources}};

bool holds(const Row& row, const std::string& word) {
  return std::ranges::any_of(row, [&](const Cell& cell) {
    const auto* content = std::get_if<std::string>(&cell);
    return content && lower_case(*content).find(word) != std::string::npos;
  });
}

}  // namespace

std::vector<std::string> catalog_kinds() {
  std::vector<std::string> out;
  for (const ListedKind& kind : kKinds) out.emplace_back(kind.name);
  return out;
}

std::optional<CatalogTable> list_catalog(const Catalog& catalog, std::string_view kind,
                                         std::span<const std::string> words) {
  const auto* found = std::ranges::find(kKinds, kind, &ListedKind::name);
  if (found == kKinds.end()) return std::nullopt;
  CatalogTable table = found->table(catalog);
  for (const std::string& word : words)
    std::erase_if(table.rows,
                  [wanted = lower_case(word)](const Row& row) { return !holds(row, wanted); });
  return table;
}

}  // namespace reckon
