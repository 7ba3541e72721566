#include "sim/queue/free_nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"

namespace reckon {

FreeNodes::FreeNodes(std::span<const NodeGroup> groups) {
  for (const NodeGroup& group : groups) largest_ = std::max(largest_, group.gpus);
  by_free_.resize(static_cast<std::size_t>(largest_) + 1);
  for (const NodeGroup& group : groups)
    for (int k = 0; k < group.nodes; ++k) {
      with_free(group.gpus).insert(with_free(group.gpus).end(), static_cast<int>(free_.size()));
      free_.push_back(group.gpus);
      all_free_ += group.gpus;
    }
}

bool FreeNodes::fits(int gpus) const {
  if (gpus > all_free_) return false;
  const auto whole = static_cast<std::size_t>(gpus / largest_);
  if (with_free(largest_).size() < whole) return false;
  const int rest = gpus % largest_;
  if (rest == 0) return true;
  return with_free(largest_).size() > whole || smallest_with(rest, largest_ - 1) >= 0;
}

std::vector<NodePart> FreeNodes::take(int gpus) {
  std::vector<NodePart> parts;
  for (int k = gpus / largest_; k > 0; --k) take_from(largest_, largest_, parts);
  if (const int rest = gpus % largest_; rest > 0)
    take_from(smallest_with(rest, largest_), rest, parts);
  return parts;
}

void FreeNodes::give_back(std::span<const NodePart> parts) {
  for (const NodePart& part : parts) move(part.node, part.gpus);
}

void FreeNodes::take_again(std::span<const NodePart> parts) {
  for (const NodePart& part : parts) move(part.node, -part.gpus);
}

int FreeNodes::smallest_with(int least, int most) const {
  for (int free = least; free <= most; ++free)
    if (!with_free(free).empty()) return free;
  return -1;
}

void FreeNodes::take_from(int free, int gpus, std::vector<NodePart>& parts) {
  RECKON_CHECK(free >= gpus);
  const int node = *with_free(free).begin();
  parts.push_back({node, gpus});
  move(node, -gpus);
}

void FreeNodes::move(int node, int more) {
  int& free = free_[static_cast<std::size_t>(node)];
  with_free(free).erase(node);
  free += more;
  all_free_ += more;
  RECKON_CHECK(free >= 0 && free <= largest_);
  with_free(free).insert(node);
}

std::optional<std::string> limit_that_binds(int gpus, std::span<const NodeGroup> groups) {
  if (FreeNodes(groups).fits(gpus)) return std::nullopt;
  int all = 0, largest = 0, of_largest = 0;
  for (const NodeGroup& group : groups) {
    all += group.nodes * group.gpus;
    if (group.nodes > 0) largest = std::max(largest, group.gpus);
  }
  for (const NodeGroup& group : groups) of_largest += group.gpus == largest ? group.nodes : 0;
  if (gpus > all) return fmt::format("the cluster has {}", all);
  return fmt::format("a gang takes whole nodes of {} GPUs and one more for its rest, and {}",
                     largest,
                     of_largest == 1 ? "there is one such node"
                                     : fmt::format("there are {} such nodes", of_largest));
}

}  // namespace reckon
