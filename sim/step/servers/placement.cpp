#include "sim/step/servers/placement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>

#include "sim/base/limits.h"
#include "sim/model/lookup_tables.h"
#include "sim/step/buckets.h"

namespace reckon {
namespace {

constexpr Bytes kVariable{4};  // fp32 on the servers and on the wire

/// Of one variable. So many are as good as an even split, and no partition of a byte is endless.
constexpr double kMostPieces = 65'536;

/// What is held for each variable on each server must fit in memory.
void check_placement(std::size_t variables, int servers) {
  constexpr double kMost = 1e8;  // shards
  if (double(variables) * servers > kMost)
    throw TooMuchWork(
        fmt::format("{} variables on {} parameter servers are more than {:.0e} shards", variables,
                    servers, kMost),
        "fewer parameter servers, or shards: even");
}

/// The server of each piece of a variable, of one variable after the other.
class PiecePlacer {
 public:
  PiecePlacer(int servers, ServerShards rule, Bytes partition)
      : servers_(servers), rule_(rule), partition_(partition) {
    for (int k = 0; k < servers; ++k) by_load_.emplace(0.0, k);
  }

  /// Valid until the next is placed.
  std::span<const std::size_t> place(Bytes variable) {
    placed_.clear();
    if (!(variable.v > 0)) return placed_;
    if (rule_ == ServerShards::even) {
      placed_.resize(static_cast<std::size_t>(servers_));
      std::iota(placed_.begin(), placed_.end(), std::size_t{0});
      return placed_;
    }
    const double pieces =
        partition_.v > 0 ? std::clamp(std::ceil(variable / partition_), 1.0, kMostPieces) : 1;
    for (double piece = 0; piece < pieces; ++piece)
      placed_.push_back(rule_ == ServerShards::round_robin ? next_++ % std::size_t(servers_)
                                                           : least_loaded(variable / pieces));
    return placed_;
  }

 private:
  /// The server that holds least, the first of equals.
  std::size_t least_loaded(Bytes piece) {
    const auto [held, server] = by_load_.top();
    by_load_.pop();
    by_load_.emplace(held + piece.v, server);
    return std::size_t(server);
  }

  int servers_;
  ServerShards rule_;
  Bytes partition_;
  std::size_t next_ = 0;
  std::vector<std::size_t> placed_;
  std::priority_queue<std::pair<double, int>, std::vector<std::pair<double, int>>, std::greater<>>
      by_load_;
};

}  // namespace

std::vector<std::vector<Bytes>> placed_on_servers(std::span<const Bytes> variables, int servers,
                                                  ServerShards rule, Bytes partition) {
  check_placement(variables.size(), servers);
  std::vector<std::vector<Bytes>> placed;
  PiecePlacer placer(servers, rule, partition);
  for (const Bytes variable : variables) {
    auto& of = placed.emplace_back(std::size_t(servers), Bytes{});
    const std::span<const std::size_t> pieces = placer.place(variable);
    for (const std::size_t server : pieces) of[server] += variable / double(pieces.size());
  }
  return placed;
}

double samples_of_worker(const PlannedWorkload& job) {
  const PlannedStrategy& s = job.strategy;
  const double at_once = double(s.layout.micro_batch) * s.accelerators();
  const double accumulation = std::max(1.0, std::floor(double(job.global_batch) / at_once));
  return accumulation * s.layout.micro_batch * std::max(1, s.accelerators_per_worker);
}

namespace {

/// What a step moves of one layer from and to one server.
struct ServerShare {
  std::size_t server = 0;
  Bytes values{}, ids{}, updated{};
};

/// What a step moves of layers in the order of the forward pass.
class TrafficOfLayers {
 public:
  /// Of one layer; its shares are those from `first` on.
  struct Layer {
    Bytes size{}, updated_size{};
    std::size_t first = 0, count = 0;
  };

  TrafficOfLayers(const PlannedWorkload& job, int servers, int live_workers)
      : job_(job),
        placer_(servers, job.strategy.servers->shards, job.strategy.servers->partition),
        draws_(samples_of_worker(job)),
        workers_(live_workers),
        share_of_(std::size_t(servers)) {
    if (job.strategy.servers->sparse_embeddings) tables_ = lookup_tables(job.model);
  }

  /// Has each server as much of every layer?
  bool alike() const {
    return job_.strategy.servers->shards == ServerShards::even && tables_.empty();
  }

  /// Of the next layer. Where servers are alike it has no shares.
  Layer add(LayerId layer) {
    const Bytes variable =
        double(job_.model.counts()[index(layer)].trainable_parameters) * kVariable;
    Layer t{.first = shares_.size()};
    const auto table = std::ranges::find(tables_, layer, &LookupTable::layer);
    if (table != tables_.end()) {
      add_rows(t, *table, placer_.place(variable));
    } else {
      if (!alike()) add_whole(variable, placer_.place(variable));
      t.size = t.updated_size = variable;
    }
    t.count = shares_.size() - t.first;
    for (const ServerShare& share : shares_of(t)) share_of_[share.server] = 0;
    return t;
  }

  std::span<const ServerShare> shares_of(const Layer& t) const {
    return std::span(shares_).subspan(t.first, t.count);
  }

