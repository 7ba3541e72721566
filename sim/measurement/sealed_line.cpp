#include "sim/measurement/sealed_line.h"

#include <fmt/format.h>
#include <xxhash.h>

#include "sim/base/check.h"

namespace reckon {
namespace {

constexpr std::string_view kKey = R"(,"xxh3":")";
constexpr std::size_t kDigits = 16;
constexpr std::string_view kEnd = R"("})";
constexpr std::size_t kSealSize = kKey.size() + kDigits + kEnd.size();
constexpr std::string_view kSealBegin = R"({"record":)";

std::string seal(std::string_view text) {
  return fmt::format("{}{:016x}{}", kKey, XXH3_64bits(text.data(), text.size()), kEnd);
}

}  // namespace

std::string seal_line(std::string json) {
  RECKON_CHECK(json.size() > 2 && json.front() == '{' && json.back() == '}');
  json.pop_back();
  return json + seal(json);
}

Seal seal_of(std::string_view line) {
  if (line.size() < kSealSize) return Seal::none;
  const std::string_view text = line.substr(0, line.size() - kSealSize);
  const std::string_view end = line.substr(text.size());
  if (!end.starts_with(kKey) || !end.ends_with(kEnd)) return Seal::none;
  return end == seal(text) ? Seal::good : Seal::broken;
}

std::vector<std::string_view> sealed_within(std::string_view line) {
  std::vector<std::string_view> records;
  // Quotes within a record's texts are escaped: its begin and its seal are found nowhere else.
  for (std::size_t from = 0;;) {
    const std::size_t key = line.find(kKey, from);
    if (key == std::string_view::npos || line.size() - key < kSealSize) return records;
    const std::size_t begin = line.substr(from, key - from).rfind(kSealBegin);
    if (begin != std::string_view::npos) {
      const std::string_view record = line.substr(from + begin, key + kSealSize - from - begin);
      if (seal_of(record) == Seal::good) records.push_back(record);
    }
    from = key + kKey.size();
  }
}

}  // namespace reckon
