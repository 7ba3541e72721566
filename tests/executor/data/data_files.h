#pragma once
#include <unistd.h>
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "executor/data/open.h"
#include "executor/data/shards/tfrecord.h"
#include "sim/model/zoo/zoo.h"
#include "support/sample_files.h"

// Files that people store samples in, written as other tools write them, and what is read from
// them.
namespace reckon::test {

namespace fs = std::filesystem;

/// Of tests/data/samples, which says what made it.
inline std::string stored(const std::string& name) {
  std::ifstream file(std::string(RECKON_SOURCE_DIR "/tests/data/samples/") + name,
                     std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline std::span<const std::uint8_t> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

inline ModelGraph language_model(std::int64_t vocabulary, std::int64_t tokens) {
  return *make_transformer("lm", {.layers = 1,
                                  .hidden = 8,
                                  .heads = 2,
                                  .vocabulary = vocabulary,
                                  .sequence_length = tokens,
                                  .positions = tokens});
}

inline DataSpec spec_of(DataFormat format, const fs::path& path) {
  return {.format = format, .path = path.string()};
}

struct Sample {
  std::vector<float> input, target;
  friend bool operator==(const Sample&, const Sample&) = default;
};
inline Sample read(const DataSource& source, const ModelGraph& model, std::int64_t index,
                   std::int64_t visit = 0) {
  SampleBatch batch(sample_format(model), 2);
  source.read_visit(index, visit, batch, 1);
  const auto in = batch.input(0, 1), out = batch.target(0, 1);
  return {{in.begin(), in.end()}, {out.begin(), out.end()}};
}

inline std::unique_ptr<DataSource> opened(const DataSpec& data, const ModelGraph& model,
                                          std::uint64_t seed = 1) {
  return open_samples(data, {}, model, seed, 0);
}
/// What opening or reading all samples says is wrong; "" where nothing is.
inline std::string complaint(const DataSpec& data, const ModelGraph& model) {
  try {
    const auto source = opened(data, model);
    for (std::int64_t i = 0; i < source->samples(); ++i) read(*source, model, i);
    return "";
  } catch (const DataError& e) {
    return e.what();
  }
}
inline void check_says(const std::string& text, std::initializer_list<std::string> parts) {
  for (const std::string& part : parts) CHECK_THAT(text, Catch::Matchers::Contains(part));
}

template <class T>
std::string little(T value) {
  std::string text;
  auto bits = static_cast<std::uint64_t>(value);
  for (std::size_t k = 0; k < sizeof value; ++k, bits >>= 8) text += static_cast<char>(bits & 0xFF);
  return text;
}

/// `tar` of the system, over files of the folder, in this order.
inline void pack(const Folder& folder, const std::string& options, const std::string& archive,
                 const std::string& files) {
  const std::string command = "cd '" + folder.path.string() + "' && tar " + options + " -cf " +
                              archive + " " + files + " 2>/dev/null";
  REQUIRE(std::system(command.c_str()) == 0);
}

/// A record of a TFRecord file.
inline std::string record(const std::string& data) {
  const std::string length = little(std::uint64_t{data.size()});
  return length + little(data::masked_crc32c(bytes_of(length))) + data +
         little(data::masked_crc32c(bytes_of(data)));
}
/// A field of a protocol buffer that holds bytes.
inline std::string field(int number, const std::string& bytes) {
  std::string text(1, static_cast<char>(number << 3 | 2));
  std::size_t size = bytes.size();
  for (; size > 127; size >>= 7) text += static_cast<char>(size | 0x80);
  return text + static_cast<char>(size) + bytes;
}
inline std::string feature(const std::string& key, int kind, const std::string& values) {
  return field(1, field(1, key) + field(2, field(kind, values)));
}
/// A tf.train.Example of an image; labels below 128.
inline std::string example(const std::string& image, int label) {
  const std::string packed(1, static_cast<char>(label));
  return field(1, feature("image/encoded", 1, field(1, image)) +
                      feature("image/class/label", 3, field(1, packed)));
}

}  // namespace reckon::test
