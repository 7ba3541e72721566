#include <array>
#include <catch2/catch.hpp>

#include <fmt/format.h>

#include "sim/catalog/catalog.h"
#include "support/shuffled_catalog.h"

// The order of rows and entries in catalog files means nothing.
using namespace reckon;
namespace fs = std::filesystem;

namespace {

template <class T>
std::string text_of(const Fact<T>& fact) {
  const auto plain = [](auto v) {
    if constexpr (requires { v.v; }) {
      return v.v;
    } else if constexpr (requires { v.count(); }) {
      return v.count();
    } else {
      return double(v);
    }
  };
  return fmt::format("{:.17g}[{:.17g} {:.17g}]@{}", plain(fact.value), plain(fact.low),
                     plain(fact.high), int(fact.source));
}
template <class T>
std::string text_of(const std::optional<Fact<T>>& fact) {
  return fact ? text_of(*fact) : "-";
}

/// Every field that a forecast reads, one line a row.
std::vector<std::string> dump(const Catalog& c) {
  std::vector<std::string> out;
  for (const Source& s : c.sources) out.push_back(s.id + s.reference + s.retrieved);
  for (const Accelerator& a : c.accelerators) {
    std::string line = fmt::format("{} {} {} {} {} {}", a.name, fmt::join(a.aliases, ","),
                                   a.architecture, a.peer_link, a.power_watts, a.notes);
    for (const auto& peak : a.peak) line += " " + text_of(peak);
    out.push_back(line + text_of(a.memory) + text_of(a.memory_bandwidth) +
                  text_of(a.peer_bandwidth) + text_of(a.host_bandwidth));
  }
  for (const Machine& m : c.machines)
    out.push_back(fmt::format("{} {} {} {} {} {} {} {}", to_text(m.provider), m.name, m.vcpus,
                              text_of(m.memory), text_of(m.network), m.accelerator,
                              m.accelerator_count, m.network_link));
  for (const TpuSlice& s : c.slices)
    out.push_back(fmt::format("{} {} {} {}", s.name, s.accelerator, s.chips, s.machine));
  for (const AttachmentRule& r : c.attachments)
    out.push_back(fmt::format("{} {} {} {}", to_text(r.service), r.machine, r.accelerator,
                              fmt::join(r.counts, ",")));
  for (const AttachmentLimit& l : c.limits)
    out.push_back(fmt::format("{} {} {} {} {}", to_text(l.service), l.accelerator, l.count, l.vcpus,
                              text_of(l.memory)));
  for (const ScaleTier& t : c.tiers) {
    out.push_back(fmt::format("{} {}", t.name, int(t.source)));
    for (const auto& p : t.parts) out.push_back(p.role + p.machine + std::to_string(p.count));
  }
  for (const ClusterNames& n : c.cluster_names)
    for (const auto& [key, name] : n.names)
      out.push_back(fmt::format("{} {} {} {}", n.name, key, name.text, int(name.source)));
  for (const Location& l : c.locations)
    out.push_back(
        fmt::format("{} {} {} {}", to_text(l.provider), l.item, l.region, fmt::join(l.zones, ",")));
  for (const Offering& o : c.offerings)
    out.push_back(fmt::format("{} {} {} {} {} {} {} {} {}", to_text(o.provider), o.item, o.region,
                              fmt::join(o.zones, ","), int(o.covers), o.count, text_of(o.on_demand),
                              text_of(o.spot), o.date));
  for (const Efficiency& e : c.efficiencies)
    out.push_back(fmt::format("{} {} {} {} {} {}", e.accelerator, int(e.precision), e.stack,
                              text_of(e.matmul), text_of(e.convolution), text_of(e.step_spread)));
  for (const LinkClass& l : c.links)
    out.push_back(l.name + text_of(l.efficiency) + text_of(l.latency));
  for (const Dataset& d : c.datasets) out.push_back(d.name + text_of(d.samples));
  for (const Storage& s : c.storages) out.push_back(s.name + text_of(s.read_per_node));
  for (const auto& [key, number] : c.operations.numbers) out.push_back(key + text_of(number));
  return out;
}

}  // namespace

TEST_CASE("permuting the rows of every catalog file changes nothing, the digest included") {
  const fs::path shipped = RECKON_SOURCE_DIR "/catalogs";
  const auto original = load_catalog(std::array{shipped});
  REQUIRE(original.has_value());
  const std::vector<std::string> wanted = dump(*original);
  REQUIRE(wanted.size() > 1500);
  for (std::uint32_t seed = 1; seed <= 8; ++seed) {
    const test::ShuffledCatalog shuffled(shipped, seed);
    REQUIRE(shuffled.moved());
    const auto loaded = load_catalog(std::array{shuffled.directory()});
    if (!loaded) FAIL(format(loaded.error()));
    CHECK(loaded->digest == original->digest);
    CHECK(dump(*loaded) == wanted);
  }
}
