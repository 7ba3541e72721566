#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "executor/data/watch.h"
#include "executor/train/data/source.h"

// Data as people have it. The libraries that decode and fetch it are linked by reckon-worker alone.
namespace reckon {

/// Opens what the scenario names, for that model; formats of open_data() (executor/train/data/
/// source.h) as that does. Throws DataError, ReadingStopped.
///
/// - image_folder: a folder with one folder a class, in order of their names, at any depth .jpg,
///   .jpeg and .png files, as torchvision's ImageFolder
/// - webdataset: .tar files, not compressed; a sample is an image (.jpg, .jpeg, .png) and a class
///   (.cls), in any case
/// - tfrecord: files of TFRecords, not compressed, with a tf.train.Example each: image/encoded,
///   image/class/label, or image, label
/// - megatron: NAME.bin and NAME.idx; the path is NAME, or one of the two
/// - numpy: one .npy file with an array of tokens
/// - tokens: as open_data() reads it, from a store as well
///
/// Where a folder is a class, `classes` are the training set's (DataSource::classes()) that a
/// validation set is numbered by.
///
/// Paths of shards may be a file, a folder, how their names begin (Store::objects()), or have
/// ranges of numbers in braces; all may be in a store.
std::unique_ptr<DataSource> open_samples(const DataSpec& data,
                                         const std::filesystem::path& directory,
                                         const ModelGraph& model, std::uint64_t seed,
                                         std::int64_t samples, double zipf_exponent = 0,
                                         const std::vector<std::string>& classes = {},
                                         const DataWatch& watch = {});

}  // namespace reckon
