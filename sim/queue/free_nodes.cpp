#include "sim/queue/free_nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"

namespace reckon {

FreeNodes::FreeNodes(std::span<const NodeGroup> groups, bool spread) : spread_(spread) {
  std::size_t all = 0;
  for (const NodeGroup& group : groups) all += static_cast<std::size_t>(std::max(0, group.nodes));
  for (const NodeGroup& group : groups) {
    RECKON_CHECK(group.cell >= 0 && group.cell < kMostCells);
    const CellSet bit = CellSet{1} << group.cell;
    auto cell =
        std::find_if(cells_.begin(), cells_.end(), [&](const Cell& c) { return c.bit == bit; });
    if (cell == cells_.end()) cell = cells_.insert(cells_.end(), Cell{.bit = bit, .by_free = {}});
    cell->largest = std::max(cell->largest, group.gpus);
    cell->by_free.resize(static_cast<std::size_t>(cell->largest) + 1, NodeSet(all));
    for (int k = 0; k < group.nodes; ++k) {
      cell->by_free[static_cast<std::size_t>(group.gpus)].insert(free_.size());
      free_.push_back(group.gpus);
      cell_of_.push_back(static_cast<int>(cell - cells_.begin()));
      cell->free += group.gpus;
    }
  }
  for (Cell& cell : cells_) all_free_ += cell.all = cell.free;
}

int FreeNodes::gpus_of(CellSet cells) const {
  int gpus = 0;
  for (const Cell& cell : cells_) gpus += (cell.bit & cells) != 0 ? cell.all : 0;
  return gpus;
}

int FreeNodes::largest_of(CellSet cells) const {
  int largest = 0;
  for (const Cell& cell : cells_)
    if ((cell.bit & cells) != 0) largest = std::max(largest, cell.largest);
  return largest;
}

std::size_t FreeNodes::whole_nodes(int gpus, CellSet cells) const {
  std::size_t nodes = 0;
  for (const Cell& cell : cells_)
    if ((cell.bit & cells) != 0 && cell.largest >= gpus)
      nodes += cell.by_free[static_cast<std::size_t>(gpus)].size();
  return nodes;
}

bool FreeNodes::fits(int gpus, CellSet cells) const {
  if (gpus > all_free_) return false;
  const int largest = largest_of(cells);
  if (largest == 0) return false;
  const auto whole = static_cast<std::size_t>(gpus / largest);
  const std::size_t there = whole > 0 || gpus % largest > 0 ? whole_nodes(largest, cells) : 0;
  if (there < whole) return false;
  const int rest = gpus % largest;
  if (rest == 0) return true;
  return there > whole || smallest_with(rest, largest - 1, cells) >= 0;
}

std::vector<NodePart> FreeNodes::take(int gpus, CellSet cells) {
  std::vector<NodePart> parts;
  const int largest = largest_of(cells);
  for (int k = gpus / largest; k > 0; --k) take_from(largest, largest, cells, parts);
  if (const int rest = gpus % largest; rest > 0)
    take_from(spread_ ? largest_with(rest, largest, cells) : smallest_with(rest, largest, cells),
              rest, cells, parts);
  return parts;
}

void FreeNodes::give_back(std::span<const NodePart> parts) {
  for (const NodePart& part : parts) move(part.node, part.gpus);
}

void FreeNodes::take_again(std::span<const NodePart> parts) {
  for (const NodePart& part : parts) move(part.node, -part.gpus);
}

int FreeNodes::smallest_with(int least, int most, CellSet cells) const {
  for (int free = least; free <= most; ++free)
    if (whole_nodes(free, cells) > 0) return free;
  return -1;
}

int FreeNodes::largest_with(int least, int most, CellSet cells) const {
  for (int free = most; free >= least; --free)
    if (whole_nodes(free, cells) > 0) return free;
  return -1;
}

void FreeNodes::take_from(int free, int gpus, CellSet cells, std::vector<NodePart>& parts) {
  RECKON_CHECK(free >= gpus);
  int node = -1;
  for (const Cell& cell : cells_) {
    if ((cell.bit & cells) == 0 || cell.largest < free) continue;
    const NodeSet& nodes = cell.by_free[static_cast<std::size_t>(free)];
    if (nodes.empty()) continue;
    const int first = static_cast<int>(nodes.first());
    if (node < 0 || first < node) node = first;
  }
  RECKON_CHECK(node >= 0);
  parts.push_back({node, gpus});
  move(node, -gpus);
}

void FreeNodes::move(int node, int more) {
  const auto n = static_cast<std::size_t>(node);
  int& free = free_[n];
  Cell& cell = cells_[static_cast<std::size_t>(cell_of_[n])];
  cell.by_free[static_cast<std::size_t>(free)].erase(n);
  free += more;
  cell.free += more;
  all_free_ += more;
  RECKON_CHECK(free >= 0 && free <= cell.largest);
  cell.by_free[static_cast<std::size_t>(free)].insert(n);
}

std::optional<std::string> limit_that_binds(int gpus, std::span<const NodeGroup> groups,
                                            CellSet cells) {
  if (FreeNodes(groups).fits(gpus, cells)) return std::nullopt;
  int all = 0, largest = 0, of_largest = 0;
  const auto counts = [&](const NodeGroup& g) { return (CellSet{1} << g.cell & cells) != 0; };
  for (const NodeGroup& group : groups) {
    if (!counts(group)) continue;
    all += group.nodes * group.gpus;
    if (group.nodes > 0) largest = std::max(largest, group.gpus);
  }
  for (const NodeGroup& group : groups)
    of_largest += counts(group) && group.gpus == largest ? group.nodes : 0;
  if (gpus > all)
    return fmt::format("{} {}", cells == kAllCells ? "the cluster has" : "its nodes have", all);
  return fmt::format("a gang takes whole nodes of {} GPUs and one more for its rest, and {}",
                     largest,
                     of_largest == 1 ? "there is one such node"
                                     : fmt::format("there are {} such nodes", of_largest));
}

}  // namespace reckon
