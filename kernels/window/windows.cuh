#pragma once
#include "kernels/device.h"
#include "kernels/window/pool.h"

// Windows over images with channels last: what pooling, patches and grouped convolutions walk.
namespace reckon::gpu {

constexpr int kWindowThreads = 256;

/// Where an element of a tensor with channels last lies.
struct At {
  std::int64_t sample, y, x, c;
  __device__ At(std::int64_t i, std::int64_t height, std::int64_t width, std::int64_t channels)
      : sample(i / channels / width / height),
        y(i / channels / width % height),
        x(i / channels % width),
        c(i % channels) {}
};

/// body(input point) for the points of the window of output (y, x) that lie in the image.
template <class Body>
__device__ void for_window(const WindowShape& s, std::int64_t y, std::int64_t x, Body body) {
  for (std::int64_t i = 0; i < s.kernel_h; ++i)
    for (std::int64_t j = 0; j < s.kernel_w; ++j) {
      const std::int64_t h = y * s.stride - s.padding_h + i, w = x * s.stride - s.padding_w + j;
      if (h >= 0 && h < s.height && w >= 0 && w < s.width) body(h * s.width + w);
    }
}

/// body(output y, output x, kernel row, kernel column) for the windows that input (h, w) lies in.
template <class Body>
__device__ void for_windows_over(const WindowShape& s, std::int64_t h, std::int64_t w, Body body) {
  for (std::int64_t i = 0; i < s.kernel_h; ++i) {
    const std::int64_t top = h + s.padding_h - i;
    if (top < 0 || top % s.stride != 0 || top / s.stride >= s.out_height()) continue;
    for (std::int64_t j = 0; j < s.kernel_w; ++j) {
      const std::int64_t left = w + s.padding_w - j;
      if (left < 0 || left % s.stride != 0 || left / s.stride >= s.out_width()) continue;
      body(top / s.stride, left / s.stride, i, j);
    }
  }
}

__device__ inline std::int64_t global_index() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

inline std::int64_t in_elements(const WindowShape& s) {
  return s.batch * s.height * s.width * s.channels;
}
inline std::int64_t out_elements(const WindowShape& s) {
  return s.batch * s.out_height() * s.out_width() * s.channels;
}

}  // namespace reckon::gpu
