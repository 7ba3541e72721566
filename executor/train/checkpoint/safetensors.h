#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "executor/train/checkpoint/tensor_slice.h"

// The safetensors file format [huggingface/safetensors, README "Format"], which PyTorch users read:
//
//   header bytes u64, little-endian | header | data
//
// The header is JSON: {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]},
// ...,
// "__metadata__": {text: text}}, with spaces behind it. Offsets count from the first byte of the
// data; tensors lie one behind the other, without holes, and the last ends where the file does.
namespace reckon {

inline constexpr std::uint64_t kSafetensorsHeaderMax = 100'000'000;  // the reference reader's
inline constexpr std::uint64_t kSafetensorsAlignment = 8;  // of the data's first byte in the file

struct StoredTensor {
  std::string name;
  ElementType type = ElementType::f32;
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // in the data
  friend bool operator==(const StoredTensor&, const StoredTensor&) = default;
};
struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<StoredTensor> tensors;  // in the order of their bytes
  friend bool operator==(const SafetensorsHeader&, const SafetensorsHeader&) = default;
};

/// The header's text with the spaces that align the data, without the 8 bytes before it.
std::string safetensors_text(const SafetensorsHeader& header);
/// From the same. The error says what the format does not allow: no JSON, a name that stands twice,
/// a type that is none, a size that is not the shape's, holes, overlaps, data that is not aligned
/// to its elements.
tl::expected<SafetensorsHeader, std::string> parse_safetensors(std::string_view text);

}  // namespace reckon
