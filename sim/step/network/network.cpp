#include "sim/step/network/network.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace reckon {

LinkId Network::add_link(BytesPerSecond capacity) {
  RECKON_CHECK(std::isfinite(capacity.v) && capacity.v > 0);
  links_.push_back(capacity);
  return LinkId(links_.size() - 1);
}

PathId Network::add_path(std::span<const LinkId> links) {
  RECKON_CHECK(!links.empty());
  for (auto link = links.begin(); link != links.end(); ++link) {
    RECKON_CHECK(index(*link) < links_.size());
    RECKON_CHECK(std::find(links.begin(), link, *link) == link);
  }
  path_links_.insert(path_links_.end(), links.begin(), links.end());
  path_begin_.push_back(std::uint32_t(path_links_.size()));
  return PathId(path_begin_.size() - 2);
}

ActivityId ActivityGraph::add(const Activity& activity, std::span<const ActivityId> after) {
  RECKON_CHECK(std::isfinite(activity.delay.count()) && activity.delay.count() >= 0);
  RECKON_CHECK(std::isfinite(activity.size.v) && activity.size.v >= 0);
  RECKON_CHECK(activity.cap.v >= 0);
  RECKON_CHECK(activity.multiplicity > 0);
  for (const ActivityId a : after) RECKON_CHECK(index(a) < activities_.size());
  activities_.push_back(activity);
  edges_.insert(edges_.end(), after.begin(), after.end());
  edge_begin_.push_back(std::uint32_t(edges_.size()));
  return ActivityId(activities_.size() - 1);
}

ActivityId ActivityGraph::barrier(std::span<const ActivityId> after) { return add({}, after); }

}  // namespace reckon
