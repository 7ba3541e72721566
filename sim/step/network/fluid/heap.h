#pragma once
#include <cstdint>
#include <utility>
#include <vector>

namespace reckon {

/// What a heap of the fluid solver holds: a rate or a date, and what it belongs to.
struct Keyed {
  double key;  // bytes a second, or seconds
  std::uint32_t id;
  std::uint32_t owner;  // tells a slot's present tenant from an earlier one
};

/// Smallest key first, four children a node. Unlike std::pop_heap it stops sifting at equal keys,
/// so a heap of equal keys, which symmetric starts make, pops in constant time.
class KeyedHeap {
 public:
  bool empty() const { return nodes_.empty(); }
  std::size_t size() const { return nodes_.size(); }
  const Keyed& top() const { return nodes_.front(); }
  void clear() { nodes_.clear(); }

  /// Appends without order; heapify() restores it.
  void append(Keyed node) { nodes_.push_back(node); }
  void heapify() {
    if (nodes_.size() < 2) return;
    for (std::size_t i = (nodes_.size() - 2) / 4 + 1; i-- > 0;) sift_down(i);
  }
  void push(Keyed node) {
    nodes_.push_back(node);
    std::size_t i = nodes_.size() - 1;
    while (i > 0 && node.key < nodes_[(i - 1) / 4].key) {
      nodes_[i] = nodes_[(i - 1) / 4];
      i = (i - 1) / 4;
    }
    nodes_[i] = node;
  }
  void raise_top(double key) {
    nodes_.front().key = key;
    sift_down(0);
  }
  void pop() {
    nodes_.front() = nodes_.back();
    nodes_.pop_back();
    if (!nodes_.empty()) sift_down(0);
  }

 private:
  void sift_down(std::size_t i) {
    const Keyed node = nodes_[i];
    const std::size_t n = nodes_.size();
    for (std::size_t child = 4 * i + 1; child < n; child = 4 * i + 1) {
      const std::size_t last = child + 4 < n ? child + 4 : n;
      std::size_t least = child;
      for (std::size_t c = child + 1; c < last; ++c) {
        if (nodes_[c].key < nodes_[least].key) least = c;
      }
      if (!(nodes_[least].key < node.key)) break;
      nodes_[i] = nodes_[least];
      i = least;
    }
    nodes_[i] = node;
  }

  std::vector<Keyed> nodes_;
};

}  // namespace reckon
