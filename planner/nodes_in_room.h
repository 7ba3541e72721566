#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

namespace reckon::planner {

/// Of `nodes`, those whose workers have `room` (a number of workers), or are not more than the run
/// has now on `nodes_now`. Each node has as many.
inline std::vector<int> nodes_in_room(std::vector<int> nodes, int workers_now, int nodes_now,
                                      int room) {
  const int has = std::max(room, workers_now);
  std::erase_if(
      nodes, [&](int n) { return std::int64_t{workers_now} * n > std::int64_t{has} * nodes_now; });
  return nodes;
}

}  // namespace reckon::planner
