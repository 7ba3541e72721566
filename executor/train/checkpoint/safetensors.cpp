#include "executor/train/checkpoint/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

using Json = nlohmann::json;
using Problem = tl::unexpected<std::string>;

constexpr const char* kMetadata = "__metadata__";
constexpr std::uint64_t kFileMax = std::uint64_t{1} << 62;

/// Refuses what nlohmann's parser would pass over: a key that stands twice.
class Keys {
 public:
  bool operator()(Json::parse_event_t event, const Json& key) {
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key && !open_.back().insert(key.get<std::string>()).second)
      twice_ = key.get<std::string>();
    return true;
  }
  const std::string& twice() const { return twice_; }

 private:
  std::vector<std::set<std::string>> open_;  // objects around the place that is read
  std::string twice_;
};

tl::expected<StoredTensor, std::string> tensor_of(const std::string& name, const Json& json) {
  StoredTensor tensor{.name = name};
  const auto type = from_text<ElementType>(json.at("dtype").get<std::string>());
  if (!type) return Problem(fmt::format("'{}' has the type {}", name, json.at("dtype").dump()));
  tensor.type = *type;
  std::uint64_t bytes = bytes_of(*type);
  for (const Json& size : json.at("shape")) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > kFileMax)
      return Problem(fmt::format("'{}' has the shape {}", name, json.at("shape").dump()));
    tensor.shape.push_back(size.get<std::int64_t>());
    if (__builtin_mul_overflow(bytes, size.get<std::uint64_t>(), &bytes))
      return Problem(fmt::format("'{}' has the shape {}", name, json.at("shape").dump()));
  }
  const Json& offsets = json.at("data_offsets");
  if (offsets.size() != 2 || !offsets.at(0).is_number_unsigned() ||
      !offsets.at(1).is_number_unsigned())
    return Problem(fmt::format("'{}' has the offsets {}", name, offsets.dump()));
  tensor.begin = offsets[0];
  tensor.end = offsets[1];
  if (tensor.end < tensor.begin || tensor.end - tensor.begin != bytes)
    return Problem(
        fmt::format("'{}' has the offsets {} for {} bytes", name, offsets.dump(), bytes));
  if (tensor.end > kFileMax) return Problem(fmt::format("'{}' lies behind any file", name));
  if (tensor.begin % bytes_of(*type) != 0)
    return Problem(fmt::format("'{}' is not aligned to its elements", name));
  return tensor;
}

/// Throws nlohmann's exceptions where a key is missing or of another kind.
tl::expected<SafetensorsHeader, std::string> header_of(const Json& json) {
  SafetensorsHeader header;
  for (const auto& [name, value] : json.items()) {
    if (name == kMetadata) {
      header.metadata = value.get<std::map<std::string, std::string>>();
      continue;
    }
    auto tensor = tensor_of(name, value);
    if (!tensor) return Problem(std::move(tensor.error()));
    header.tensors.push_back(std::move(*tensor));
  }
  std::sort(header.tensors.begin(), header.tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) {
              return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
            });
  std::uint64_t at = 0;
  for (const StoredTensor& tensor : header.tensors) {
    if (tensor.begin != at)
      return Problem(fmt::format("'{}' begins at byte {} of the data, not at {}: {}", tensor.name,
                                 tensor.begin, at, tensor.begin > at ? "a hole" : "an overlap"));
    at = tensor.end;
  }
  return header;
}

}  // namespace

std::string safetensors_text(const SafetensorsHeader& header) {
  Json json = Json::object();
  if (!header.metadata.empty()) json[kMetadata] = header.metadata;
  for (const StoredTensor& tensor : header.tensors)
    json[tensor.name] = {{"dtype", to_text(tensor.type)},
                         {"shape", tensor.shape},
                         {"data_offsets", {tensor.begin, tensor.end}}};
  std::string text = json.dump();
  const std::size_t over = (sizeof(std::uint64_t) + text.size()) % kSafetensorsAlignment;
  if (over > 0) text.append(kSafetensorsAlignment - over, ' ');
  return text;
}

tl::expected<SafetensorsHeader, std::string> parse_safetensors(std::string_view text) {
  if (!text.starts_with('{')) return Problem("it does not begin with '{'");
  Keys keys;
  try {
    const Json json =
        Json::parse(text, [&keys](int, Json::parse_event_t event, const Json& parsed) {
          return keys(event, parsed);
        });
    if (!keys.twice().empty()) return Problem(fmt::format("'{}' stands twice", keys.twice()));
    return header_of(json);
  } catch (const Json::exception& e) {
    return Problem(e.what());
  }
}

}  // namespace reckon
