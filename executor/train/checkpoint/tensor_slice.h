#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/base/words.h"
#include "sim/model/graph.h"

// A tensor by its name and global shape, and the slice of it that somebody holds: offsets and
// lengths by dimension. Bytes of a slice are its elements in row-major order, little-endian.
namespace reckon {

/// Types of elements of the safetensors format that a checkpoint may hold; ours are F32.
enum class ElementType { f64, f32, f16, bf16, i64, i32, i16, i8, u64, u32, u16, u8, boolean };
constexpr auto words_of(ElementType) {
  using enum ElementType;
  return std::array{Word<ElementType>{"F64", f64},     Word<ElementType>{"F32", f32},
                    Word<ElementType>{"F16", f16},     Word<ElementType>{"BF16", bf16},
                    Word<ElementType>{"I64", i64},     Word<ElementType>{"I32", i32},
                    Word<ElementType>{"I16", i16},     Word<ElementType>{"I8", i8},
                    Word<ElementType>{"U64", u64},     Word<ElementType>{"U32", u32},
                    Word<ElementType>{"U16", u16},     Word<ElementType>{"U8", u8},
                    Word<ElementType>{"BOOL", boolean}};
}
std::uint64_t bytes_of(ElementType type);

/// [first, first + length) in each dimension; no dimensions: the one element of a scalar.
struct Box {
  Shape first, length;
  friend bool operator==(const Box&, const Box&) = default;
};
/// All of a tensor.
Box whole_box(const Shape& shape);
/// nullopt: they have no element in common. Both have the same number of dimensions.
std::optional<Box> overlap(const Box& a, const Box& b);
/// Boxes that together are `from` without its part in `what`, appended to `rest`; disjoint, at most
/// two a dimension.
void subtract(const Box& from, const Box& what, std::vector<Box>& rest);
/// The elements of `part` from the bytes of box `from` to those of box `to`; `part` lies in both.
void copy_box(const Box& part, const Box& from, std::span<const std::byte> source, const Box& to,
              std::span<std::byte> target, std::size_t element_bytes);
/// The elements [first, first + count) of a tensor in row-major order as boxes, in that order; at
/// most two a dimension, less one. The elements of each are neighbours.
std::vector<Box> boxes_of_run(const Shape& shape, std::int64_t first, std::int64_t count);
/// "[0:16, 128:256]", as Python would cut it.
std::string to_text(const Box& box);

struct TensorSlice {
  std::string name;
  Shape global;
  Box box;
  ElementType type = ElementType::f32;
  friend bool operator==(const TensorSlice&, const TensorSlice&) = default;
};
TensorSlice whole_tensor(std::string name, Shape global);
/// Of the slice. It lies within its tensor, whose size fits into 63 bits.
std::uint64_t bytes_of(const TensorSlice& slice);
/// What is wrong with it: dimensions that differ in number, a part outside of the tensor, a size
/// that overflows; nullopt: nothing.
std::optional<std::string> problem_of(const TensorSlice& slice);

}  // namespace reckon
