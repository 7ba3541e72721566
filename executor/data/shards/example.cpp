#include "executor/data/shards/example.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

namespace reckon::data {
namespace {

using Bytes = std::span<const std::uint8_t>;

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// One field of a message: a number, or the bytes of a text, a list or a message.
struct WireField {
  std::uint64_t number = 0;
  WireType type{};
  std::uint64_t value = 0;  // varint
  Bytes bytes;              // bytes
};

/// The fields of a message, one after the other. Everything it hands out lies within the message.
class WireReader {
 public:
  explicit WireReader(Bytes message) : left_(message) {}
  bool more() const { return !left_.empty() && !broken_; }
  bool broken() const { return broken_; }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (left_.empty()) break;
      const std::uint8_t byte = left_.front();
      left_ = left_.subspan(1);
      if (shift == 63 && byte > 1) break;  // more than 64 bits
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80) == 0) return value;
    }
    broken_ = true;
    return 0;
  }

  WireField next() {
    const std::uint64_t tag = varint();
    WireField field{.number = tag >> 3, .type = WireType(tag & 7), .bytes = {}};
    switch (field.type) {
      case WireType::varint:
        field.value = varint();
        break;
      case WireType::fixed64:
        take(8);
        break;
      case WireType::fixed32:
        take(4);
        break;
      case WireType::bytes:
        field.bytes = take(varint());
        break;
      default:  // groups, which no version of these messages has
        broken_ = true;
    }
    if (field.number == 0) broken_ = true;
    return field;
  }

 private:
  Bytes take(std::uint64_t count) {
    if (broken_ || count > left_.size()) {
      broken_ = true;
      return {};
    }
    const Bytes taken = left_.first(static_cast<std::size_t>(count));
    left_ = left_.subspan(taken.size());
    return taken;
  }

  Bytes left_;
  bool broken_ = false;
};

constexpr const char* kBroken = "is no tf.train.Example: its wire format is damaged";

/// The last field of that number that holds bytes. False: the message is damaged.
bool find_bytes(Bytes message, std::uint64_t number, std::optional<Bytes>& found) {
  WireReader reader(message);
  while (reader.more()) {
    const WireField field = reader.next();
    if (field.number == number && field.type == WireType::bytes) found = field.bytes;
  }
  return !reader.broken();
}

/// The only value of a feature's list of int64.
tl::expected<std::int64_t, std::string> only_number(Bytes feature, std::string_view name) {
  std::optional<Bytes> list;
  if (!find_bytes(feature, 3, list)) return tl::unexpected<std::string>(kBroken);
  if (!list) return tl::unexpected(fmt::format("{} holds no int64", name));
  std::int64_t value = 0;
  int values = 0;
  const auto keep = [&](std::uint64_t v) {
    value = static_cast<std::int64_t>(v);
    ++values;
  };
  WireReader reader(*list);
  while (reader.more()) {
    const WireField field = reader.next();
    if (field.number != 1) continue;
    if (field.type == WireType::varint) keep(field.value);
    if (field.type != WireType::bytes) continue;
    WireReader packed(field.bytes);
    while (packed.more()) keep(packed.varint());
    if (packed.broken()) return tl::unexpected<std::string>(kBroken);
  }
  if (reader.broken()) return tl::unexpected<std::string>(kBroken);
  if (values != 1)
    return tl::unexpected(fmt::format("{} has {} values, one is expected", name, values));
  return value;
}

/// The only value of a feature's list of bytes.
tl::expected<Bytes, std::string> only_bytes(Bytes feature, std::string_view name) {
  std::optional<Bytes> list, value;
  if (!find_bytes(feature, 1, list)) return tl::unexpected<std::string>(kBroken);
  if (!list) return tl::unexpected(fmt::format("{} holds no bytes", name));
  int values = 0;
  WireReader reader(*list);
  while (reader.more()) {
    const WireField field = reader.next();
    if (field.number != 1 || field.type != WireType::bytes) continue;
    value = field.bytes;
    ++values;
  }
  if (reader.broken()) return tl::unexpected<std::string>(kBroken);
  if (values != 1)
    return tl::unexpected(fmt::format("{} has {} values, one is expected", name, values));
  return *value;
}

}  // namespace

tl::expected<ImageExample, std::string> parse_image_example(Bytes message) {
  std::optional<Bytes> features;
  std::map<std::string_view, Bytes> named;
  if (!find_bytes(message, 1, features)) return tl::unexpected<std::string>(kBroken);
  WireReader reader(features.value_or(Bytes{}));
  while (reader.more()) {
    const WireField entry = reader.next();
    if (entry.number != 1 || entry.type != WireType::bytes) continue;
    std::optional<Bytes> key, value;
    if (!find_bytes(entry.bytes, 1, key) || !find_bytes(entry.bytes, 2, value))
      return tl::unexpected<std::string>(kBroken);
    if (!key || !value) continue;
    named[{reinterpret_cast<const char*>(key->data()), key->size()}] = *value;
  }
  if (reader.broken()) return tl::unexpected<std::string>(kBroken);
  const auto one_of = [&](std::string_view name, std::string_view other) {
    const auto found = named.find(name);
    return found != named.end() ? found : named.find(other);
  };
  const auto image = one_of("image/encoded", "image"), label = one_of("image/class/label", "label");
  if (image == named.end() || label == named.end())
    return tl::unexpected<std::string>(
        image == named.end() ? "the tf.train.Example has no feature image/encoded, nor image"
                             : "the tf.train.Example has no feature image/class/label, nor label");
  const auto bytes = only_bytes(image->second, image->first);
  if (!bytes) return tl::unexpected(bytes.error());
  const auto number = only_number(label->second, label->first);
  if (!number) return tl::unexpected(number.error());
  return ImageExample{*bytes, *number};
}

}  // namespace reckon::data
