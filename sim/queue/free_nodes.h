#pragma once
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

// Which GPUs of a cluster are free, and which of them a job gets.
namespace reckon {

/// Equal nodes of a pool.
struct NodeGroup {
  int nodes = 0;
  int gpus = 0;  // of a node
};

/// GPUs of one node that a job holds.
struct NodePart {
  int node = 0;  // counts through the groups
  int gpus = 0;
};

/// Nodes by how many of their GPUs are free. A job that fits on one node gets one: that with the
/// fewest free GPUs that suffice, the first of equals. A larger one gets whole free nodes of the
/// largest size, and the rest of it one more by the same rule. O(log nodes) for each node taken.
class FreeNodes {
 public:
  explicit FreeNodes(std::span<const NodeGroup> groups);

  bool fits(int gpus) const;
  /// Needs fits(gpus).
  std::vector<NodePart> take(int gpus);
  void give_back(std::span<const NodePart> parts);
  /// These very parts, which must be free.
  void take_again(std::span<const NodePart> parts);
  int free() const { return all_free_; }
  int free_of(int node) const { return free_[static_cast<std::size_t>(node)]; }

 private:
  std::set<int>& with_free(int gpus) { return by_free_[static_cast<std::size_t>(gpus)]; }
  const std::set<int>& with_free(int gpus) const {
    return by_free_[static_cast<std::size_t>(gpus)];
  }
  /// Number of free GPUs; -1: no node has from `least` to `most` free.
  int smallest_with(int least, int most) const;
  void take_from(int free, int gpus, std::vector<NodePart>& parts);
  void move(int node, int more);

  std::vector<int> free_;               // by node
  std::vector<std::set<int>> by_free_;  // nodes by free GPUs
  int largest_ = 0, all_free_ = 0;
};

/// Why even an empty cluster cannot hold a job of so many GPUs, as a clause; nullopt: it can.
std::optional<std::string> limit_that_binds(int gpus, std::span<const NodeGroup> groups);

}  // namespace reckon
