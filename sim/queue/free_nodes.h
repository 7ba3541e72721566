#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/queue/node_set.h"

// Which GPUs of a cluster are free, and which of them a job gets.
namespace reckon {

/// Equal nodes of a pool.
struct NodeGroup {
  int nodes = 0;
  int gpus = 0;            // of a node, or the devices that they are cut into
  int cell = 0;            // nodes of one cell belong to the same partitions; 0 .. kMostCells - 1
  std::string resource{};  // devices that jobs ask for by this name; "": whole GPUs
  double devices_of_gpu = 1;  // so many would take a whole GPU
  int pool = 0;  // number of its pool, of which groups with other devices are the same nodes
};

/// Cells that a job may use, as bits.
using CellSet = std::uint64_t;
inline constexpr int kMostCells = 64;
inline constexpr CellSet kAllCells = ~CellSet{0};

/// GPUs of one node that a job holds.
struct NodePart {
  int node = 0;  // counts through the groups
  int gpus = 0;
};

/// Nodes by how many of their GPUs are free. A job that fits on one node gets one: that with the
/// fewest free GPUs that suffice, the first of equals. A larger one gets whole free nodes of the
/// largest size, and the rest of it one more by the same rule; where jobs are spread, the node with
/// the most free GPUs. All of it within the job's cells. O(log_64 nodes) for each node taken.
class FreeNodes {
 public:
  explicit FreeNodes(std::span<const NodeGroup> groups, bool spread = false);

  /// If it fits, fewer GPUs fit as well.
  bool fits(int gpus, CellSet cells = kAllCells) const;
  /// Needs fits(gpus, cells).
  std::vector<NodePart> take(int gpus, CellSet cells = kAllCells);
  void give_back(std::span<const NodePart> parts);
  /// These very parts, which must be free.
  void take_again(std::span<const NodePart> parts);
  int free() const { return all_free_; }
  int free_of(int node) const { return free_[static_cast<std::size_t>(node)]; }
  int gpus_of(CellSet cells) const;

 private:
  struct Cell {
    CellSet bit = 0;
    int largest = 0, free = 0, all = 0;  // GPUs: of a node; of all
    std::vector<NodeSet> by_free;        // nodes by free GPUs
  };
  int largest_of(CellSet cells) const;
  std::size_t whole_nodes(int gpus, CellSet cells) const;
  /// Number of free GPUs; -1: no node has from `least` to `most` free.
  int smallest_with(int least, int most, CellSet cells) const;
  int largest_with(int least, int most, CellSet cells) const;
  void take_from(int free, int gpus, CellSet cells, std::vector<NodePart>& parts);
  void move(int node, int more);

  std::vector<int> free_;     // by node
  std::vector<int> cell_of_;  // by node, index of cells_
  std::vector<Cell> cells_;
  int all_free_ = 0;
  bool spread_ = false;
};

/// Why even an empty cluster cannot hold a job of so many GPUs, as a clause; nullopt: it can.
std::optional<std::string> limit_that_binds(int gpus, std::span<const NodeGroup> groups,
                                            CellSet cells = kAllCells);

}  // namespace reckon
