#include "executor/data/open.h"

#include <fmt/format.h>

#include "executor/data/shards/shard_files.h"
#include "executor/data/sources.h"

namespace reckon {
namespace {

/// Without the ending that either of the two files of a corpus has.
std::string corpus_of(std::string path) {
  if (path.ends_with(".bin") || path.ends_with(".idx")) path.resize(path.size() - 4);
  return path;
}

}  // namespace

std::unique_ptr<DataSource> open_samples(const DataSpec& data,
                                         const std::filesystem::path& directory,
                                         const ModelGraph& model, std::uint64_t seed,
                                         std::int64_t samples, double zipf_exponent,
                                         const std::vector<std::string>& classes,
                                         const DataWatch& watch) {
  data::require_known_scheme(data.path);
  const bool in_store = is_store_location(data.path);
  const bool ours = reads_from_stores(data.format);
  if (!ours && in_store)
    throw DataError(fmt::format("{}: format {} is read from files of the machine, not from a store",
                                data.path, to_text(data.format)));
  if (!ours || (data.format == DataFormat::tokens && !in_store))
    return open_data(data, directory, model, seed, samples, zipf_exponent, classes);
  const SampleFormat format = sample_format(model);
  std::string where = in_store ? data.path : (directory / data.path).string();
  if (format.masked > 0)
    throw DataError(fmt::format("{}: model {} learns masked tokens, which only synthetic data has",
                                where, model.name()));
  if (data.format == DataFormat::megatron) where = corpus_of(where);
  std::optional<data::ImageRecipe> recipe;
  if (holds_images(data.format)) recipe = data::image_recipe(data, format, seed, where);
  const bool shards = data.format == DataFormat::webdataset || data.format == DataFormat::tfrecord;
  auto store = shards ? data::open_shards(where, data.endpoint, watch)
                      : data::open_store(where, data.endpoint, watch);
  switch (data.format) {
    case DataFormat::image_folder:
      return data::open_image_folder(std::move(store), format, *recipe, where, classes);
    case DataFormat::webdataset:
      return data::open_webdataset(std::move(store), format, *recipe, where);
    case DataFormat::tfrecord:
      return data::open_tfrecord(std::move(store), format, *recipe, where);
    case DataFormat::megatron:
      return data::open_megatron(std::move(store), format, where);
    case DataFormat::numpy:
      return data::open_numpy(std::move(store), format, where);
    default:
      return data::open_raw_tokens(std::move(store), format, where);
  }
}

}  // namespace reckon
