#include "executor/train/checkpoint/tensor_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "executor/train/loss_scale.h"
#include "sim/base/check.h"

namespace reckon {
namespace {

std::string shape_text(const TensorSlice& tensor) {
  return fmt::format("{} ({})", to_text(tensor.type), fmt::join(tensor.global, ", "));
}

bool same_tensor(const TensorSlice& a, const TensorSlice& b) {
  return a.global == b.global && a.type == b.type;
}

}  // namespace

TensorReader::TensorReader(std::vector<std::filesystem::path> files) : files_(std::move(files)) {
  for (std::size_t file = 0; file < files_.size(); ++file) {
    const ShardHeader& header = headers_.emplace_back(read_shard_header(files_[file]));
    for (std::size_t k = 0; k < header.tensors.size(); ++k) {
      const TensorSlice& slice = header.tensors[k].slice;
      TensorSlice whole = whole_tensor(slice.name, slice.global);
      whole.type = slice.type;
      const auto [known, first] = tensors_.emplace(slice.name, std::move(whole));
      if (!first && !same_tensor(known->second, slice))
        throw CheckpointError(fmt::format("{} holds '{}' as {}, a file before it as {}",
                                          files_[file].string(), slice.name, shape_text(slice),
                                          shape_text(known->second)));
      pieces_[slice.name].push_back({file, k});
    }
  }
}

std::string TensorReader::place() const {
  if (files_.size() == 1) return files_.front().string();
  return files_.empty()
             ? "no file"
             : fmt::format("{} ({} parts)", files_.front().parent_path().string(), files_.size());
}

void TensorReader::read(const TensorSlice& wanted, std::span<std::byte> room) const {
  RECKON_CHECK(!problem_of(wanted) && room.size() == bytes_of(wanted));
  const auto found = tensors_.find(wanted.name);
  if (found == tensors_.end())
    throw CheckpointError(fmt::format("{} holds no tensor '{}'", place(), wanted.name));
  if (!same_tensor(found->second, wanted))
    throw CheckpointError(fmt::format("{} holds tensor '{}' as {} where {} is wanted", place(),
                                      wanted.name, shape_text(found->second), shape_text(wanted)));
  std::vector<Box> missing{wanted.box};
  for (const Piece piece : pieces_.at(wanted.name)) {
    const Box& held = stored(piece).slice.box;
    std::vector<Box> parts;
    for (const Box& box : std::exchange(missing, {})) {
      if (auto part = overlap(box, held)) parts.push_back(std::move(*part));
      subtract(box, held, missing);
    }
    if (!parts.empty()) read_piece(piece, parts, wanted, room);
    if (missing.empty()) return;
  }
  throw CheckpointError(
      fmt::format("{} lacks {} of tensor '{}'", place(), to_text(missing.front()), wanted.name));
}

void TensorReader::read_piece(Piece piece, std::span<const Box> parts, const TensorSlice& wanted,
                              std::span<std::byte> room) const {
  const ShardHeader::Tensor& tensor = stored(piece);
  const std::filesystem::path& file = files_[piece.file];
  if (tensor.slice.box == wanted.box && parts.front() == wanted.box)
    return read_stored(file, tensor, room);
  std::vector<std::byte> whole(bytes_of(tensor.slice));
  read_stored(file, tensor, whole);
  for (const Box& part : parts)
    copy_box(part, tensor.slice.box, whole, wanted.box, room, bytes_of(wanted.type));
}

void TensorReader::read_state(std::span<const RestoreTensor> state,
                              std::string_view left_out) const {
  for (const RestoreTensor& t : state)
    if (!t.slice.name.starts_with(left_out)) read(t.slice, t.bytes);
}

void TensorReader::require_all(std::span<const RestoreTensor> state,
                               std::string_view left_out) const {
  std::set<std::string_view> names;
  for (const RestoreTensor& t : state) names.insert(t.slice.name);
  for (const auto& [name, tensor] : tensors_)
    if (!name.starts_with(left_out) && name != LossScale::kTensor && !names.contains(name))
      throw CheckpointError(
          fmt::format("{} holds tensor '{}', which this job's state has not", place(), name));
}

}  // namespace reckon
