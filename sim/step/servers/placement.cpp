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

  std::vector<std::size_t> place(Bytes variable) {
    if (!(variable.v > 0)) return {};
    if (rule_ == ServerShards::even) {
      std::vector<std::size_t> each(static_cast<std::size_t>(servers_));
      std::iota(each.begin(), each.end(), std::size_t{0});
      return each;
    }
    const double pieces =
        partition_.v > 0 ? std::clamp(std::ceil(variable / partition_), 1.0, kMostPieces) : 1;
    std::vector<std::size_t> servers;
    for (double piece = 0; piece < pieces; ++piece)
      servers.push_back(rule_ == ServerShards::round_robin ? next_++ % std::size_t(servers_)
                                                           : least_loaded(variable / pieces));
    return servers;
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
    const std::vector<std::size_t> pieces = placer.place(variable);
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

/// What a step moves of one layer, by server.
struct LayerTraffic {
  Bytes size{}, updated_size{};
  std::vector<Bytes> values, ids, updated;
};

/// Of layers in the order of the forward pass.
class TrafficOfLayers {
 public:
  TrafficOfLayers(const PlannedWorkload& job, int servers, int live_workers)
      : job_(job),
        servers_(std::size_t(servers)),
        placer_(servers, job.strategy.servers->shards, job.strategy.servers->partition),
        draws_(samples_of_worker(job)),
        workers_(live_workers) {
    if (job.strategy.servers->sparse_embeddings) tables_ = lookup_tables(job.model);
  }

  LayerTraffic of(LayerId layer) {
    const Bytes variable =
        double(job_.model.counts()[index(layer)].trainable_parameters) * kVariable;
    const std::vector<std::size_t> pieces = placer_.place(variable);
    LayerTraffic t{.values = std::vector<Bytes>(servers_),
                   .ids = std::vector<Bytes>(servers_),
                   .updated = std::vector<Bytes>(servers_)};
    const auto table = std::ranges::find(tables_, layer, &LookupTable::layer);
    if (table != tables_.end()) {
      add_rows(t, *table, pieces);
      return t;
    }
    for (const std::size_t server : pieces) t.values[server] += variable / double(pieces.size());
    t.updated = t.values;
    t.size = t.updated_size = variable;
    return t;
  }

 private:
  void add_rows(LayerTraffic& t, const LookupTable& table,
                const std::vector<std::size_t>& pieces) const {
    const DrawnRows drawn(table.rows, job_.zipf_exponent.value);
    const RowParts parts(table.rows, std::int64_t(pieces.size()), job_.strategy.servers->rows);
    const double draws = draws_ * double(table.ids);
    const auto own = drawn.distinct_by_part(draws, parts);
    const auto all = workers_ > 1 ? drawn.distinct_by_part(draws * workers_, parts) : own;
    const Bytes row = double(table.width) * kVariable;
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      t.values[pieces[p]] += own[p] * row;
      t.ids[pieces[p]] += own[p] * kRowId;
      t.updated[pieces[p]] += all[p] * row;
      t.size += own[p] * row;
      t.updated_size += all[p] * row;
    }
  }

  const PlannedWorkload& job_;
  std::size_t servers_;
  PiecePlacer placer_;
  double draws_;  // samples of a worker
  int workers_;
  std::vector<LookupTable> tables_;
};

Bytes sum_of(const std::vector<Bytes>& parts) {
  return std::accumulate(parts.begin(), parts.end(), Bytes{});
}
void add_each(std::vector<Bytes>& to, const std::vector<Bytes>& more) {
  to.resize(more.size());
  for (std::size_t k = 0; k < more.size(); ++k) to[k] += more[k];
}

LayerTraffic& operator+=(LayerTraffic& to, const LayerTraffic& more) {
  to.size += more.size;
  to.updated_size += more.updated_size;
  add_each(to.values, more.values);
  add_each(to.ids, more.ids);
  add_each(to.updated, more.updated);
  return to;
}

ServerGroup group_of(const LayerTraffic& t) {
  ServerGroup g{.size = t.size, .shards = t.values};
  g.ids = {sum_of(t.ids), t.ids};
  g.updated = ServerBytes{t.updated_size, t.updated};
  return g;
}

bool nearly_alike(const std::vector<ServerGroup>& groups, std::size_t servers) {
  constexpr double kMore = 0.005;  // of the mean, a share
  std::vector<Bytes> all(servers);
  for (const ServerGroup& g : groups) add_each(all, g.shards);
  return *std::ranges::max_element(all) <= (1 + kMore) / double(servers) * sum_of(all);
}

}  // namespace

std::vector<ServerGroup> server_groups(const PlannedWorkload& job, const ComputeTimes& times,
                                       int count, int servers, int live_workers) {
  check_placement(times.layers.size(), servers);
  TrafficOfLayers traffic(job, servers, live_workers);
  std::vector<LayerTraffic> by_layer;
  Bytes all{};
  for (const LayerTime& t : times.layers) {
    by_layer.push_back(traffic.of(t.layer));
    all += by_layer.back().size;
  }
  ServerGroupRule rule(all, count);
  std::vector<ServerGroup> groups;
  LayerTraffic open;
  Seconds forward{}, backward{};
  const auto close = [&] {
    groups.push_back(group_of(open));
    groups.back().forward = std::exchange(forward, {});
    groups.back().backward = std::exchange(backward, {});
    open = {};
  };
  for (std::size_t i = 0; i < times.layers.size(); ++i) {
    forward += times.layers[i].forward;
    backward += times.layers[i].backward;
    open += by_layer[i];
    if (rule.add(by_layer[i].size)) close();
  }
  if (open.size.v > 0 || groups.empty()) {
    close();
  } else {
    groups.back().forward += forward;
    groups.back().backward += backward;
  }
  if (job.strategy.servers->shards == ServerShards::even &&
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
    const std::vector<std::size_t> pieces = placer.place(parameters * kVariable);
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
