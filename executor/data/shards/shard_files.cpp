#include "executor/data/shards/shard_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "executor/train/data/classes.h"
#include "sim/base/text/lower_case.h"

namespace reckon::data {
namespace {

constexpr std::size_t kNamedFiles = 5;  // of many, in a message

std::string list_of(const std::vector<std::string>& names) {
  const auto shown = std::span(names).first(std::min(names.size(), kNamedFiles));
  return fmt::format("{}{}", fmt::join(shown, ", "), names.size() > shown.size() ? ", ..." : "");
}

struct Packed {
  std::string_view ending, plain;  // of the name: compressed, and without
  const char* command;
};
constexpr Packed kPacked[] = {{".tgz", ".tar", "gunzip"}, {".gz", "", "gunzip"},
                              {".bz2", "", "bunzip2"},    {".xz", "", "unxz"},
                              {".zst", "", "unzstd"},     {".lz4", "", "unlz4"}};

const Packed* packed_as(const std::string& name) {
  const std::string lower = lower_case(name);
  for (const Packed& kind : kPacked)
    if (lower.ends_with(kind.ending)) return &kind;
  return nullptr;
}

/// Where the next range begins and ends in a pattern, and its numbers.
struct NumberRange {
  std::size_t begin = 0, end = 0;
  std::int64_t first = 0, last = 0;
  std::size_t digits = 0;  // at least
};

std::optional<NumberRange> next_range(std::string_view pattern) {
  for (std::size_t open = pattern.find('{'); open != std::string_view::npos;
       open = pattern.find('{', open + 1)) {
    NumberRange range{.begin = open};
    const std::size_t dots = pattern.find("..", open), close = pattern.find('}', open);
    if (close == std::string_view::npos || dots >= close) continue;
    range.end = close + 1;
    const auto number = [](std::string_view text, std::int64_t& value) {
      const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      return error == std::errc() && last == text.data() + text.size() && value >= 0;
    };
    const std::string_view first = pattern.substr(open + 1, dots - open - 1),
                           last = pattern.substr(dots + 2, close - dots - 2);
    if (!number(first, range.first) || !number(last, range.last)) continue;
    const auto padded = [](std::string_view text) {
      return text.size() > 1 && text.starts_with('0');
    };
    if (padded(first) || padded(last)) range.digits = std::max(first.size(), last.size());
    if (range.first > range.last) std::swap(range.first, range.last);
    return range;
  }
  return std::nullopt;
}

std::vector<std::string> names_of(const std::string& pattern) {
  constexpr std::size_t kMostNames = 1'000'000;
  std::vector<std::string> names{""};
  std::string_view rest = pattern;
  for (auto range = next_range(rest); range; range = next_range(rest)) {
    std::vector<std::string> longer;
    const auto count = static_cast<std::uint64_t>(range->last - range->first) + 1;
    if (count > kMostNames / names.size())
      throw DataError(fmt::format("{}: names more than {} files", pattern, kMostNames));
    for (const std::string& name : names)
      for (std::int64_t k = range->first; k <= range->last; ++k)
        longer.push_back(
            fmt::format("{}{}{:0{}}", name, rest.substr(0, range->begin), k, range->digits));
    names = std::move(longer);
    rest.remove_prefix(range->end);
  }
  for (std::string& name : names) name += rest;
  return names;
}

/// Some objects of another store.
class NamedObjects final : public Store {
 public:
  NamedObjects(std::unique_ptr<Store> all, std::vector<std::string> names,
               const std::string& location)
      : all_(std::move(all)) {
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::vector<std::string> missing;
    for (const std::string& name : names) {
      const auto& objects = all_->objects();
      const auto found = std::ranges::lower_bound(objects, name, {}, &StoredObject::name);
      if (found != objects.end() && found->name == name)
        objects_.push_back(*found);
      else
        missing.push_back(name);
    }
    if (!missing.empty())
      throw DataError(fmt::format("{}: not all of its {} files are there, {} {} missing: {}",
                                  location, names.size(), missing.size(),
                                  missing.size() == 1 ? "is" : "are", list_of(missing)));
  }
  std::string place_of(const StoredObject& object) const override { return all_->place_of(object); }
  void read(const StoredObject& object, std::int64_t offset,
            std::span<std::uint8_t> bytes) const override {
    all_->read(object, offset, bytes);
  }
  std::int64_t block() const override { return all_->block(); }

 private:
  std::unique_ptr<Store> all_;
};

}  // namespace

std::vector<const StoredObject*> shards_in(
    const Store& store, const std::string& where,
    const std::function<bool(const std::string& name)>& is_shard) {
  std::vector<const StoredObject*> shards;
  std::vector<std::string> compressed;
  const char* command = "";
  for (const StoredObject& object : store.objects()) {
    const std::string& name = object.name;
    if (is_hidden(name) || name.ends_with(".idx") || name.ends_with(".index")) continue;
    if (const Packed* packed = packed_as(name)) {
      const std::string plain = name.substr(0, name.size() - packed->ending.size());
      if (!is_shard(plain + std::string(packed->plain))) continue;
      compressed.push_back(name);
      command = packed->command;
    } else if (is_shard(name)) {
      shards.push_back(&object);
    }
  }
  if (compressed.empty()) return shards;
  throw DataError(fmt::format("{}: {}: {}\n  only uncompressed shards are read: {} {}", where,
                              compressed.size() == 1
                                  ? std::string("a shard is compressed")
                                  : fmt::format("{} shards are compressed", compressed.size()),
                              list_of(compressed), command, compressed.front()));
}

std::unique_ptr<Store> open_shards(const std::string& location, const std::string& endpoint,
                                   const DataWatch& watch) {
  const auto range = next_range(location);
  if (!range) return open_store(location, endpoint, watch);
  const std::size_t name_at = location.rfind('/', range->begin) + 1;  // 0: there is no '/'
  const std::string folder = name_at == 0 ? "." : location.substr(0, name_at);
  const bool in_folders = location.find('/', range->begin) != std::string::npos;
  auto store =
      open_store(in_folders || range->begin == name_at ? folder : location.substr(0, range->begin),
                 endpoint, watch);
  if (store->is_folder() && !in_folders && range->begin != name_at)
    store = open_store(folder, endpoint, watch);  // one that is called so stands beside the shards
  return std::make_unique<NamedObjects>(std::move(store), names_of(location.substr(name_at)),
                                        location);
}

}  // namespace reckon::data
