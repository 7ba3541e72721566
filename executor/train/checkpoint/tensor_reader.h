#pragma once
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/train/checkpoint/checkpoint_shard.h"

// Tensors out of the parts of a checkpoint, however they were cut when it was written.
namespace reckon {

class TensorReader {
 public:
  /// Reads the headers. Where several files hold an element the first is read. Throws
  /// CheckpointError, also where two files give a tensor different shapes, and FileError.
  explicit TensorReader(std::vector<std::filesystem::path> files);

  const ShardHeader& header(std::size_t file) const { return headers_[file]; }
  /// All tensors, whole, by name.
  const std::map<std::string, TensorSlice>& tensors() const { return tensors_; }

  /// Any slice, put together from what the files hold, bit for bit. Every stored tensor of which it
  /// takes a part is checked against its digest; memory: one stored tensor, or none where it is
  /// what is wanted. Throws CheckpointError where a file is damaged, and where no file holds the
  /// tensor, with this shape, or a part of the slice.
  void read(const TensorSlice& wanted, std::span<std::byte> room) const;

  /// All slices of a state but those of tensors whose names begin with `left_out`. Throws as
  /// read().
  void read_state(std::span<const RestoreTensor> state,
                  std::string_view left_out = kNoTensor) const;
  /// Throws CheckpointError where the files hold a tensor that `state` has not.
  void require_all(std::span<const RestoreTensor> state,
                   std::string_view left_out = kNoTensor) const;

 private:
  struct Piece {
    std::size_t file, tensor;
  };
  void read_piece(Piece piece, std::span<const Box> parts, const TensorSlice& wanted,
                  std::span<std::byte> room) const;
  const ShardHeader::Tensor& stored(Piece piece) const {
    return headers_[piece.file].tensors[piece.tensor];
  }
  std::string place() const;

  std::vector<std::filesystem::path> files_;
  std::vector<ShardHeader> headers_;
  std::map<std::string, TensorSlice> tensors_;
  std::map<std::string, std::vector<Piece>> pieces_;
};

}  // namespace reckon
