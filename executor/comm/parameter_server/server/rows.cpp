#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "executor/comm/parameter_server/server/state.h"
#include "executor/comm/rank_parts.h"
#include "executor/comm/wire.h"
#include "sim/base/check.h"

// Embedding tables of a parameter server, of which rows are pulled and pushed.
namespace reckon {

bool ServerState::push_rows(int worker, std::size_t group, std::vector<std::int64_t> ids,
                            std::vector<float> gradients) {
  const RowParts parts = job_.keys.rows(group);
  RECKON_CHECK(gradients.size() == ids.size() * width(group));
  for (std::size_t k = 0; k < ids.size(); ++k) {
    if (ids[k] < 0 || ids[k] >= parts.rows() || parts.part_of(ids[k]) != server_) return false;
    if (k > 0 && ids[k] <= ids[k - 1]) return false;
  }
  for (std::int64_t& id : ids) id = parts.place_of(id);
  Group& g = groups_[group];
  g.places[std::size_t(worker)] = std::move(ids);
  g.gradients[std::size_t(worker)] = std::move(gradients);
  return true;
}

/// Rows that several workers have pushed are added up in the order of the ranks, as a dense sum
/// would: whoever has none of a row adds nothing.
void ServerState::apply_rows(Group& group, std::span<const int> workers, double scale,
                             std::int64_t step, double learning_rate) {
  const std::size_t width = group.width;
  std::vector<std::size_t> at(workers.size());  // the next of each worker's rows
  std::vector<float> sum(width);
  for (;;) {
    std::int64_t place = std::numeric_limits<std::int64_t>::max();
    for (std::size_t k = 0; k < workers.size(); ++k) {
      const auto& places = group.places[std::size_t(workers[k])];
      if (at[k] < places.size()) place = std::min(place, places[at[k]]);
    }
    if (place == std::numeric_limits<std::int64_t>::max()) return;
    bool first = true;
    for (std::size_t k = 0; k < workers.size(); ++k) {
      const auto worker = std::size_t(workers[k]);
      const auto& places = group.places[worker];
      if (at[k] >= places.size() || places[at[k]] != place) continue;
      const auto row =
          std::span<const float>(group.gradients[worker]).subspan(at[k]++ * width, width);
      if (std::exchange(first, false))
        std::ranges::copy(row, sum.begin());
      else
        add_to<float>(sum, row);
    }
    group.optimizer->update_part(step, learning_rate, scale, std::size_t(place) * width,
                                 group.values, sum);
  }
}

std::optional<std::vector<float>> ServerState::wait_rows(int worker, std::int64_t step,
                                                         std::size_t group,
                                                         std::span<const std::int64_t> ids,
                                                         Deadline deadline) {
  const RowParts parts = job_.keys.rows(group);
  for (const std::int64_t id : ids)
    if (id < 0 || id >= parts.rows() || parts.part_of(id) != server_)
      throw WireError(fmt::format("row {} of group {}", id, group));
  Group& g = groups_[group];
  std::unique_lock lock(mutex_);
  while (!failure_ && (g.applying || !ready(g, step)))
    if (!wait_for_change(lock, step, deadline)) return std::nullopt;
  if (failure_) return std::nullopt;
  g.read[std::size_t(worker)] = g.version;
  lock.unlock();
  const std::size_t each = width(group);
  std::vector<float> rows;
  rows.reserve(ids.size() * each);
  const std::lock_guard group_lock(g.mutex);
  for (const std::int64_t id : ids) {
    const auto row = std::span(g.values).subspan(std::size_t(parts.place_of(id)) * each, each);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

}  // namespace reckon
