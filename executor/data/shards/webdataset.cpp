#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "executor/data/faults.h"
#include "executor/data/shards/shard_files.h"
#include "executor/data/shards/shard_sets.h"
#include "executor/data/shards/tar.h"
#include "executor/data/sources.h"
#include "executor/train/data/classes.h"
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
    Faults faults(where);
    std::vector<const StoredObject*> shards;
    faults.collect([&] {
      shards =
          shards_in(store(), where, [](const std::string& name) { return name.ends_with(".tar"); });
    });
    faults.collect([&] {
      for (std::string& gap : check_shard_sets(store(), shards, where)) warn(std::move(gap));
    });
    for (const StoredObject* shard : shards) faults.collect([&] { read_shard(*shard, faults); });
    faults.tell();
    if (entries_.empty())
      throw DataError(
          fmt::format("{}: holds no samples: .tar files are expected, with an image "
                      "(.jpg, .jpeg, .png) and a class (.cls) each",
                      where));
  }
  std::int64_t samples() const override { return std::ssize(entries_); }
  std::string digest() const override {
    return digest_of_entries(entries_, [](DataDigest& digest, const Entry& entry) {
      digest.add(entry.offset).add(entry.size).add(entry.label);
    });
  }

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

  void read_shard(const StoredObject& shard, Faults& faults) {
    Parts parts;
    std::vector<Parts> halves;
    const auto take = [&] {
      if (parts.image && parts.label)
        faults.collect([&] { take_sample(shard, parts); });
      else if (parts.image || parts.label)
        halves.push_back(std::move(parts));
    };
    const auto bytes_wanted = [](const std::string& name) {
      return parts_of(name).extension == "cls" ? kLongestClass + 1 : 0;
    };
    for (TarMember& member : tar_members(store(), shard, bytes_wanted)) {
      if (is_hidden(member.name)) continue;  // "._000.jpg" of macOS
      auto [key, extension] = parts_of(member.name);
      if (key != parts.key) {
        take();
        parts = {.key = std::move(key), .begin = member.offset, .image = {}, .label = {}};
      }
      const bool image = extension == "jpg" || extension == "jpeg" || extension == "png";
      if (!image && extension != "cls") continue;  // captions, metadata
      auto& part = image ? parts.image : parts.label;
      if (part)
        faults.collect([&] {
          store().damaged(
              shard, member.offset,
              fmt::format("sample {} has {} twice", parts.key, image ? "an image" : "a class"));
        });
      part = std::move(member);
    }
    take();
    tell_halves(shard, halves, faults);
  }

  /// Samples of which a part is missing, or stands elsewhere: archives that are sorted by the
  /// endings of their files have all samples in halves.
  void tell_halves(const StoredObject& shard, const std::vector<Parts>& halves,
                   Faults& faults) const {
    std::map<std::string, const Parts*> images, labels;
    for (const Parts& half : halves) (half.image ? images : labels).emplace(half.key, &half);
    std::int64_t torn = 0;
    const Parts* first = nullptr;
    for (const Parts& half : halves) {
      const auto& others = half.image ? labels : images;
      if (const auto other = others.find(half.key); other == others.end())
        faults.collect([&] {
          store().damaged(shard, half.begin,
                          fmt::format("sample {} has no {}", half.key,
                                      half.image ? "class (.cls)" : "image (.jpg, .jpeg, .png)"));
        });
      else if (half.image && torn++ == 0)
        first = &half;
    }
    if (torn > 0)
      faults.collect([&] {
        store().damaged(
            shard, first->begin,
            fmt::format("the files of {} sample{} do not follow each other, the first is {}: its "
                        "class is at byte {}\n  an archive of samples is made in the order of "
                        "names: tar --sort=name -cf SHARD.tar FOLDER",
                        torn, torn == 1 ? "" : "s", first->key, labels.at(first->key)->begin));
      });
  }

  void take_sample(const StoredObject& shard, const Parts& parts) {
    const std::int64_t label = class_of(shard, *parts.label);
    require_class(label, fmt::format("{}: at byte {}: sample {}", store().place_of(shard),
                                     parts.label->offset, parts.key));
    entries_.push_back({&shard, parts.image->offset, parts.image->size, label});
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
