#include "kernels/window/pool.h"

#include "kernels/window/windows.cuh"

namespace reckon::gpu {
namespace {

template <class E>
__global__ void max_kernel(WindowShape s, const E* x, E* y, std::int32_t* points, std::int64_t n) {
  const std::int64_t i = global_index();
  if (i >= n) return;
  const At at(i, s.out_height(), s.out_width(), s.channels);
  const E* image = x + at.sample * s.height * s.width * s.channels;
  float largest = 0;
  std::int64_t from = -1;
  for_window(s, at.y, at.x, [&](std::int64_t point) {
    const float value = to_float(image[point * s.channels + at.c]);
    if (from >= 0 && !(value > largest) && value == value) return;
    largest = value;
    from = point;
  });
  y[i] = from_float<E>(largest);
  points[i] = static_cast<std::int32_t>(from);
}

template <class E>
__global__ void max_gradient_kernel(WindowShape s, const std::int32_t* points, const E* dy, E* dx,
                                    bool accumulate, std::int64_t n) {
  const std::int64_t i = global_index();
  if (i >= n) return;
  const At at(i, s.height, s.width, s.channels);
  const auto point = static_cast<std::int32_t>(at.y * s.width + at.x);
  float sum = 0;
  for_windows_over(s, at.y, at.x, [&](std::int64_t y, std::int64_t x, std::int64_t, std::int64_t) {
    const std::int64_t out =
        ((at.sample * s.out_height() + y) * s.out_width() + x) * s.channels + at.c;
    if (points[out] == point) sum += to_float(dy[out]);
  });
  dx[i] = put(accumulate ? dx[i] : E{}, accumulate, sum);
}

template <class E>
__global__ void average_kernel(WindowShape s, const E* x, E* y, std::int64_t n) {
  const std::int64_t i = global_index();
  if (i >= n) return;
  const At at(i, s.out_height(), s.out_width(), s.channels);
  const E* image = x + at.sample * s.height * s.width * s.channels;
  float sum = 0;
  for_window(s, at.y, at.x,
             [&](std::int64_t point) { sum += to_float(image[point * s.channels + at.c]); });
  y[i] = from_float<E>(sum / static_cast<float>(s.kernel_h * s.kernel_w));
}

template <class E>
__global__ void average_gradient_kernel(WindowShape s, const E* dy, E* dx, bool accumulate,
                                        std::int64_t n) {
  const std::int64_t i = global_index();
  if (i >= n) return;
  const At at(i, s.height, s.width, s.channels);
  float sum = 0;
  for_windows_over(s, at.y, at.x, [&](std::int64_t y, std::int64_t x, std::int64_t, std::int64_t) {
    sum += to_float(dy[((at.sample * s.out_height() + y) * s.out_width() + x) * s.channels + at.c]);
  });
  dx[i] =
      put(accumulate ? dx[i] : E{}, accumulate, sum / static_cast<float>(s.kernel_h * s.kernel_w));
}

/// N neighbours of a row: channels of one point of the patch, for channels are a multiple of N.
template <class E, int N>
__global__ void gather_kernel(WindowShape s, std::int64_t stride_of_row, const E* x, E* columns,
                              std::int64_t n) {
  const std::int64_t i = global_index() * N;
  if (i >= n) return;
  const std::int64_t row = i / stride_of_row, j = i % stride_of_row;
  const std::int64_t c = j % s.channels, tap = j / s.channels;
  const std::int64_t out_w = s.out_width(), out_h = s.out_height();
  const std::int64_t h = row / out_w % out_h * s.stride - s.padding_h + tap / s.kernel_w;
  const std::int64_t w = row % out_w * s.stride - s.padding_w + tap % s.kernel_w;
  const std::int64_t sample = row / out_w / out_h;
  Pack<E, N> pack{};
  if (tap < s.kernel_h * s.kernel_w && h >= 0 && h < s.height && w >= 0 && w < s.width)
    pack = load<N>(x + ((sample * s.height + h) * s.width + w) * s.channels + c);
  store(columns + i, pack);
}

template <class E, int N>
__global__ void scatter_kernel(WindowShape s, std::int64_t stride_of_row, const E* columns, E* dx,
                               bool accumulate, std::int64_t n) {
  const std::int64_t i = global_index() * N;
  if (i >= n) return;
  const At at(i, s.height, s.width, s.channels);
  float sums[N] = {};
  for_windows_over(
      s, at.y, at.x, [&](std::int64_t y, std::int64_t x, std::int64_t u, std::int64_t v) {
        const std::int64_t row = (at.sample * s.out_height() + y) * s.out_width() + x;
        const Pack<E, N> p =
            load<N>(columns + row * stride_of_row + (u * s.kernel_w + v) * s.channels + at.c);
        for (int k = 0; k < N; ++k) sums[k] += to_float(p.at[k]);
      });
  Pack<E, N> out{};
  if (accumulate) out = load<N>(dx + i);
  for (int k = 0; k < N; ++k) out.at[k] = put(out.at[k], accumulate, sums[k]);
  store(dx + i, out);
}

template <class E>
__global__ void permute_kernel(std::int64_t in, std::int64_t points, std::int64_t stride_of_row,
                               const float* weight, E* to, std::int64_t n) {
  const std::int64_t i = global_index();
  if (i >= n) return;
  const std::int64_t o = i / stride_of_row, j = i % stride_of_row;
  const std::int64_t c = j % in, point = j / in;
  to[i] = point < points ? from_float<E>(weight[(o * in + c) * points + point]) : E{};
}

__global__ void add_permuted_kernel(std::int64_t in, std::int64_t points,
                                    std::int64_t stride_of_row, const float* permuted,
                                    float* gradient, std::int64_t n) {
  const std::int64_t i = global_index();
  if (i >= n) return;
  const std::int64_t point = i % points, c = i / points % in, o = i / points / in;
  gradient[i] += permuted[o * stride_of_row + point * in + c];
}

}  // namespace

template <class E>
cudaError_t max_pool_forward(const WindowShape& s, const E* x, E* y, std::int32_t* points,
                             cudaStream_t stream) {
  const std::int64_t n = out_elements(s);
  return launch(max_kernel<E>, dim3(blocks_for(n, kWindowThreads)), dim3(kWindowThreads), 0, stream,
                s, x, y, points, n);
}
template <class E>
cudaError_t max_pool_backward(const WindowShape& s, const std::int32_t* points, const E* dy, E* dx,
                              bool accumulate, cudaStream_t stream) {
  const std::int64_t n = in_elements(s);
  return launch(max_gradient_kernel<E>, dim3(blocks_for(n, kWindowThreads)), dim3(kWindowThreads),
                0, stream, s, points, dy, dx, accumulate, n);
}
template <class E>
cudaError_t average_pool_forward(const WindowShape& s, const E* x, E* y, cudaStream_t stream) {
  const std::int64_t n = out_elements(s);
  return launch(average_kernel<E>, dim3(blocks_for(n, kWindowThreads)), dim3(kWindowThreads), 0,
                stream, s, x, y, n);
}
template <class E>
cudaError_t average_pool_backward(const WindowShape& s, const E* dy, E* dx, bool accumulate,
                                  cudaStream_t stream) {
  const std::int64_t n = in_elements(s);
  return launch(average_gradient_kernel<E>, dim3(blocks_for(n, kWindowThreads)),
                dim3(kWindowThreads), 0, stream, s, dy, dx, accumulate, n);
}

template <class E>
cudaError_t gather_patches(const WindowShape& s, std::int64_t stride_of_row, const E* x, E* columns,
                           cudaStream_t stream) {
  const std::int64_t n = s.batch * s.out_height() * s.out_width() * stride_of_row;
  const bool packed =
      s.channels % kPack<E> == 0 && stride_of_row % kPack<E> == 0 && aligned16(x, columns);
  const int each = packed ? kPack<E> : 1;
  return launch(packed ? gather_kernel<E, kPack<E>> : gather_kernel<E, 1>,
                dim3(blocks_for(n, kWindowThreads * each)), dim3(kWindowThreads), 0, stream, s,
                stride_of_row, x, columns, n);
}
template <class E>
cudaError_t scatter_patches(const WindowShape& s, std::int64_t stride_of_row, const E* columns,
                            E* dx, bool accumulate, cudaStream_t stream) {
  const std::int64_t n = in_elements(s);
  const bool packed =
      s.channels % kPack<E> == 0 && stride_of_row % kPack<E> == 0 && aligned16(dx, columns);
  const int each = packed ? kPack<E> : 1;
  return launch(packed ? scatter_kernel<E, kPack<E>> : scatter_kernel<E, 1>,
                dim3(blocks_for(n, kWindowThreads * each)), dim3(kWindowThreads), 0, stream, s,
                stride_of_row, columns, dx, accumulate, n);
}

template <class E>
cudaError_t permute_weight(std::int64_t out, std::int64_t in, std::int64_t points,
                           std::int64_t stride_of_row, const float* weight, E* to,
                           cudaStream_t stream) {
  const std::int64_t n = out * stride_of_row;
  return launch(permute_kernel<E>, dim3(blocks_for(n, kWindowThreads)), dim3(kWindowThreads), 0,
                stream, in, points, stride_of_row, weight, to, n);
}
cudaError_t add_permuted_gradient(std::int64_t out, std::int64_t in, std::int64_t points,
                                  std::int64_t stride_of_row, const float* permuted,
                                  float* gradient, cudaStream_t stream) {
  const std::int64_t n = out * in * points;
  return launch(add_permuted_kernel, dim3(blocks_for(n, kWindowThreads)), dim3(kWindowThreads), 0,
                stream, in, points, stride_of_row, permuted, gradient, n);
}

#define RECKON_POOL_FOR(E)                                                                         \
  template cudaError_t max_pool_forward<E>(const WindowShape&, const E*, E*, std::int32_t*,        \
                                           cudaStream_t);                                          \
  template cudaError_t max_pool_backward<E>(const WindowShape&, const std::int32_t*, const E*, E*, \
                                            bool, cudaStream_t);                                   \
  template cudaError_t average_pool_forward<E>(const WindowShape&, const E*, E*, cudaStream_t);    \
  template cudaError_t average_pool_backward<E>(const WindowShape&, const E*, E*, bool,            \
                                                cudaStream_t);                                     \
  template cudaError_t gather_patches<E>(const WindowShape&, std::int64_t, const E*, E*,           \
                                         cudaStream_t);                                            \
  template cudaError_t scatter_patches<E>(const WindowShape&, std::int64_t, const E*, E*, bool,    \
                                          cudaStream_t);                                           \
  template cudaError_t permute_weight<E>(std::int64_t, std::int64_t, std::int64_t, std::int64_t,   \
                                         const float*, E*, cudaStream_t)
RECKON_POOL_FOR(float);
RECKON_POOL_FOR(Bf16);
RECKON_POOL_FOR(Half);

}  // namespace reckon::gpu
