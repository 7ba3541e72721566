#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "executor/data/shards/example.h"
#include "executor/data/shards/tfrecord.h"
#include "executor/data/sources.h"

// Shards of TFRecords with a tf.train.Example each.
namespace reckon::data {
namespace {

/// "train" of "train-00003-of-01024"; "": the name is not of that form.
std::string set_of(const std::string& name) {
  constexpr std::string_view kPattern = "-#####-of-#####";
  const std::string base = name.substr(name.rfind('/') + 1);
  if (base.size() < kPattern.size()) return "";
  const std::size_t begin = base.size() - kPattern.size();
  for (std::size_t k = 0; k < kPattern.size(); ++k) {
    const char c = base[begin + k];
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (kPattern[k] == '#' ? !digit : c != kPattern[k]) return "";
  }
  return base.substr(0, begin);
}

class TfRecordSource final : public ImageSource {
 public:
  TfRecordSource(std::unique_ptr<Store> opened, const SampleFormat& format,
                 const ImageRecipe& recipe, const std::string& where)
      : ImageSource(std::move(opened), format, recipe) {
    std::set<std::string> sets;
    for (const StoredObject& object : store().objects()) {
      const std::string set = set_of(object.name);
      if (!set.empty()) sets.insert(set);
      const bool named = object.name.find("tfrecord") != std::string::npos || !set.empty();
      if (store().is_folder() && !named) continue;
      for (const TfRecord& record : tf_records(store(), object))
        entries_.push_back({&object, record});
    }
    if (sets.size() > 1)
      throw DataError(fmt::format("{}: holds shards of {}: name one set, path: {}{}{}-", where,
                                  fmt::join(sets, " and of "), where,
                                  where.ends_with('/') ? "" : "/", *sets.begin()));
    if (entries_.empty())
      throw DataError(
          fmt::format("{}: holds no records: files called ...-00000-of-00008 or "
                      "...tfrecord... are expected",
                      where));
  }
  std::int64_t samples() const override { return std::ssize(entries_); }

 private:
  struct Entry {
    const StoredObject* shard;
    TfRecord record;
  };

  EncodedImage fetch(std::int64_t index) const override {
    const auto& [shard, record] = entries_[static_cast<std::size_t>(index)];
    const auto bytes = bytes_of(*shard, record.offset, record.size + kChecksumBytes);
    std::string place = fmt::format("{}: at byte {}", store().place_of(*shard), record.offset);
    const auto data = checked_data(bytes);
    if (!data) throw DamagedSampleError(fmt::format("{}: {}", place, data.error()));
    const auto example = parse_image_example(*data);
    if (!example) throw DamagedSampleError(fmt::format("{}: {}", place, example.error()));
    return {{example->encoded.begin(), example->encoded.end()}, example->label, std::move(place)};
  }

  std::vector<Entry> entries_;
};

}  // namespace

std::unique_ptr<DataSource> open_tfrecord(std::unique_ptr<Store> store, const SampleFormat& format,
                                          const ImageRecipe& recipe, const std::string& where) {
  return std::make_unique<TfRecordSource>(std::move(store), format, recipe, where);
}

}  // namespace reckon::data
