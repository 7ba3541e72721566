#include "executor/data/store/object_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace reckon::data {

void ObjectReader::read(std::span<std::uint8_t> bytes) {
  const auto wanted = static_cast<std::int64_t>(bytes.size());
  if (wanted > left())
    damaged(object_.size, fmt::format("ends, {} bytes too early", wanted - left()));
  while (!bytes.empty()) {
    const std::int64_t in_block = at_ - block_at_;
    if (in_block < 0 || in_block >= std::ssize(block_)) {
      block_.resize(static_cast<std::size_t>(std::min(store_.block(), left())));
      store_.read(object_, at_, block_);
      block_at_ = at_;
      continue;
    }
    const auto from = static_cast<std::size_t>(in_block);
    const std::size_t count = std::min(bytes.size(), block_.size() - from);
    std::copy_n(block_.begin() + in_block, count, bytes.begin());
    bytes = bytes.subspan(count);
    at_ += static_cast<std::int64_t>(count);
  }
}

void ObjectReader::skip(std::int64_t count, std::string_view what) {
  if (count > left())
    damaged(object_.size,
            fmt::format("ends, {} of {} bytes of {} are missing", count - left(), count, what));
  at_ += count;
}

}  // namespace reckon::data
