#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/accuracy/named_csv.h"
#include "sim/accuracy/scoring/accuracy.h"
#include "sim/base/unit_text.h"
#include "sim/step/network/collective_cost.h"

// Measured all-reduces: bus bandwidth against message size.
namespace reckon {
namespace {

constexpr std::array<std::string_view, 7> kCollectiveColumns{
    "system", "gpus", "nodes", "collective", "message_bytes", "time_us", "source"};

/// Names are compared by their letters and digits: "A100-SXM4-80" is in "1x 8x A100-SXM4-80GB".
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool other = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.';
    if (upper || other) out += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

/// The longest name of the catalog that a system's description holds.
template <class Items, class Usable>
auto named_in(std::string_view system, const Items& items, Usable usable) {
  const std::string text = plain(system);
  const typename Items::value_type* found = nullptr;
  for (const auto& item : items)
    if (usable(item) && text.find(plain(item.name)) != std::string::npos &&
        (found == nullptr || item.name.size() > found->name.size()))
      found = &item;
  return found;
}

struct System {
  Fabric fabric;
  std::string_view accelerator;
};

tl::expected<System, std::string> system_of(std::string_view text, int gpus, int nodes,
                                            const Catalog& catalog) {
  const Machine* machine =
      named_in(text, catalog.machines, [](const Machine& m) { return !m.accelerator.empty(); });
  const Accelerator* accelerator =
      machine ? catalog.find_accelerator(machine->accelerator)
              : named_in(text, catalog.accelerators, [](const Accelerator&) { return true; });
  if (accelerator == nullptr)
    return tl::unexpected<std::string>("hardware that the catalog does not know");
  if (nodes > 1 && machine == nullptr)
    return tl::unexpected<std::string>("the bandwidth between nodes is not known");
  const LinkClass* peers = catalog.find_link(
      machine && !machine->peer_fabric.empty() ? machine->peer_fabric : accelerator->peer_link);
  const LinkClass* network = machine ? catalog.find_link(machine->network_link) : nullptr;
  if (peers == nullptr) return tl::unexpected<std::string>("a link that the catalog does not know");
  System system;
  system.accelerator = accelerator->name;
  Fabric& f = system.fabric;
  f.nodes = nodes;
  f.ranks_per_node = gpus / nodes;
  const BytesPerSecond printed = accelerator->peer_bandwidth ? accelerator->peer_bandwidth->value
                                                             : accelerator->host_bandwidth.value;
  f.peer = printed * peers->efficiency.value;
  f.peer_latency = peers->latency.value;
  f.peer_law = law_of(*peers);
  if (peers->reduction) f.peer_reduced = f.peer * peers->reduction->value;
  f.nic = f.peer;  // unused on one node
  if (network != nullptr) {
    f.nic = machine->network.value * network->efficiency.value;
    f.nic_latency = network->latency.value;
    f.nic_law = law_of(*network);
  }
  return system;
}

}  // namespace

Expected<CollectiveRuns> score_collectives(std::string_view file_name, std::string_view bytes,
                                           TextPool& pool, const Catalog& catalog) {
  auto csv = NamedCsv::open(file_name, bytes, kCollectiveColumns);
  if (!csv) return tl::unexpected(std::move(csv.error()));
  CollectiveRuns result;
  const auto network = make_fluid_network();
  const SimulatedCollectives cost(*network);
  while (csv->next(result.counts)) {
    const auto skip = [&](const std::string& reason) {
      result.scored.skipped.add(reason, csv->line());
    };
    const auto text = [&](std::string_view name) { return csv->text(name); };
    const auto number = [&](std::string_view name) { return parse_number(text(name)).value_or(0); };
    const double gpus = number("gpus"), nodes = number("nodes");
    const double size = number("message_bytes"), micros = number("time_us");
    if (text("collective") != "all_reduce") {
      skip("no all-reduce");
      continue;
    }
    if (gpus < 2 || nodes < 1 || size < 1 || micros <= 0 || gpus > 1e6 || nodes > gpus) {
      skip("accelerators, nodes, size or time are not printed");
      continue;
    }
    const auto system =
        system_of(text("system"), static_cast<int>(gpus), static_cast<int>(nodes), catalog);
    if (!system) {
      skip(system.error());
      continue;
    }
    const int ranks = static_cast<int>(gpus);
    const Seconds measured{micros * 1e-6};
    const Seconds predicted =
        cost.all_reduce(system->fabric, Bytes{size}, AllReduceKind::automatic).time;
    const auto bus = [&](Seconds t) {
      return bus_bandwidth(CollectiveKind::all_reduce, Bytes{size}, ranks, t).v / 1e9;
    };
    ScoredRun r;
    r.at.line = csv->line();
    r.at.source = pool.keep(text("source"));
    r.at.trust = 'A';
    r.at.run.accelerator = system->accelerator;
    r.at.run.accelerators = ranks;
    r.at.run.nodes = static_cast<int>(nodes);
    constexpr double kLarge = 1e6;  // bytes of the message
    r.figure = r.at.run.model =
        size >= kLarge ? "all-reduce, 1 MB and above" : "all-reduce, below 1 MB";
    // A group is one size on one system.
    r.at.run.variant = pool.keep(fmt::format("{} B", text("message_bytes")));
    r.measured = bus(measured);
    r.predicted = r.low = r.high = bus(predicted);
    result.scored.runs.push_back(r);
  }
  return result;
}

}  // namespace reckon
