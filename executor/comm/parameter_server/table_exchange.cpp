#include "executor/comm/parameter_server/table_exchange.h"

#include <algorithm>

#include "sim/base/check.h"

namespace reckon {

TableExchange::TableExchange(const ServerJob& job, const Links& links)
    : job_(job), links_(links), rows_(job.keys.groups.size()) {
  for (std::size_t g = 0; g < rows_.size(); ++g) any_ = any_ || job.keys.is_table(g);
}

std::size_t TableExchange::group_of(std::size_t table) const {
  for (std::size_t g = 0; g < rows_.size(); ++g)
    if (job_.keys.is_table(g) && job_.keys.groups[g].first == table) return g;
  RECKON_CHECK(false);
  return 0;
}

void TableExchange::wait_for_all() {
  for (const auto& link : links_) pulled_.sent += link->wait().sent;
}

/// One after the other: this rank has one whole table at a time.
void TableExchange::initialize() {
  for (std::size_t g = 0; g < rows_.size(); ++g) {
    if (!job_.keys.is_table(g)) continue;
    RECKON_CHECK(draw_);
    std::vector<float> all(job_.keys.tables[g].rows * job_.keys.tables[g].width);
    draw_(job_.keys.groups[g].first, all);
    std::vector<std::vector<float>> parts;
    parts.reserve(links_.size());
    for (std::size_t s = 0; s < links_.size(); ++s)
      links_[s]->initialize(g, parts.emplace_back(job_.keys.gather(g, int(s), all)));
    wait_for_all();
  }
}

/// Rows that no micro-batch of this step has named before are pulled, each once.
std::vector<std::size_t> TableExchange::need(std::int64_t step, std::size_t table,
                                             std::span<const std::int64_t> ids,
                                             std::span<float> values) {
  const auto begin = Deadline::Clock::now();
  const std::size_t group = group_of(table);
  StepRows& rows = rows_[group];
  const TableKeys& keys = job_.keys.tables[group];
  const std::size_t room = job_.keys.groups[group].count / keys.width;
  std::vector<std::size_t> places;
  places.reserve(ids.size());
  std::vector<RowId> fresh;
  for (const std::int64_t id : ids) {
    RECKON_CHECK(id >= 0 && id < std::int64_t(keys.rows));
    const auto [named, is_fresh] = rows.places.try_emplace(id, rows.places.size());
    RECKON_CHECK(named->second < room);
    places.push_back(named->second);
    if (is_fresh) fresh.push_back(id);
  }
  std::ranges::sort(fresh);
  rows.ids.insert(rows.ids.end(), fresh.begin(), fresh.end());
  pull(step, group, fresh, values);
  pulled_.time += Deadline::Clock::now() - begin;
  return places;
}

void TableExchange::pull(std::int64_t step, std::size_t group, std::span<const RowId> ids,
                         std::span<float> values) {
  const RowParts parts = job_.keys.rows(group);
  const std::size_t width = job_.keys.tables[group].width;
  std::vector<std::vector<RowId>> asked(links_.size());
  for (const RowId id : ids) asked[std::size_t(parts.part_of(id))].push_back(id);
  std::vector<std::vector<float>> given;
  given.reserve(links_.size());
  for (std::size_t s = 0; s < links_.size(); ++s)
    links_[s]->pull_rows(step, group, asked[s], given.emplace_back(asked[s].size() * width));
  wait_for_all();
  const auto room = values.subspan(job_.keys.groups[group].first);
  for (std::size_t s = 0; s < links_.size(); ++s)
    for (std::size_t k = 0; k < asked[s].size(); ++k)
      std::ranges::copy(std::span(given[s]).subspan(k * width, width),
                        room.subspan(rows_[group].places.at(asked[s][k]) * width).begin());
}

void TableExchange::push(std::int64_t step, std::size_t group, std::span<const float> gradients) {
  StepRows& rows = rows_[group];
  std::ranges::sort(rows.ids);
  const RowParts parts = job_.keys.rows(group);
  const std::size_t width = job_.keys.tables[group].width;
  const auto room = gradients.subspan(job_.keys.groups[group].first);
  std::vector<std::vector<RowId>> ids(links_.size());
  for (const RowId id : rows.ids) ids[std::size_t(parts.part_of(id))].push_back(id);
  rows.pushed.resize(links_.size());
  for (std::size_t s = 0; s < links_.size(); ++s) {
    std::vector<std::byte>& payload = rows.pushed[s];
    const auto named = std::as_bytes(std::span(ids[s]));
    payload.assign(named.begin(), named.end());
    for (const RowId id : ids[s]) {
      const auto row = std::as_bytes(room.subspan(rows.places.at(id) * width, width));
      payload.insert(payload.end(), row.begin(), row.end());
    }
    links_[s]->push_rows(step, group, payload);
  }
}

void TableExchange::drop() {
  for (StepRows& rows : rows_) {
    rows.places.clear();
    rows.ids.clear();
  }
}

std::vector<WholeTable> TableExchange::fetch(std::int64_t step, std::span<float> values,
                                             std::size_t buffers) {
  if (!any_) return {};
  std::vector<std::vector<float>> by_group(rows_.size());
  for (std::size_t g = 0; g < by_group.size(); ++g)
    if (job_.keys.is_table(g))
      by_group[g].resize(job_.keys.tables[g].rows * job_.keys.tables[g].width);
  for (const auto& link : links_) link->pull_all(step, values, by_group);
  wait_for_all();
  std::vector<WholeTable> tables;
  for (std::size_t g = 0; g < by_group.size(); ++g) {
    if (!job_.keys.is_table(g)) continue;
    tables.push_back({.table = job_.keys.groups[g].first, .values = std::move(by_group[g])});
    tables.back().optimizer.resize(buffers);
    if (buffers > 0) fetch_state(g, tables.back());
  }
  return tables;
}

void TableExchange::fetch_state(std::size_t group, WholeTable& table) {
  std::vector<std::vector<float>> parts;
  parts.reserve(links_.size());
  for (std::size_t s = 0; s < links_.size(); ++s)
    links_[s]->get_state(
        group, parts.emplace_back(job_.keys.count_on(group, int(s)) * table.optimizer.size()));
  wait_for_all();
  for (std::vector<float>& buffer : table.optimizer) buffer.resize(table.values.size());
  for (std::size_t s = 0; s < links_.size(); ++s) {
    const std::size_t count = job_.keys.count_on(group, int(s));
    for (std::size_t b = 0; b < table.optimizer.size(); ++b)
      job_.keys.scatter(group, int(s), std::span(parts[s]).subspan(b * count, count),
                        table.optimizer[b]);
  }
}

void TableExchange::restore(std::span<const WholeTable> tables) {
  for (const WholeTable& table : tables) {
    const std::size_t g = group_of(table.table);
    std::vector<std::vector<float>> parts(links_.size());
    for (std::size_t s = 0; s < links_.size(); ++s) {
      for (const std::vector<float>& buffer : table.optimizer) {
        const std::vector<float> mine = job_.keys.gather(g, int(s), buffer);
        parts[s].insert(parts[s].end(), mine.begin(), mine.end());
      }
      links_[s]->put_state(g, parts[s]);
    }
    wait_for_all();
  }
}

}  // namespace reckon
