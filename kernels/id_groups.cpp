#include "kernels/id_groups.h"

#include <algorithm>
#include <numeric>

#include "sim/base/check.h"

namespace reckon {
namespace {

/// Counting takes table_rows + ids.size() operations.
GroupedIds counted(std::span<const std::int64_t> ids, std::int64_t table_rows) {
  std::vector<std::int32_t> next(static_cast<std::size_t>(table_rows) + 1);
  for (const std::int64_t id : ids) ++next[static_cast<std::size_t>(id) + 1];
  GroupedIds grouped;
  for (std::size_t id = 0; id + 1 < next.size(); ++id) {
    if (next[id + 1] > 0) {
      grouped.ids.push_back(static_cast<std::int32_t>(id));
      grouped.starts.push_back(next[id]);
    }
    next[id + 1] += next[id];
  }
  grouped.order.resize(ids.size());
  for (std::size_t row = 0; row < ids.size(); ++row) {
    std::int32_t& place = next[static_cast<std::size_t>(ids[row])];
    grouped.order[static_cast<std::size_t>(place++)] = static_cast<std::int32_t>(row);
  }
  return grouped;
}

GroupedIds sorted(std::span<const std::int64_t> ids) {
  GroupedIds grouped;
  grouped.order.resize(ids.size());
  std::iota(grouped.order.begin(), grouped.order.end(), 0);
  const auto id_of = [&](std::int32_t row) { return ids[static_cast<std::size_t>(row)]; };
  std::ranges::stable_sort(grouped.order, {}, id_of);
  for (std::size_t k = 0; k < ids.size(); ++k) {
    const auto id = static_cast<std::int32_t>(id_of(grouped.order[k]));
    if (!grouped.ids.empty() && grouped.ids.back() == id) continue;
    grouped.ids.push_back(id);
    grouped.starts.push_back(static_cast<std::int32_t>(k));
  }
  return grouped;
}

}  // namespace

GroupedIds group_ids(std::span<const std::int64_t> ids, std::int64_t table_rows) {
  constexpr std::int64_t kSparse = 16;  // rows an id
  for (const std::int64_t id : ids) {
    RECKON_CHECK(id >= 0);  // the data has been checked against the model
    RECKON_CHECK(id < table_rows);
  }
  const bool sparse = table_rows > kSparse * std::ssize(ids);
  GroupedIds grouped = sparse ? sorted(ids) : counted(ids, table_rows);
  grouped.starts.push_back(static_cast<std::int32_t>(ids.size()));
  return grouped;
}

}  // namespace reckon
