#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace reckon {

/// Rows sorted by id, rows of one id in their order: what makes a sum of gradients repeatable.
struct GroupedIds {
  std::vector<std::int32_t> ids, starts, order;  // (groups), (groups + 1), (rows)
};
/// By counting, of a table with many more rows than there are ids by sorting. ids are below
/// table_rows.
GroupedIds group_ids(std::span<const std::int64_t> ids, std::int64_t table_rows);

}  // namespace reckon
