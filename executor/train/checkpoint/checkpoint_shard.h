#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "executor/train/training_recipe.h"
#include "sim/base/quantity.h"

// One rank's part of a checkpoint: a file of named sections of raw little-endian bytes.
//
//   "RCKNCKPT" | version u32 | header bytes u32 | XXH3-64 of the header u64 | header | sections
//
// The header is JSON and names, in order, each section with its size and XXH3-64, so that a flipped
// bit is found and named, wherever it is.
namespace reckon {

/// Why a checkpoint cannot be used or made; the text names the file.
struct CheckpointError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What a checkpoint belongs to. A set with another identity is refused, never loaded; one with
/// another recipe only where the user wants it.
struct CheckpointIdentity {
  std::string job;    // name of the job
  std::string model;  // name and whatever else must be equal where a recipe is missing
  int ranks = 1;      // workers that write a part
  Recipe recipe;      // none: an older reckon wrote it
  friend bool operator==(const CheckpointIdentity&, const CheckpointIdentity&) = default;
};

/// No section's name begins so.
inline constexpr std::string_view kNoSection = "\n";

struct StateSection {
  std::string name;
  std::span<const std::byte> bytes;
};
struct RestoreSection {
  std::string name;
  std::span<std::byte> bytes;
};

/// Small integers that belong to the state: the next step, the next sample, the state of a counter
/// based generator.
using Counters = std::map<std::string, std::int64_t>;

struct ShardHeader {
  struct Section {
    std::string name;
    std::uint64_t bytes = 0, digest = 0;
  };
  CheckpointIdentity identity;
  int rank = 0;
  std::int64_t step = 0;
  std::int64_t attempt = 0;  // start of the job that wrote it: parts of two starts do not mix
  Counters counters;
  std::vector<Section> sections;
  std::uint64_t digest = 0;      // of the header itself, as in the file
  std::uint64_t file_bytes = 0;  // of the whole file, as it must be
};

/// `header.sections`, `digest` and `file_bytes` are filled in from `sections`. Durable on return.
/// Throws FileError (executor/train/checkpoint/durable_file.h); no trace is left then.
ShardHeader write_shard(const std::filesystem::path& file, ShardHeader header,
                        std::span<const StateSection> sections);

/// The header, checked against its digest and the file's size. Throws CheckpointError or FileError.
ShardHeader read_shard_header(const std::filesystem::path& file);

/// Reads all sections and checks their digests. Throws CheckpointError naming the section and where
/// in the file it stands. `alive` (may be empty) is called again and again while it gets on.
void verify_shard(const std::filesystem::path& file, const std::function<void()>& alive = {});

/// Reads all sections into `targets`, which must have the same names and sizes in the same order.
/// Sections and targets whose names begin with `left_out` are passed over. Throws CheckpointError;
/// the targets' contents are undefined then.
ShardHeader read_shard(const std::filesystem::path& file, std::span<const RestoreSection> targets,
                       std::string_view left_out = kNoSection);

/// XXH3-64, as headers keep it of each section.
std::uint64_t section_digest(std::span<const std::byte> bytes);

}  // namespace reckon
