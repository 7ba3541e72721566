#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/train/data/samples.h"
#include "sim/base/quantity.h"
#include "sim/scenario/scenario.h"

// Samples on disk, by number. A source knows nothing of epochs, ranks or order: order.h does.
namespace reckon {

/// A file that is missing, truncated, damaged or not what the model reads. The text names the file
/// and, where one byte is to blame, its offset.
struct DataError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What reading samples has taken since a source was opened, of all threads together.
struct InputWork {
  std::int64_t samples = 0, skipped = 0;  // made ready; left out, as they are damaged
  Bytes read{};                           // of the samples, as they are stored
  Seconds reading{};                      // on the clock: at least one thread waited for bytes
  Seconds requests{};                     // the same of all threads, added up
  Seconds decode_cpu{};                   // of a processor: decoding, cropping, normalising
  std::string first_skipped;              // why
};
/// What was done between two times; why the first was skipped is that of `now`.
InputWork work_between(const InputWork& before, const InputWork& now);

class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual std::int64_t samples() const = 0;  // at least 1
  /// Writes sample `index` to place `at` of the batch. From any thread. Throws DataError.
  virtual void read(std::int64_t index, SampleBatch& batch, std::int64_t at) const = 0;
  /// The same at its visit-th time (from 0): sources that vary a sample vary it with that.
  virtual void read_visit(std::int64_t index, std::int64_t /*visit*/, SampleBatch& batch,
                          std::int64_t at) const {
    read(index, batch, at);
  }
  /// Of what the set is made of (digest.h): the same where ranks have copies of one set at other
  /// places. "": of no files.
  virtual std::string digest() const { return ""; }
  /// nullopt: it does not measure it.
  virtual std::optional<InputWork> work() const { return std::nullopt; }
  /// Names of the classes, in the order of their numbers; none where they have numbers alone.
  virtual std::vector<std::string> classes() const { return {}; }
  /// What the user may not have meant, though it can be trained on.
  virtual std::vector<std::string> warnings() const { return {}; }
};

/// Opens what the scenario names, for that model. `seed` and `samples` are those of synthetic data
/// and clicks. Throws DataError where the files are wrong or hold other shapes, ids or classes than
/// the model takes. Formats that take libraries of their own are opened by
/// executor/data/open.h, and refused here.
///
/// `classes`: of the training set (DataSource::classes()), where this is its validation set.
///
/// - cifar10: folder of the binary version, data_batch_1.bin ... data_batch_5.bin
///   [Krizhevsky 2009, https://www.cs.toronto.edu/~kriz/cifar.html]; (3, 32, 32), 10 classes,
///   normalised by the mean and deviation of each channel
/// - mnist: folder with train-images-idx3-ubyte and train-labels-idx1-ubyte [LeCun 1998]
/// - tokens: file of little-endian uint16 ids; a sample is T + 1 of them, the next begins T later
/// - text: any file, whose bytes are the ids
/// - characters: any file; ids are the ranks of its bytes among the bytes that occur
/// - images: folder with one folder a class, in order of their names; binary PPM or PGM files
///   (P6, P5) of 8 bits, all of the model's size; to [-1, 1]
/// - clicks: made up, a log of impressions: ids of embedding tables by Zipf's law with
///   `zipf_exponent`, and whether they were clicked, by a logistic model that can be learnt
/// - synthetic: samples.h
std::unique_ptr<DataSource> open_data(const DataSpec& data, const std::filesystem::path& directory,
                                      const ModelGraph& model, std::uint64_t seed,
                                      std::int64_t samples, double zipf_exponent = 0,
                                      const std::vector<std::string>& classes = {});

/// The test set of cifar10 (test_batch.bin) or mnist (t10k-images-idx3-ubyte and t10k-labels-...),
/// in data.path. Throws as open_data(). Precondition: has_test_set(data.format).
std::unique_ptr<DataSource> open_test_set(const DataSpec& data,
                                          const std::filesystem::path& directory,
                                          const ModelGraph& model);

}  // namespace reckon
