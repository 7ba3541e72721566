#pragma once
#include <algorithm>

#include "kernels/device.h"
#include "kernels/divisor.h"
#include "kernels/window/pool.h"

// Windows over images with channels last: what pooling, patches and grouped convolutions walk.
namespace reckon::gpu {

constexpr int kWindowThreads = 256;

inline std::int64_t in_elements(const WindowShape& s) {
  return s.batch * s.height * s.width * s.channels;
}
inline std::int64_t out_elements(const WindowShape& s) {
  return s.batch * s.out_height() * s.out_width() * s.channels;
}

/// Where an element of a tensor with channels last lies.
struct At {
  std::int64_t sample, y, x, c;
};
/// Images of (height, width, channels); `largest`: of the indices that are asked for.
struct Images {
  Divisor channels, width, height;
  Images(std::int64_t h, std::int64_t w, std::int64_t c, std::int64_t largest)
      : channels(c, largest), width(w, largest), height(h, largest) {}
  __device__ At at(std::int64_t i) const {
    At a;
    a.c = channels.take_rest(i);
    a.x = width.take_rest(i);
    a.y = height.take_rest(i);
    a.sample = i;
    return a;
  }
  /// Of the first channel of a row of channels.
  __device__ At at_row(std::int64_t row) const {
    At a;
    a.c = 0;
    a.x = width.take_rest(row);
    a.y = height.take_rest(row);
    a.sample = row;
    return a;
  }
};

/// A WindowShape as kernels read it: nothing of it is divided there.
struct Windows {
  WindowShape s;
  std::int64_t out_height, out_width;
  Images in, out;  // out: of as many channels
  Divisor stride;
  explicit Windows(const WindowShape& shape)
      : s(shape),
        out_height(shape.out_height()),
        out_width(shape.out_width()),
        in(shape.height, shape.width, shape.channels, in_elements(shape)),
        out(out_height, out_width, shape.channels, out_elements(shape)),
        stride(shape.stride,
               std::max(shape.height + shape.padding_h, shape.width + shape.padding_w)) {}

  __device__ std::int64_t in_row(std::int64_t sample, std::int64_t y, std::int64_t x) const {
    return (sample * s.height + y) * s.width + x;
  }
  __device__ std::int64_t out_row(std::int64_t sample, std::int64_t y, std::int64_t x) const {
    return (sample * out_height + y) * out_width + x;
  }
};

/// body(y, x of the image, kernel row, kernel column) for the points of the window of output (y, x)
/// that lie in the image.
template <class Body>
__device__ void for_window(const WindowShape& s, std::int64_t y, std::int64_t x, Body body) {
  for (std::int64_t i = 0; i < s.kernel_h; ++i)
    for (std::int64_t j = 0; j < s.kernel_w; ++j) {
      const std::int64_t h = y * s.stride - s.padding_h + i, w = x * s.stride - s.padding_w + j;
      if (h >= 0 && h < s.height && w >= 0 && w < s.width) body(h, w, i, j);
    }
}

/// body(output y, output x, kernel row, kernel column) for the windows that input (h, w) lies in.
template <class Body>
__device__ void for_windows_over(const Windows& windows, std::int64_t h, std::int64_t w,
                                 Body body) {
  const WindowShape& s = windows.s;
  std::int64_t bottom = h + s.padding_h, right = w + s.padding_w;
  const std::int64_t first_i = windows.stride.take_rest(bottom);
  const std::int64_t first_j = windows.stride.take_rest(right);
  std::int64_t y = bottom;
  for (std::int64_t i = first_i; i < s.kernel_h && y >= 0; i += s.stride, --y) {
    if (y >= windows.out_height) continue;
    std::int64_t x = right;
    for (std::int64_t j = first_j; j < s.kernel_w && x >= 0; j += s.stride, --x)
      if (x < windows.out_width) body(y, x, i, j);
  }
}

__device__ inline std::int64_t global_index() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

}  // namespace reckon::gpu
