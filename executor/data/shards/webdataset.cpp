#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "executor/data/shards/shard_sets.h"
#include "executor/data/shards/tar.h"
#include "executor/data/sources.h"
#include "sim/base/text/lower_case.h"

// Shards of the webdataset library: tar archives, in which the files of a sample follow each other
// and share their names up to the first dot [webdataset, "The WebDataset Format"].
namespace reckon::data {
namespace {

constexpr std::int64_t kLongestClass = 32;  // bytes of a .cls file

struct MemberName {
  std::string key, extension;  // in lower case: "PNG" is "png"
};
MemberName parts_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  const std::size_t dot = name.find('.', slash == std::string::npos ? 0 : slash + 1);
  if (dot == std::string::npos) return {name, ""};
  return {name.substr(0, dot), lower_case(name.substr(dot + 1))};
}

class WebDataset final : public ImageSource {
 public:
  WebDataset(std::unique_ptr<Store> opened, const SampleFormat& format, const ImageRecipe& recipe,
             const std::string& where)
      : ImageSource(std::move(opened), format, recipe) {
    std::vector<const StoredObject*> shards;
    for (const StoredObject& object : store().objects())
      if (object.name.ends_with(".tar")) shards.push_back(&object);
    check_shard_sets(store(), shards, where);
    for (const StoredObject* shard : shards) read_shard(*shard);
    if (entries_.empty())
      throw DataError(
          fmt::format("{}: holds no samples: .tar files are expected, with an image "
                      "(.jpg, .jpeg, .png) and a class (.cls) each",
                      where));
  }
  std::int64_t samples() const override { return std::ssize(entries_); }

 private:
  struct Entry {
    const StoredObject* shard;
    std::int64_t offset, size;  // of the image
    std::int64_t label;
  };
  /// Of the sample whose files are being read.
  struct Parts {
    std::string key;
    std::int64_t begin = 0;
    std::optional<TarMember> image, label;
  };

  void read_shard(const StoredObject& shard) {
    Parts parts;
    const auto bytes_wanted = [](const std::string& name) {
      return parts_of(name).extension == "cls" ? kLongestClass + 1 : 0;
    };
    for (TarMember& member : tar_members(store(), shard, bytes_wanted)) {
      auto [key, extension] = parts_of(member.name);
      if (key != parts.key) {
        take(shard, parts);
        parts = {.key = std::move(key), .begin = member.offset, .image = {}, .label = {}};
      }
      const bool image = extension == "jpg" || extension == "jpeg" || extension == "png";
      if (!image && extension != "cls") continue;  // captions, metadata
      auto& part = image ? parts.image : parts.label;
      if (part)
        store().damaged(
            shard, member.offset,
            fmt::format("sample {} has {} twice", parts.key, image ? "an image" : "a class"));
      part = std::move(member);
    }
    take(shard, parts);
  }

  void take(const StoredObject& shard, const Parts& parts) {
    if (!parts.image && !parts.label) return;  // nothing of ours
    if (!parts.image || !parts.label)
      store().damaged(shard, parts.begin,
                      fmt::format("sample {} has no {}", parts.key,
                                  parts.image ? "class (.cls)" : "image (.jpg, .jpeg, .png)"));
    entries_.push_back(
        {&shard, parts.image->offset, parts.image->size, class_of(shard, *parts.label)});
  }

  std::int64_t class_of(const StoredObject& shard, const TarMember& member) const {
    constexpr const char* kBlanks = " \t\r\n";
    std::string_view text = member.begin;
    text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    std::int64_t label = 0;
    const auto [last, error] = std::from_chars(text.data(), text.data() + text.size(), label);
    if (error != std::errc() || last != text.data() + text.size() || member.size > kLongestClass)
      store().damaged(shard, member.offset,
                      fmt::format("{} is no class: a whole number is expected", member.name));
    return label;
  }

  EncodedImage fetch(std::int64_t index) const override {
    const Entry& entry = entries_[static_cast<std::size_t>(index)];
    return {bytes_of(*entry.shard, entry.offset, entry.size), entry.label,
            fmt::format("{}: at byte {}", store().place_of(*entry.shard), entry.offset)};
  }

  std::vector<Entry> entries_;
};

}  // namespace

std::unique_ptr<DataSource> open_webdataset(std::unique_ptr<Store> store,
                                            const SampleFormat& format, const ImageRecipe& recipe,
                                            const std::string& where) {
  return std::make_unique<WebDataset>(std::move(store), format, recipe, where);
}

}  // namespace reckon::data
