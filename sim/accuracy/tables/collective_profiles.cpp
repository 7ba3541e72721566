#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "sim/accuracy/tables/cells.h"
#include "sim/accuracy/tables/tables.h"
#include "sim/catalog/operations_keys.h"
#include "sim/step/network/collective_times.h"

// Collectives measured on described nodes, and fits of such.
namespace reckon {
namespace {

constexpr std::array<std::string_view, 12> kProfileColumns{
    "kind",       "system",        "accelerator", "nodes",     "ranks_per_node",
    "collective", "message_bytes", "latency_us",  "peak_GBps", "share_of_peak_by_size",
    "time_us",    "source"};

/// A fit's row has no size. Its sources say that the peak is reached above 128 MiB; at 1 GiB the
/// latency, which has the calls of the benchmark in it, is a twentieth of the time.
constexpr Bytes kFitSize{1 << 30};
/// Sizes of share_of_peak_by_size: 64 B a rank, twice that, ...
constexpr double kFirstShare = 64;  // bytes a rank

struct Named {
  std::string_view text;
  CollectiveKind kind;
};
constexpr std::array<Named, 4> kKinds{{{"all_reduce", CollectiveKind::all_reduce},
                                       {"all_gather", CollectiveKind::all_gather},
                                       {"reduce_scatter", CollectiveKind::reduce_scatter},
                                       {"all_to_all", CollectiveKind::all_to_all}}};

std::optional<CollectiveKind> kind_of(std::string_view text) {
  for (const Named& n : kKinds)
    if (n.text == text) return n.kind;
  return std::nullopt;
}

Seconds predicted_time(const Fabric& f, CollectiveKind kind, Bytes size) {
  switch (kind) {
    case CollectiveKind::all_gather:
      return all_gather_time(f, size);
    case CollectiveKind::reduce_scatter:
      return reduce_scatter_time(f, size);
    case CollectiveKind::all_to_all:
      return all_to_all_time(f, size);
    default:
      return all_reduce_time(f, size, AllReduceKind::automatic).time;
  }
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The number in front of " Gb/s", in bits; 0: none.
BytesPerSecond printed_network(std::string_view system) {
  const std::size_t end = system.find(" Gb/s");
  if (end == std::string_view::npos) return {};
  const std::size_t begin = system.find_last_of(" ,(", end - 1);
  const auto gbps = parse_number(system.substr(begin + 1, end - begin - 1));
  return gbps && *gbps > 0 ? BytesPerSecond{*gbps * 1e9 / 8} : BytesPerSecond{};
}

/// Cards whose printed form the catalog has joined by bridges, in pairs.
const Accelerator* joined_in_pairs(const Accelerator& card, const Catalog& catalog) {
  for (const Accelerator& a : catalog.accelerators)
    if (a.name != card.name && a.name.starts_with(card.name) && a.peer_bandwidth) return &a;
  return nullptr;
}

tl::expected<Fabric, std::string> fabric_of_row(std::string_view system, const Accelerator& card,
                                                int nodes, int ranks, const Catalog& catalog) {
  Fabric f;
  f.nodes = nodes;
  f.ranks_per_node = ranks;
  const bool pairs = contains(system, "NVLink bridges in pairs");
  const Accelerator* joined = pairs && ranks <= 2 ? joined_in_pairs(card, catalog) : nullptr;
  const Accelerator& linked = joined != nullptr ? *joined : card;
  const bool own = linked.peer_bandwidth && (!pairs || joined != nullptr);
  const LinkClass* peers = catalog.find_link(own ? linked.peer_link : "pcie");
  if (peers == nullptr) return tl::unexpected<std::string>("a link that the catalog does not know");
  f.peer =
      (own ? linked.peer_bandwidth->value : card.host_bandwidth.value) * peers->efficiency.value;
  if (peers->reduction) f.peer_reduced = f.peer * peers->reduction->value;
  f.peer_latency = peers->latency.value;
  f.peer_law = law_of(*peers);
  f.nic = f.peer;  // unused on one node
  if (nodes == 1) return f;
  const BytesPerSecond printed = printed_network(system);
  const LinkClass* network = catalog.find_link(contains(system, "RoCE")         ? "roce"
                                               : contains(system, "InfiniBand") ? "infiniband"
                                                                                : "");
  if (printed.v == 0 || network == nullptr)
    return tl::unexpected<std::string>("the link between its nodes is not stated");
  // A node of fewer ranks uses so many NICs where each GPU has one.
  const double nics = contains(system, "a GPU") ? ranks : 1;
  f.nic = printed * nics * network->efficiency.value;
  f.nic_latency = network->latency.value;
  f.nic_law = law_of(*network);
  return f;
}

/// The share of the peak that the fit reaches at `size`: linear in log2 of a rank's bytes.
std::optional<double> share_at(std::string_view shares, Bytes size, int ranks) {
  if (shares.empty()) return 1.0;
  std::vector<double> values;
  while (!shares.empty()) {
    const std::size_t end = std::min(shares.find(' '), shares.size());
    const auto value = parse_number(shares.substr(0, end));
    if (!value || *value <= 0 || *value > 1) return std::nullopt;
    values.push_back(*value);
    shares.remove_prefix(std::min(end + 1, shares.size()));
  }
  const double at = std::clamp(std::log2(size.v / ranks / kFirstShare), 0.0,
                               static_cast<double>(values.size() - 1));
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - double(below)) * (values[above] - values[below]);
}

struct Message {
  Bytes size{};
  Seconds measured{};
};

/// What the row measured: a time of one message, or of a fit at kFitSize.
Message message_of(Cells& cells, int ranks) {
  constexpr double kMicro = 1e-6;
  if (cells.text("kind") == "measured")
    return {Bytes{cells.above_zero("message_bytes")},
            Seconds{cells.above_zero("time_us") * kMicro}};
  if (cells.text("kind") != "fit") {
    cells.wrong("kind", "kind is fit or measured");
    return {};
  }
  const Seconds latency{cells.above_zero("latency_us") * kMicro};
  const BytesPerSecond peak{cells.above_zero("peak_GBps") * 1e9};
  const auto share = share_at(cells.text("share_of_peak_by_size"), kFitSize, ranks);
  if (!share) cells.wrong("share_of_peak_by_size", "share_of_peak_by_size holds numbers of 0 to 1");
  return {kFitSize, latency + kFitSize / (peak * share.value_or(1))};
}

std::string figure_of(std::string_view kind, std::string_view collective, Bytes size) {
  std::string name(collective);
  std::ranges::replace(name, '_', '-');
  if (kind == "fit") return name + ", fits at 1 GiB";
  constexpr Bytes kLarge{1e6};
  return name + (size >= kLarge ? ", 1 MB and above" : ", below 1 MB");
}

}  // namespace

Expected<ScoredTable> score_collective_profiles(std::string_view file_name, std::string_view bytes,
                                                TextPool& pool, const Catalog& catalog) {
  auto csv = NamedCsv::open(file_name, bytes, kProfileColumns);
  if (!csv) return tl::unexpected(std::move(csv.error()));
  ScoredTable table;
  const Seconds call{catalog.operations.at(keys::kCollectiveCall).value};
  while (csv->next(table.counts)) {
    Cells cells(*csv, table.counts);
    const int nodes = cells.count("nodes"), per_node = cells.count("ranks_per_node", 1024);
    const int ranks = nodes * per_node;
    const auto kind = kind_of(cells.text("collective"));
    if (!kind)
      cells.wrong("collective",
                  "collective is all_reduce, all_gather, reduce_scatter or all_to_all");
    const Message message = message_of(cells, ranks);
    if (!cells.ok()) continue;
    const auto skip = [&](const std::string& why) { table.scored.skipped.add(why, csv->line()); };
    const Accelerator* card = catalog.find_accelerator(cells.text("accelerator"));
    if (card == nullptr) {
      skip(fmt::format("unknown accelerator {}", cells.text("accelerator")));
      continue;
    }
    const auto fabric = fabric_of_row(cells.text("system"), *card, nodes, per_node, catalog);
    if (!fabric || ranks < 2) {
      skip(fabric ? "one rank alone" : fabric.error());
      continue;
    }
    const auto bus = [&](Seconds t) {
      return bus_bandwidth(*kind, message.size, ranks, t).v / 1e9;
    };
    ScoredRun r;
    r.at.line = csv->line();
    r.at.source = pool.keep(cells.text("system"));
    r.at.trust = 'A';
    r.at.run.accelerator = card->name;
    r.at.run.accelerators = ranks;
    r.at.run.nodes = nodes;
    r.at.run.model = pool.keep(cells.text("collective"));
    r.at.run.variant = pool.keep(fmt::format("{} {} x {} {:.0f} B", cells.text("collective"), nodes,
                                             per_node, message.size.v));
    r.figure = pool.keep(figure_of(cells.text("kind"), cells.text("collective"), message.size));
    r.measured = bus(message.measured);
    // A call that is timed by itself waits for its host.
    r.predicted = r.low = r.high = bus(call + predicted_time(*fabric, *kind, message.size));
    table.scored.runs.push_back(r);
  }
  return table;
}

}  // namespace reckon
