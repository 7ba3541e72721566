#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace reckon {

/// Whole lines out of the pieces that a pipe delivers, empty ones left out. A carriage return ends
/// a line too: progress bars write theirs over and over.
class LineReader {
 public:
  /// `longest`: what is longer is cut.
  explicit LineReader(std::size_t longest = std::size_t{1} << 16) : longest_(longest) {}

  /// What is there, but not for ever: who writes without end does not keep the others waiting.
  /// false: the other end is closed. `descriptor` does not block.
  bool read_from(int descriptor, const std::function<void(std::string_view)>& on_line);

 private:
  std::size_t longest_;
  std::string rest_;
};

}  // namespace reckon
