#pragma once
#include <cstddef>
#include <span>

#include "sim/base/quantity.h"

// Memory of which a part may be given back and taken again, at the same address.
namespace reckon {

/// `count` floats, all zero, on pages of their own [mmap(2), MAP_ANONYMOUS]. A page takes memory
/// from when it is first written.
class PagedBuffer {
 public:
  PagedBuffer() = default;
  /// Throws std::bad_alloc.
  explicit PagedBuffer(std::size_t count);
  ~PagedBuffer();
  PagedBuffer(PagedBuffer&& other) noexcept;
  PagedBuffer& operator=(PagedBuffer&& other) noexcept;
  PagedBuffer(const PagedBuffer&) = delete;
  PagedBuffer& operator=(const PagedBuffer&) = delete;

  std::span<float> span() { return {data_, count_}; }
  std::span<const float> span() const { return {data_, count_}; }
  /// Of its pages, those that take memory now.
  Bytes resident() const;

 private:
  float* data_ = nullptr;
  std::size_t count_ = 0;
};

/// Sets a part of a PagedBuffer to zero; its whole pages take no memory from then on, until they
/// are written. Safe beside accesses to other parts.
void release_pages(std::span<float> part);

}  // namespace reckon
