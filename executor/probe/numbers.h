#pragma once
#include <cstdint>

#include "executor/train/products/aligned_buffer.h"

namespace reckon {

/// `count` numbers between -0.5 and 0.5 that repeat seldom: work for arithmetic whose time depends
/// on no value, as long as none is denormal.
template <class T>
AlignedBuffer<T> numbers(std::int64_t count) {
  AlignedBuffer<T> out(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (T& x : out.span()) {
    state = state * 1664525u + 1013904223u;  // [Numerical Recipes, 3rd ed., section 7.1.4]
    x = T(double(state >> 8) / double(1u << 24) - 0.5);
  }
  return out;
}

}  // namespace reckon
