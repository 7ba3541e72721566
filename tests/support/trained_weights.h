#pragma once
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <span>
#include <vector>

#include "executor/train/checkpoint/tensor_reader.h"

namespace reckon {

/// All weights of a safetensors file of fp32, in the order of their names.
inline std::vector<float> trained_weights(const std::filesystem::path& file) {
  const TensorReader reader({file});
  std::vector<float> values;
  for (const auto& [name, tensor] : reader.tensors()) {
    const std::size_t first = values.size();
    values.resize(first + bytes_of(tensor) / sizeof(float));
    reader.read(tensor, std::as_writable_bytes(std::span(values).subspan(first)));
  }
  return values;
}

/// Of a run of `reckon run --out DIRECTORY` that has ended.
inline std::vector<float> weights_of_run(const std::filesystem::path& directory) {
  return trained_weights(directory / "model.safetensors");
}

/// Of two networks' weights that belong together: the largest difference of any.
inline double largest_apart(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(double{a[i]} - double{b[i]}));
  return worst;
}

}  // namespace reckon
