#include "executor/train/checkpoint/tensor_reader.h"

#include <rapidcheck.h>

#include <catch2/catch.hpp>
#include <numeric>

#include "checkpoint_support.h"

namespace reckon {
namespace {

using namespace reckon::test;
namespace fs = std::filesystem;

/// The bytes of a box of `whole`, element by element.
std::vector<std::byte> cut(const std::vector<std::byte>& whole, const TensorSlice& slice) {
  const std::size_t size = bytes_of(slice.type);
  std::vector<std::byte> out;
  const std::int64_t count = elements(slice.box.length);
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t rest = k, place = 0, stride = 1;
    for (std::size_t d = slice.global.size(); d-- > 0;) {
      place += (slice.box.first[d] + rest % slice.box.length[d]) * stride;
      rest /= slice.box.length[d];
      stride *= slice.global[d];
    }
    const auto begin = whole.begin() + place * std::int64_t(size);
    out.insert(out.end(), begin, begin + std::int64_t(size));
  }
  return out;
}

/// Boxes that make up all of a tensor: one is cut in two again and again.
std::vector<Box> random_split(const Shape& shape, int cuts) {
  std::vector<Box> boxes{whole_box(shape)};
  for (int k = 0; k < cuts; ++k) {
    const auto which = *rc::gen::inRange<std::size_t>(0, boxes.size());
    if (shape.empty()) break;
    const auto d = *rc::gen::inRange<std::size_t>(0, shape.size());
    const std::int64_t length = boxes[which].length[d];
    if (length < 2) continue;
    const auto at = *rc::gen::inRange<std::int64_t>(1, length);
    Box behind = boxes[which];
    behind.first[d] += at;
    behind.length[d] -= at;
    boxes[which].length[d] = at;
    boxes.push_back(std::move(behind));
  }
  return boxes;
}

Box random_box(const Shape& shape) {
  Box box = whole_box(shape);
  for (std::size_t d = 0; d < shape.size(); ++d) {
    box.first[d] = *rc::gen::inRange<std::int64_t>(0, shape[d]);
    box.length[d] = *rc::gen::inRange<std::int64_t>(1, shape[d] - box.first[d] + 1);
  }
  return box;
}

/// A file a slice.
std::vector<fs::path> write_slices(const fs::path& folder, TensorSlice slice,
                                   const std::vector<Box>& boxes,
                                   const std::vector<std::byte>& whole) {
  std::vector<fs::path> files;
  for (const Box& box : boxes) {
    slice.box = box;
    const std::vector<std::byte> bytes = cut(whole, slice);
    files.push_back(folder / std::to_string(files.size()));
    const std::vector<StateTensor> state{{slice, bytes}};
    write_shard(files.back(), {}, state);
  }
  return files;
}

TEST_CASE("any slice of a tensor is read bit for bit, however it was cut when it was written") {
  const Scratch scratch(memory_directory());
  CHECK(rc::check([&] {
    const auto dimensions = *rc::gen::inRange(0, 5);
    Shape shape;
    for (int d = 0; d < dimensions; ++d) shape.push_back(*rc::gen::inRange<std::int64_t>(1, 7));
    TensorSlice tensor = whole_tensor("w", shape);
    tensor.type =
        *rc::gen::element(ElementType::u8, ElementType::bf16, ElementType::f32, ElementType::i64);
    std::vector<std::byte> whole(bytes_of(tensor));
    for (std::size_t k = 0; k < whole.size(); ++k) whole[k] = std::byte(k * 2654435761U >> 13);
    auto boxes = random_split(shape, *rc::gen::inRange(0, 7));
    if (*rc::gen::arbitrary<bool>()) boxes.push_back(random_box(shape));  // which is held twice
    const auto order = *rc::gen::inRange<std::size_t>(0, boxes.size());
    std::rotate(boxes.begin(), boxes.begin() + std::ptrdiff_t(order), boxes.end());
    const TensorReader reader(write_slices(scratch.path(), tensor, boxes, whole));
    RC_ASSERT(reader.tensors().at("w") == tensor);
    auto wanted = random_split(shape, *rc::gen::inRange(0, 5));
    wanted.push_back(random_box(shape));
    for (const Box& box : wanted) {
      TensorSlice slice = tensor;
      slice.box = box;
      std::vector<std::byte> room(bytes_of(slice), std::byte{0xee});
      reader.read(slice, room);
      RC_ASSERT(room == cut(whole, slice));
    }
  }));
}

/// (4, 6) floats 0, 1, ..., in files of columns 0:2 and 2:6.
struct Halves {
  Scratch scratch{memory_directory()};
  std::vector<float> values = std::vector<float>(24);
  TensorSlice tensor = whole_tensor("fc.weight", {4, 6});
  std::vector<fs::path> files;
  Halves() {
    std::iota(values.begin(), values.end(), 0.0F);
    const auto bytes = std::as_bytes(std::span(values));
    files = write_slices(scratch.path(), tensor, {{{0, 0}, {4, 2}}, {{0, 2}, {4, 4}}},
                         {bytes.begin(), bytes.end()});
  }
  std::string refusal(std::vector<fs::path> of, const TensorSlice& slice) const {
    std::vector<std::byte> room(bytes_of(slice));
    return message_of([&] { TensorReader(std::move(of)).read(slice, room); });
  }
};

TEST_CASE("a rank of another layout reads its rows from files of columns") {
  const Halves h;
  TensorSlice row = h.tensor;
  row.box = {{2, 0}, {1, 6}};
  std::vector<float> room(6);
  TensorReader(h.files).read(row, std::as_writable_bytes(std::span(room)));
  CHECK(room == std::vector<float>{12, 13, 14, 15, 16, 17});
}

TEST_CASE("what no file holds is named: the tensor, its shape, the part of it") {
  const Halves h;
  CHECK(contains(h.refusal({h.files[1]}, h.tensor), "/1 lacks [0:4, 0:2] of tensor 'fc.weight'"));
  CHECK(contains(h.refusal(h.files, whole_tensor("fc.bias", {4})),
                 "(2 parts) holds no tensor 'fc.bias'"));
  CHECK(contains(h.refusal(h.files, whole_tensor("fc.weight", {6, 4})),
                 "holds tensor 'fc.weight' as F32 (4, 6) where F32 (6, 4) is wanted"));
  const std::vector<float> other(6);
  const std::vector<StateTensor> state{
      {whole_tensor("fc.weight", {6}), std::as_bytes(std::span(other))}};
  const fs::path file = h.scratch.path() / "other";
  write_shard(file, {}, state);
  CHECK(contains(h.refusal({h.files[0], file}, h.tensor),
                 "/other holds 'fc.weight' as F32 (6), a file before it as F32 (4, 6)"));
}

TEST_CASE("damage of a slice is found where only a part of it is wanted") {
  const Halves h;
  flip_bit(h.files[1], fs::file_size(h.files[1]) - 1);
  TensorSlice corner = h.tensor;
  corner.box = {{0, 0}, {1, 3}};
  CHECK(contains(h.refusal(h.files, corner),
                 "/1 is damaged: the checksum of tensor 'fc.weight' differs (bytes "));
  corner.box = {{0, 0}, {4, 2}};  // of the other file
  CHECK(h.refusal(h.files, corner).empty());
}

TEST_CASE("slices of larger elements come first, so that all are aligned") {
  const Scratch scratch(memory_directory());
  const std::vector<std::byte> bytes(24, std::byte{1});
  const auto tensor = [&](const char* name, ElementType type) {
    TensorSlice slice = whole_tensor(name, {3});
    slice.type = type;
    return StateTensor{slice, std::span(bytes).first(bytes_of(slice))};
  };
  const std::vector<StateTensor> state{tensor("a", ElementType::u8), tensor("b", ElementType::f64),
                                       tensor("c", ElementType::bf16)};
  write_shard(scratch.path() / "file", {}, state);
  std::vector<std::string> order;
  for (const auto& t : read_shard_header(scratch.path() / "file").tensors) {
    order.push_back(t.slice.name);
    CHECK(t.begin % bytes_of(t.slice.type) == 0);
  }
  CHECK(order == std::vector<std::string>{"b", "c", "a"});
}

TEST_CASE("a box without another is what is left of it, in disjoint parts") {
  CHECK(rc::check([] {
    const Shape shape(std::size_t(*rc::gen::inRange(1, 4)), 5);
    const Box from = random_box(shape), what = random_box(shape);
    std::vector<Box> rest;
    subtract(from, what, rest);
    const auto common = overlap(from, what);
    std::int64_t left = elements(from.length) - (common ? elements(common->length) : 0);
    for (std::size_t a = 0; a < rest.size(); ++a) {
      left -= elements(rest[a].length);
      RC_ASSERT(overlap(rest[a], from) == rest[a]);
      RC_ASSERT(!overlap(rest[a], what));
      for (std::size_t b = 0; b < a; ++b) RC_ASSERT(!overlap(rest[a], rest[b]));
    }
    RC_ASSERT(left == 0);
  }));
}

}  // namespace
}  // namespace reckon
