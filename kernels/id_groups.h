#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace reckon {

/// Rows sorted by id, rows of one id in their order: what makes a sum of gradients repeatable.
struct GroupedIds {
  std::vector<std::int32_t> ids, starts, order;  // (groups), (groups + 1), (rows)
};
/// By counting: `table_rows` + ids.size() operations. ids are whole numbers below table_rows.
GroupedIds group_ids(std::span<const float> ids, std::int64_t table_rows);

}  // namespace reckon
