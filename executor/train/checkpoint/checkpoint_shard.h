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

#include "executor/train/checkpoint/tensor_slice.h"
#include "executor/train/recipe/training_recipe.h"
#include "sim/base/quantity.h"

// One rank's part of a checkpoint, or a trained model: a safetensors file (safetensors.h) of slices
// of named tensors. PyTorch users open it with safetensors.torch.load_file(). What is ours stands
// in its `__metadata__`, as texts:
//
//   "format"       "pt", as transformers asks for
//   "reckon"       JSON: schema_version, identity, rank, step, attempt, counters, and of each
//                  tensor its global_shape, the offset of the slice, whose lengths are the tensor's
//                  shape in the file, and the XXH3-64 of its bytes; its name, where the file holds
//                  several slices of it, which are then called NAME[16:32, 0:784]
//   "reckon_xxh3"  XXH3-64 of the header with these 16 digits as zeros
//
// So a flipped bit is found and named, wherever it is. Tensors are named as PyTorch's modules do:
//
//   LAYER.weight, LAYER.bias              shapes as in sim/model/graph.h, which are PyTorch's
//   LAYER.running_mean, .running_var      of batch norms
//   optimizer.state.PARAMETER.exp_avg, .exp_avg_sq (AdamW), .momentum_buffer (SGD)
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

/// No tensor's name begins so.
inline constexpr std::string_view kNoTensor = "\n";
/// Those of optimizers begin so.
inline constexpr std::string_view kOptimizerTensors = "optimizer.";

struct StateTensor {
  TensorSlice slice;
  std::span<const std::byte> bytes;  // bytes_of(slice)
};
struct RestoreTensor {
  TensorSlice slice;
  std::span<std::byte> bytes;
};

/// Small integers that belong to the state: the next step, the next sample, the state of a counter
/// based generator.
using Counters = std::map<std::string, std::int64_t>;

struct ShardHeader {
  struct Tensor {
    TensorSlice slice;
    std::uint64_t begin = 0, digest = 0;  // its first byte in the file
  };
  CheckpointIdentity identity;
  int rank = 0;
  std::int64_t step = 0;
  std::int64_t attempt = 0;  // start of the job that wrote it: parts of two starts do not mix
  Counters counters;
  std::vector<Tensor> tensors;   // in the order of their bytes; names or boxes differ
  std::uint64_t digest = 0;      // of the header itself, as in the file
  std::uint64_t file_bytes = 0;  // of the whole file, as it must be
};

/// `header.tensors`, `digest` and `file_bytes` are filled in from `tensors`, whose names or boxes
/// differ and whose elements are larger first, so that all are aligned. Durable on return. Throws
/// FileError (executor/train/checkpoint/durable_file.h); no trace is left then.
ShardHeader write_shard(const std::filesystem::path& file, ShardHeader header,
                        std::span<const StateTensor> tensors);

/// The header, checked against its digest and the file's size. Throws CheckpointError or FileError.
ShardHeader read_shard_header(const std::filesystem::path& file);

/// Reads all tensors and checks their digests, through a buffer of 1 MiB. Throws CheckpointError
/// naming the tensor and where in the file it stands. `alive` (may be empty) is called again and
/// again while it gets on.
void verify_shard(const std::filesystem::path& file, const std::function<void()>& alive = {});

/// The bytes of one tensor of that file into `room`, against its digest. Throws as verify_shard.
void read_stored(const std::filesystem::path& file, const ShardHeader::Tensor& tensor,
                 std::span<std::byte> room);

}  // namespace reckon
