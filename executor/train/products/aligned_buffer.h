#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

// Memory for numbers. A cache line's alignment is part of reproducibility, not of speed alone:
// vectorised sums begin at an aligned address, so where a buffer begins decides their order.
namespace reckon {

inline constexpr std::size_t kCacheLine = 64;

template <class T>
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  /// All zero.
  explicit AlignedBuffer(std::size_t count)
      : data_(static_cast<T*>(::operator new[](std::max<std::size_t>(count, 1) * sizeof(T),
                                               std::align_val_t{kCacheLine}))),
        count_(count) {
    std::fill_n(data_.get(), count, T{});
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  std::size_t size() const { return count_; }
  std::span<T> span() { return {data_.get(), count_}; }
  std::span<const T> span() const { return {data_.get(), count_}; }

 private:
  struct Free {
    void operator()(T* p) const { ::operator delete[](p, std::align_val_t{kCacheLine}); }
  };
  std::unique_ptr<T[], Free> data_;
  std::size_t count_ = 0;
};

/// `count` elements rounded up to whole cache lines.
template <class T>
constexpr std::int64_t aligned_count(std::int64_t count) {
  constexpr auto kLine = static_cast<std::int64_t>(kCacheLine / sizeof(T));
  return (count + kLine - 1) / kLine * kLine;
}

}  // namespace reckon
