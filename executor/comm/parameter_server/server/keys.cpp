#include "executor/comm/parameter_server/server/keys.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <xxhash.h>

#include "executor/comm/wire.h"
#include "sim/base/check.h"
#include "sim/step/buckets.h"

namespace reckon {

ParameterRange ServerKeys::part(std::size_t group, int server) const {
  RECKON_CHECK(group < groups.size());
  RECKON_CHECK(!is_table(group));
  RECKON_CHECK(server >= 0 && server < servers());
  const ParameterRange whole = groups[group];
  double before = 0, total = 0;
  for (std::size_t s = 0; s < weights.size(); ++s) {
    if (int(s) < server) before += weights[s];
    total += weights[s];
  }
  const auto edge = [&](double share) {
    return whole.first + std::size_t(std::llround(double(whole.count) * (share / total)));
  };
  const std::size_t first = edge(before), end = edge(before + weights[std::size_t(server)]);
  return {.first = first, .count = end - first};
}

RowParts ServerKeys::rows(std::size_t group) const {
  RECKON_CHECK(is_table(group));
  return RowParts(std::int64_t(tables[group].rows), servers(), tables[group].rule);
}

std::size_t ServerKeys::count_on(std::size_t group, int server) const {
  if (!is_table(group)) return part(group, server).count;
  return std::size_t(rows(group).rows_of(server)) * tables[group].width;
}

std::vector<float> ServerKeys::gather(std::size_t group, int server,
                                      std::span<const float> all) const {
  if (!is_table(group)) {
    const ParameterRange keys = part(group, server);
    const auto mine = all.subspan(keys.first, keys.count);
    return {mine.begin(), mine.end()};
  }
  const RowParts parts = rows(group);
  const std::size_t width = tables[group].width;
  std::vector<float> mine;
  mine.reserve(count_on(group, server));
  for (std::int64_t k = 0; k < parts.rows_of(server); ++k) {
    const auto row = all.subspan(std::size_t(parts.row_at(server, k)) * width, width);
    mine.insert(mine.end(), row.begin(), row.end());
  }
  return mine;
}

void ServerKeys::scatter(std::size_t group, int server, std::span<const float> mine,
                         std::span<float> all) const {
  RECKON_CHECK(mine.size() == count_on(group, server));
  if (!is_table(group)) {
    std::ranges::copy(mine, all.subspan(part(group, server).first).begin());
    return;
  }
  const RowParts parts = rows(group);
  const std::size_t width = tables[group].width;
  for (std::int64_t k = 0; k < parts.rows_of(server); ++k)
    std::ranges::copy(mine.subspan(std::size_t(k) * width, width),
                      all.subspan(std::size_t(parts.row_at(server, k)) * width).begin());
}

std::size_t ServerKeys::count() const {
  return groups.empty() ? 0 : groups.back().first + groups.back().count;
}

ServerKeys server_keys(std::span<const ParameterRange> layers, std::vector<double> weights,
                       std::span<const TableKeys> tables) {
  RECKON_CHECK(!weights.empty());
  RECKON_CHECK(tables.empty() || tables.size() == layers.size());
  for (const double weight : weights) RECKON_CHECK(weight > 0);
  const auto is_table = [&](std::size_t l) { return !tables.empty() && tables[l]; };
  std::size_t count = 0, dense = 0;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    RECKON_CHECK(layers[l].first == count);
    count += layers[l].count;
    if (!is_table(l)) dense += layers[l].count;
  }
  const auto bytes = [](std::size_t keys) { return Bytes{double(keys * sizeof(float))}; };
  ServerKeys keys{.groups = {}, .weights = std::move(weights)};
  ServerGroupRule rule(bytes(dense), step_assumptions::kParameterServerGroups);
  ParameterRange open;
  const auto close = [&](TableKeys table) {
    keys.groups.push_back(open);
    keys.tables.push_back(table);
    open = {.first = open.first + open.count, .count = 0};
  };
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (is_table(l) && open.count > 0) close({});
    open.count += layers[l].count;
    if (is_table(l)) {
      RECKON_CHECK(layers[l].count % tables[l].width == 0);
      RECKON_CHECK(layers[l].count <= tables[l].rows * tables[l].width);
      close(tables[l]);
    } else if (rule.add(bytes(layers[l].count))) {
      close({});
    }
  }
  if (open.count > 0 && !keys.groups.empty() && !keys.tables.back())
    keys.groups.back().count += open.count;
  else if (open.count > 0)
    close({});
  return keys;
}

std::uint64_t ServerJob::digest() const {
  const auto bits = [](double value) { return std::bit_cast<std::int64_t>(value); };
  FieldWriter fields;
  for (const ParameterRange& g : keys.groups)
    fields.number(std::int64_t(g.first)).number(std::int64_t(g.count));
  for (const TableKeys& t : keys.tables)
    fields.number(std::int64_t(t.rows)).number(std::int64_t(t.width)).number(int(t.rule));
  for (const double weight : keys.weights) fields.number(bits(weight));
  fields.number(workers)
      .number(ranks_of_worker)
      .number(int(synchronous))
      .number(backup_workers)
      .number(staleness);
  fields.number(int(phases_apart)).number(std::int64_t(optimizer.index()));
  if (const auto* sgd = std::get_if<SgdMomentum>(&optimizer)) {
    fields.number(bits(sgd->momentum)).number(bits(sgd->weight_decay));
  } else {
    const AdamW& adamw = std::get<AdamW>(optimizer);
    fields.number(bits(adamw.beta1)).number(bits(adamw.beta2));
    fields.number(bits(adamw.epsilon)).number(bits(adamw.weight_decay));
  }
  for (const TrainedRange& t : trained)
    fields.number(std::int64_t(t.first)).number(std::int64_t(t.count)).number(int(t.decays));
  return XXH3_64bits(fields.bytes().data(), fields.bytes().size());
}

}  // namespace reckon
