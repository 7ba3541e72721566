#include "executor/train/data/digest.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "executor/train/data/source.h"

namespace reckon {

void DataDigest::mix(const void* bytes, std::size_t size) {
  state_ = XXH3_64bits_withSeed(bytes, size, state_);
}

DataDigest& DataDigest::add(std::string_view text) {
  add(static_cast<std::int64_t>(text.size()));
  mix(text.data(), text.size());
  return *this;
}

DataDigest& DataDigest::add(std::int64_t number) {
  mix(&number, sizeof number);
  return *this;
}

std::string DataDigest::text() const { return fmt::format("{:016x}", state_); }

std::string files_text(const DataSource& source) {
  const std::string digest = source.digest();
  if (digest.empty()) return "";
  return fmt::format("{} samples in files of digest {}", source.samples(), digest);
}

}  // namespace reckon
