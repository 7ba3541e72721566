#pragma once
#include <cstddef>
#include <iterator>

namespace reckon {

/// Characters for a parser that keeps no places: all copies tell in one variable how far it has
/// come, so that what is wrong can be pointed at.
class ReadingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  /// `now` outlives all copies.
  ReadingIterator(const char* at, const char** now) : at_(at), now_(now) {}
  reference operator*() const { return *at_; }
  ReadingIterator& operator++() {
    *now_ = ++at_;
    return *this;
  }
  ReadingIterator operator++(int) {
    const ReadingIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const ReadingIterator& a, const ReadingIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  const char** now_;
};

}  // namespace reckon
