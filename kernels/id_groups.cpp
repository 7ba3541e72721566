#include "kernels/id_groups.h"

#include "sim/base/check.h"

namespace reckon {

GroupedIds group_ids(std::span<const float> ids, std::int64_t table_rows) {
  std::vector<std::int32_t> next(static_cast<std::size_t>(table_rows) + 1);
  for (const float id : ids) {
    RECKON_CHECK(id >= 0);  // the data has been checked against the model
    RECKON_CHECK(id < static_cast<float>(table_rows));
    ++next[static_cast<std::size_t>(id) + 1];
  }
  GroupedIds grouped;
  for (std::size_t id = 0; id + 1 < next.size(); ++id) {
    if (next[id + 1] > 0) {
      grouped.ids.push_back(static_cast<std::int32_t>(id));
      grouped.starts.push_back(next[id]);
    }
    next[id + 1] += next[id];
  }
  grouped.starts.push_back(static_cast<std::int32_t>(ids.size()));
  grouped.order.resize(ids.size());
  for (std::size_t row = 0; row < ids.size(); ++row) {
    std::int32_t& place = next[static_cast<std::size_t>(ids[row])];
    grouped.order[static_cast<std::size_t>(place++)] = static_cast<std::int32_t>(row);
  }
  return grouped;
}

}  // namespace reckon
