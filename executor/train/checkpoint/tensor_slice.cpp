#include "executor/train/checkpoint/tensor_slice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "sim/base/check.h"

namespace reckon {
namespace {

constexpr std::int64_t kBytesMax = std::int64_t{1} << 62;

/// Elements of the part before `at` in a row-major box.
std::int64_t place_in(const Box& box, const Shape& at) {
  std::int64_t place = 0;
  for (std::size_t d = 0; d < at.size(); ++d)
    place = place * box.length[d] + (at[d] - box.first[d]);
  return place;
}

/// Of the run within box `at`, whose dimensions before `d` have one element each.
void add_boxes(Box at, std::size_t d, std::int64_t first, std::int64_t count,
               std::vector<Box>& boxes) {
  std::int64_t inner = 1;  // elements of one index of dimension d
  for (std::size_t k = d + 1; k < at.length.size(); ++k) inner *= at.length[k];
  const auto within = [&](std::int64_t row, std::int64_t begin, std::int64_t elements) {
    Box one = at;
    one.first[d] = row;
    one.length[d] = 1;
    add_boxes(std::move(one), d + 1, begin, elements, boxes);
  };
  std::int64_t row = first / inner;
  if (const std::int64_t begin = first % inner; begin > 0) {
    const std::int64_t elements = std::min(count, inner - begin);
    within(row++, begin, elements);
    count -= elements;
  }
  if (const std::int64_t rows = count / inner; rows > 0) {
    Box whole = at;
    whole.first[d] = row;
    whole.length[d] = rows;
    boxes.push_back(std::move(whole));
    row += rows;
    count -= rows * inner;
  }
  if (count > 0) within(row, 0, count);
}

}  // namespace

std::uint64_t bytes_of(ElementType type) {
  switch (type) {
    case ElementType::f64:
    case ElementType::i64:
    case ElementType::u64:
      return 8;
    case ElementType::f32:
    case ElementType::i32:
    case ElementType::u32:
      return 4;
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::i16:
    case ElementType::u16:
      return 2;
    case ElementType::i8:
    case ElementType::u8:
    case ElementType::boolean:
      return 1;
  }
  return 1;
}

Box whole_box(const Shape& shape) { return {Shape(shape.size(), 0), shape}; }

std::optional<Box> overlap(const Box& a, const Box& b) {
  RECKON_CHECK(a.first.size() == b.first.size());
  Box both = a;
  for (std::size_t d = 0; d < a.first.size(); ++d) {
    both.first[d] = std::max(a.first[d], b.first[d]);
    both.length[d] = std::min(a.first[d] + a.length[d], b.first[d] + b.length[d]) - both.first[d];
    if (both.length[d] <= 0) return std::nullopt;
  }
  return both;
}

void subtract(const Box& from, const Box& what, std::vector<Box>& rest) {
  const auto common = overlap(from, what);
  if (!common) return rest.push_back(from);
  // Cut off what lies before and behind, one dimension after the other.
  Box left = from;
  for (std::size_t d = 0; d < from.first.size(); ++d) {
    const std::int64_t begin = common->first[d], end = begin + common->length[d];
    if (begin > left.first[d]) {
      Box before = left;
      before.length[d] = begin - left.first[d];
      rest.push_back(std::move(before));
    }
    if (const std::int64_t last = left.first[d] + left.length[d]; last > end) {
      Box behind = left;
      behind.first[d] = end;
      behind.length[d] = last - end;
      rest.push_back(std::move(behind));
    }
    left.first[d] = begin;
    left.length[d] = common->length[d];
  }
}

void copy_box(const Box& part, const Box& from, std::span<const std::byte> source, const Box& to,
              std::span<std::byte> target, std::size_t element_bytes) {
  const std::size_t dimensions = part.first.size();
  // Inner dimensions that both hold whole are one run of bytes.
  std::size_t inner = dimensions;
  std::int64_t run = 1;
  while (inner > 0) {
    --inner;
    run *= part.length[inner];
    const bool whole =
        part.length[inner] == from.length[inner] && part.length[inner] == to.length[inner];
    if (!whole) break;
  }
  const std::size_t bytes = static_cast<std::size_t>(run) * element_bytes;
  for (Shape at = part.first;;) {
    const std::size_t begin = static_cast<std::size_t>(place_in(from, at)) * element_bytes;
    const std::size_t end = static_cast<std::size_t>(place_in(to, at)) * element_bytes;
    RECKON_CHECK(begin + bytes <= source.size() && end + bytes <= target.size());
    std::memcpy(target.data() + end, source.data() + begin, bytes);
    std::size_t d = inner;
    for (;; --d) {  // the next run: the odometer of the outer dimensions
      if (d == 0) return;
      if (++at[d - 1] < part.first[d - 1] + part.length[d - 1]) break;
      at[d - 1] = part.first[d - 1];
    }
  }
}

std::vector<Box> boxes_of_run(const Shape& shape, std::int64_t first, std::int64_t count) {
  std::vector<Box> boxes;
  if (count > 0) add_boxes(whole_box(shape), 0, first, count, boxes);
  return boxes;
}

std::string to_text(const Box& box) {
  std::vector<std::string> parts;
  for (std::size_t d = 0; d < box.first.size(); ++d)
    parts.push_back(fmt::format("{}:{}", box.first[d], box.first[d] + box.length[d]));
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

TensorSlice whole_tensor(std::string name, Shape global) {
  Box box = whole_box(global);
  return {.name = std::move(name), .global = std::move(global), .box = std::move(box)};
}

std::uint64_t bytes_of(const TensorSlice& slice) {
  return static_cast<std::uint64_t>(elements(slice.box.length)) * bytes_of(slice.type);
}

std::optional<std::string> problem_of(const TensorSlice& slice) {
  const auto& [first, length] = slice.box;
  if (first.size() != slice.global.size() || length.size() != slice.global.size())
    return fmt::format("'{}' has a slice of {} dimensions in a tensor of {}", slice.name,
                       first.size(), slice.global.size());
  std::int64_t bytes = static_cast<std::int64_t>(bytes_of(slice.type));
  for (const std::int64_t size : slice.global) {
    if (size < 1 || size > kBytesMax / bytes)
      return fmt::format("'{}' has the shape ({})", slice.name, fmt::join(slice.global, ", "));
    bytes *= size;
  }
  for (std::size_t d = 0; d < first.size(); ++d)
    if (first[d] < 0 || length[d] < 1 || first[d] > slice.global[d] - length[d])
      return fmt::format("'{}' has the slice {} outside of its shape ({})", slice.name,
                         to_text(slice.box), fmt::join(slice.global, ", "));
  return std::nullopt;
}

}  // namespace reckon
