#include <fmt/format.h>

#include <vector>

#include "executor/data/faults.h"
#include "executor/data/shards/example.h"
#include "executor/data/shards/shard_files.h"
#include "executor/data/shards/shard_sets.h"
#include "executor/data/shards/tfrecord.h"
#include "executor/data/sources.h"

// Shards of TFRecords with a tf.train.Example each.
namespace reckon::data {
namespace {

bool is_named_as_shard(const std::string& name) {
  return name.find("tfrecord") != std::string::npos || is_one_of_many(name);
}

class TfRecordSource final : public ImageSource {
 public:
  TfRecordSource(std::unique_ptr<Store> opened, const SampleFormat& format,
                 const ImageRecipe& recipe, const std::string& where)
      : ImageSource(std::move(opened), format, recipe) {
    Faults faults(where);
    std::vector<const StoredObject*> shards;
    faults.collect([&] {
      shards = shards_in(store(), where, [&](const std::string& name) {
        return !store().is_folder() || is_named_as_shard(name);
      });
    });
    faults.collect([&] {
      for (std::string& gap : check_shard_sets(store(), shards, where)) warn(std::move(gap));
    });
    for (const StoredObject* shard : shards)
      faults.collect([&] {
        for (const TfRecord& record : tf_records(store(), *shard))
          entries_.push_back({shard, record});
        if (shard->size == 0)
          warn(fmt::format("{}: holds no records, it is empty", store().place_of(*shard)));
      });
    faults.tell();
    if (entries_.empty())
      throw DataError(
          fmt::format("{}: holds no records: files called ...-00000-of-00008 or "
                      "...tfrecord... are expected",
                      where));
  }
  std::int64_t samples() const override { return std::ssize(entries_); }
  std::string digest() const override {
    return digest_of_entries(entries_, [](DataDigest& digest, const Entry& entry) {
      digest.add(entry.record.offset).add(entry.record.size);
    });
  }

 private:
  struct Entry {
    const StoredObject* shard;
    TfRecord record;
  };

  EncodedImage fetch(std::int64_t index) const override {
    const auto& [shard, record] = entries_[static_cast<std::size_t>(index)];
    const auto bytes = bytes_of(*shard, record.offset, record.size + kChecksumBytes);
    std::string place = fmt::format("{}: at byte {}", store().place_of(*shard), record.offset);
    const Seconds begin = processor_time();
    const auto data = checked_data(bytes);
    if (!data) throw DamagedSampleError(fmt::format("{}: {}", place, data.error()));
    const auto example = parse_image_example(*data);
    if (!example) throw DamagedSampleError(fmt::format("{}: {}", place, example.error()));
    return {{example->encoded.begin(), example->encoded.end()},
            example->label,
            std::move(place),
            processor_time() - begin};
  }

  std::vector<Entry> entries_;
};

}  // namespace

std::unique_ptr<DataSource> open_tfrecord(std::unique_ptr<Store> store, const SampleFormat& format,
                                          const ImageRecipe& recipe, const std::string& where) {
  return std::make_unique<TfRecordSource>(std::move(store), format, recipe, where);
}

}  // namespace reckon::data
