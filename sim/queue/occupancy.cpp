#include "sim/queue/occupancy.h"

#include <algorithm>

namespace reckon {

std::vector<OccupancyChange> changes_of(const Occupancy& o) {
  std::vector<OccupancyChange> changes;
  for (const Holding& h : o.holdings) {
    changes.push_back({h.begin, h.part.node, h.part.gpus});
    changes.push_back({h.end, h.part.node, -h.part.gpus});
  }
  for (const NodeStay& stay : o.stays) {
    changes.push_back({stay.begin, stay.node, 0, 1});
    changes.push_back({stay.end, stay.node, 0, -1});
  }
  std::ranges::stable_sort(changes, {}, &OccupancyChange::at);
  return changes;
}

}  // namespace reckon
