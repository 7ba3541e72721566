#pragma once
#include <string>
#include <utility>
#include <vector>

#include "executor/train/data/source.h"

namespace reckon::data {

/// What is wrong with a set of samples. It is told together, so that whoever mends it does not meet
/// each fault at another start.
class Faults {
 public:
  explicit Faults(std::string where) : where_(std::move(where)) {}
  /// So many are enough: no more are looked for.
  bool enough() const { return found_.size() >= kMost; }
  void add(std::string what) {
    if (!enough()) found_.push_back(std::move(what));
  }
  /// Runs `check`, unless there are enough: a DataError that it throws is a fault.
  template <class Check>
  void collect(const Check& check) {
    if (enough()) return;
    try {
      check();
    } catch (const DataError& e) {
      add(e.what());
    }
  }
  /// Throws DataError where there are any.
  void tell() const;

 private:
  static constexpr std::size_t kMost = 20;
  std::string where_;
  std::vector<std::string> found_;
};

}  // namespace reckon::data
