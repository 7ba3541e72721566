#include "executor/comm/paged_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "sim/base/check.h"

namespace reckon {
namespace {

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

PagedBuffer::PagedBuffer(std::size_t count) : count_(count) {
  if (count == 0) return;
  void* memory = ::mmap(nullptr, count * sizeof(float), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // A huge page would keep what lies beside a released part. A kernel without them refuses.
  (void)::madvise(memory, count * sizeof(float), MADV_NOHUGEPAGE);
  data_ = static_cast<float*>(memory);
}

PagedBuffer::~PagedBuffer() {
  if (data_ != nullptr) ::munmap(data_, count_ * sizeof(float));
}

PagedBuffer::PagedBuffer(PagedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}

PagedBuffer& PagedBuffer::operator=(PagedBuffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(count_, other.count_);
  return *this;
}

Bytes PagedBuffer::resident() const {
  const std::size_t bytes = count_ * sizeof(float), page = page_size();
  std::vector<unsigned char> pages((bytes + page - 1) / page);
  if (pages.empty()) return {};
  RECKON_CHECK(::mincore(data_, bytes, pages.data()) == 0);
  const auto held = std::ranges::count_if(pages, [](unsigned char p) { return (p & 1) != 0; });
  return Bytes{double(held) * double(page)};
}

void release_pages(std::span<float> part) {
  const std::size_t page = page_size();
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data());
  const std::uintptr_t end = begin + part.size_bytes();
  const std::uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (first >= last) {
    std::ranges::fill(part, 0.0F);
    return;
  }
  std::fill(part.data(), reinterpret_cast<float*>(first), 0.0F);
  std::fill(reinterpret_cast<float*>(last), part.data() + part.size(), 0.0F);
  // Private anonymous pages read as zero after it [madvise(2)].
  RECKON_CHECK(::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED) == 0);
}

}  // namespace reckon
