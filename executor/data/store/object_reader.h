#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/data/store/store.h"

namespace reckon::data {

/// One object from its begin to its end, in blocks that are worth a request. Blocks that are
/// skipped whole are not read.
class ObjectReader {
 public:
  /// Both must outlive it.
  ObjectReader(const Store& store, const StoredObject& object) : store_(store), object_(object) {}

  std::int64_t at() const { return at_; }
  std::int64_t left() const { return object_.size - at_; }
  /// The next `bytes.size()` bytes. Throws DataError where there are fewer.
  void read(std::span<std::uint8_t> bytes);
  /// Throws DataError where there are fewer; `what` they are.
  void skip(std::int64_t count, std::string_view what);
  /// Throws DataError of the place `at`.
  [[noreturn]] void damaged(std::int64_t at, const std::string& what) const {
    store_.damaged(object_, at, what);
  }

 private:
  const Store& store_;
  const StoredObject& object_;
  std::int64_t at_ = 0;
  std::int64_t block_at_ = 0;
  std::vector<std::uint8_t> block_;
};

/// A whole number of `N` bytes, the least significant first.
template <std::size_t N>
std::uint64_t little_endian(std::span<const std::uint8_t, N> bytes) {
  static_assert(N <= 8);
  std::uint64_t value = 0;
  for (std::size_t k = N; k > 0; --k) value = value << 8 | bytes[k - 1];
  return value;
}
template <std::size_t N>
std::uint64_t read_little_endian(ObjectReader& reader) {
  std::array<std::uint8_t, N> bytes{};
  reader.read(bytes);
  return little_endian(std::span<const std::uint8_t, N>(bytes));
}

}  // namespace reckon::data