 private:
  void add_whole(Bytes variable, std::span<const std::size_t> pieces) {
    const Bytes piece = variable / double(pieces.size());
    for (const std::size_t server : pieces) {
      ServerShare& share = share_of(server);
      share.values += piece;
      share.updated = share.values;
    }
  }
  void add_rows(Layer& t, const LookupTable& table, std::span<const std::size_t> pieces) {
    const DrawnRows drawn(table.rows, job_.zipf_exponent.value);
    const RowParts parts(table.rows, std::int64_t(pieces.size()), job_.strategy.servers->rows);
    const double draws = draws_ * double(table.ids);
    const auto own = drawn.distinct_by_part(draws, parts);
    const auto all = workers_ > 1 ? drawn.distinct_by_part(draws * workers_, parts) : own;
    const Bytes row = double(table.width) * kVariable;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      ServerShare& share = share_of(pieces[p]);
      share.values += own[p] * row;
      share.ids += own[p] * kRowId;
      share.updated += all[p] * row;
      t.size += own[p] * row;
      t.updated_size += all[p] * row;
    }
  }
  /// The open layer's with this server.
  ServerShare& share_of(std::size_t server) {
    if (share_of_[server] == 0) {
      shares_.push_back({.server = server});
      share_of_[server] = shares_.size();
    }
    return shares_[share_of_[server] - 1];
  }

  const PlannedWorkload& job_;
  PiecePlacer placer_;
  double draws_;  // samples of a worker
  int workers_;
  std::vector<LookupTable> tables_;
  std::vector<ServerShare> shares_;
  std::vector<std::size_t> share_of_;  // by server, of the open layer: 1 + where; 0: none yet
};

Bytes sum_of(const std::vector<Bytes>& parts) {
  return std::accumulate(parts.begin(), parts.end(), Bytes{});
}

ServerGroup empty_group(int servers) {
  const std::vector<Bytes> none(static_cast<std::size_t>(servers));
  return {.shards = none, .ids = {.shards = none}, .updated = ServerBytes{.shards = none}};
}

void add_layer(ServerGroup& to, const TrafficOfLayers::Layer& layer,
               std::span<const ServerShare> shares) {
  to.size += layer.size;
  to.updated->size += layer.updated_size;
  for (const ServerShare& share : shares) {
    to.shards[share.server] += share.values;
    to.ids.shards[share.server] += share.ids;
    to.updated->shards[share.server] += share.updated;
  }
}

bool nearly_alike(const std::vector<ServerGroup>& groups, std::size_t servers) {
  constexpr double kMore = 0.005;  // of the mean, a share
  std::vector<Bytes> all(servers);
  for (const ServerGroup& g : groups)
    for (std::size_t k = 0; k < servers; ++k) all[k] += g.shards[k];
  return *std::ranges::max_element(all) <= (1 + kMore) / double(servers) * sum_of(all);
}

}  // namespace

std::vector<ServerGroup> server_groups(const PlannedWorkload& job, const ComputeTimes& times,
                                       int count, int servers, int live_workers) {
  check_placement(times.layers.size(), servers);
  TrafficOfLayers traffic(job, servers, live_workers);
  std::vector<TrafficOfLayers::Layer> by_layer;
  by_layer.reserve(times.layers.size());
  Bytes all{};
  for (const LayerTime& t : times.layers) {
    by_layer.push_back(traffic.add(t.layer));
    all += by_layer.back().size;
  }
  const int apart = traffic.alike() ? 0 : servers;  // servers of which each has bytes of its own
  ServerGroupRule rule(all, count);
  std::vector<ServerGroup> groups;
  ServerGroup open = empty_group(apart);
  const auto close = [&] {
    open.ids.size = sum_of(open.ids.shards);
    groups.push_back(std::exchange(open, empty_group(apart)));
  };
  for (std::size_t i = 0; i < times.layers.size(); ++i) {
    open.forward += times.layers[i].forward;
    open.backward += times.layers[i].backward;
    add_layer(open, by_layer[i], traffic.shares_of(by_layer[i]));
    if (rule.add(by_layer[i].size)) close();
  }
  if (open.size.v > 0 || groups.empty()) {
    close();
  } else {
    groups.back().forward += open.forward;
    groups.back().backward += open.backward;
  }
  if (apart > 0 && job.strategy.servers->shards == ServerShards::even &&
      nearly_alike(groups, std::size_t(servers)))
    for (ServerGroup& g : groups) {
      g.shards.clear();
      g.ids.shards.clear();
      g.updated->shards.clear();
    }
  return groups;
}

PulledTables pulled_tables(const PlannedWorkload& job) {
  PulledTables pulled;
  if (!job.strategy.servers || !job.strategy.servers->sparse_embeddings) return pulled;
  const double samples = samples_of_worker(job) / std::max(1, job.strategy.accelerators_per_worker);
  for (const LookupTable& table : lookup_tables(job.model)) {
    const DrawnRows drawn(table.rows, job.zipf_exponent.value);
    pulled.parameters += double(table.rows) * double(table.width);
    pulled.pulled += drawn.distinct(samples * double(table.ids)) * double(table.width);
  }
  return pulled;
}

HeldVariables variables_held(const PlannedWorkload& job, int servers) {
  const ParameterServers& s = *job.strategy.servers;
  std::vector<LookupTable> tables;
  if (s.sparse_embeddings) tables = lookup_tables(job.model);
  HeldVariables held{std::vector<Bytes>(std::size_t(servers)),
                     std::vector<Bytes>(std::size_t(servers))};
  PiecePlacer placer(servers, s.shards, s.partition);
  for (const Layer& layer : job.model.layers()) {
    const double parameters = double(job.model.counts()[index(layer.id)].trainable_parameters);
    const std::span<const std::size_t> pieces = placer.place(parameters * kVariable);
    if (pieces.empty()) continue;
    const Bytes piece = parameters * kVariable / double(pieces.size());
    const bool whole = std::ranges::find(tables, layer.id, &LookupTable::layer) == tables.end();
    for (const std::size_t server : pieces) {
      held.by_server[server] += piece;
      if (whole) held.buffered[server] += piece;
    }
    held.largest_piece = std::max(held.largest_piece, piece);
  }
  return held;
}

}  // namespace reckon
