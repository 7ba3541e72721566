#include "kernels/window/pool.h"

#include "kernels/window/windows.cuh"

namespace reckon::gpu {
namespace {

/// N neighbours a thread: channels of one point, for channels are a multiple of N.
template <class E, int N>
__global__ void max_kernel(Windows windows, const E* x, E* y, std::int32_t* points,
                           std::int64_t n) {
  const std::int64_t i = global_index() * N;
  if (i >= n) return;
  const At at = windows.out.at(i);
  float largest[N] = {};
  Pack<std::int32_t, N> from;
  for (int k = 0; k < N; ++k) from.at[k] = -1;
  for_window(windows.s, at.y, at.x,
             [&](std::int64_t h, std::int64_t w, std::int64_t, std::int64_t) {
               const Pack<E, N> p =
                   load<N>(x + windows.in_row(at.sample, h, w) * windows.s.channels + at.c);
               const auto point = static_cast<std::int32_t>(h * windows.s.width + w);
               for (int k = 0; k < N; ++k) {
                 const float value = to_float(p.at[k]);
                 if (from.at[k] >= 0 && !(value > largest[k]) && value == value) continue;
                 largest[k] = value;
                 from.at[k] = point;
               }
             });
  Pack<E, N> out;
  for (int k = 0; k < N; ++k) out.at[k] = from_float<E>(largest[k]);
  store(y + i, out);
  store(points + i, from);
}

template <class E, int N>
__device__ void put_pack(E* to, bool accumulate, const float (&values)[N]) {
  Pack<E, N> out{};
  if (accumulate) out = load<N>(to);
  for (int k = 0; k < N; ++k) out.at[k] = put(out.at[k], accumulate, values[k]);
  store(to, out);
}

template <class E, int N>
__global__ void max_gradient_kernel(Windows windows, const std::int32_t* points, const E* dy, E* dx,
                                    bool accumulate, std::int64_t n) {
  const std::int64_t i = global_index() * N;
  if (i >= n) return;
  const At at = windows.in.at(i);
  const auto point = static_cast<std::int32_t>(at.y * windows.s.width + at.x);
  float sums[N] = {};
  for_windows_over(
      windows, at.y, at.x, [&](std::int64_t y, std::int64_t x, std::int64_t, std::int64_t) {
        const std::int64_t out = windows.out_row(at.sample, y, x) * windows.s.channels + at.c;
        const Pack<std::int32_t, N> from = load<N>(points + out);
        const Pack<E, N> slope = load<N>(dy + out);
        for (int k = 0; k < N; ++k)
          if (from.at[k] == point) sums[k] += to_float(slope.at[k]);
      });
  put_pack(dx + i, accumulate, sums);
}

template <class E, int N>
__global__ void average_kernel(Windows windows, const E* x, E* y, std::int64_t n) {
  const std::int64_t i = global_index() * N;
  if (i >= n) return;
  const At at = windows.out.at(i);
  float sums[N] = {};
  for_window(windows.s, at.y, at.x,
             [&](std::int64_t h, std::int64_t w, std::int64_t, std::int64_t) {
               const Pack<E, N> p =
                   load<N>(x + windows.in_row(at.sample, h, w) * windows.s.channels + at.c);
               for (int k = 0; k < N; ++k) sums[k] += to_float(p.at[k]);
             });
  for (int k = 0; k < N; ++k)
    sums[k] /= static_cast<float>(windows.s.kernel_h * windows.s.kernel_w);
  put_pack(y + i, false, sums);
}

template <class E, int N>
__global__ void average_gradient_kernel(Windows windows, const E* dy, E* dx, bool accumulate,
                                        std::int64_t n) {
  const std::int64_t i = global_index() * N;
  if (i >= n) return;
  const At at = windows.in.at(i);
  float sums[N] = {};
  for_windows_over(windows, at.y, at.x,
                   [&](std::int64_t y, std::int64_t x, std::int64_t, std::int64_t) {
                     const Pack<E, N> p =
                         load<N>(dy + windows.out_row(at.sample, y, x) * windows.s.channels + at.c);
                     for (int k = 0; k < N; ++k) sums[k] += to_float(p.at[k]);
                   });
  for (int k = 0; k < N; ++k)
    sums[k] /= static_cast<float>(windows.s.kernel_h * windows.s.kernel_w);
  put_pack(dx + i, accumulate, sums);
}

/// How a row of patches is divided: by channels, and by the kernel's columns.
struct Patches {
  std::int64_t stride_of_row, taps;
  Divisor by_row, by_channels, by_kernel_w;
  Patches(const WindowShape& s, std::int64_t stride, std::int64_t n)
      : stride_of_row(stride),
        taps(s.kernel_h * s.kernel_w),
        by_row(stride, n),
        by_channels(s.channels, stride),
        by_kernel_w(s.kernel_w, stride) {}
};

/// N neighbours of a row of patches: channels of one point of the patch where channels are a
/// multiple of N (kTogether), else each from where it lies.
template <class E, int N, bool kTogether>
__global__ void gather_kernel(Windows windows, Patches patches, const E* x, E* columns,
                              std::int64_t n) {
  const std::int64_t i = global_index() * N;
  if (i >= n) return;
  const WindowShape& s = windows.s;
  std::int64_t row = i;
  const std::int64_t first = patches.by_row.take_rest(row);
  const At at = windows.out.at_row(row);
  const std::int64_t top = at.y * s.stride - s.padding_h, left = at.x * s.stride - s.padding_w;
  const auto place = [&](std::int64_t j) -> const E* {
    const std::int64_t c = patches.by_channels.take_rest(j);
    if (j >= patches.taps) return nullptr;
    const std::int64_t w = left + patches.by_kernel_w.take_rest(j), h = top + j;
    if (h < 0 || h >= s.height || w < 0 || w >= s.width) return nullptr;
    return x + windows.in_row(at.sample, h, w) * s.channels + c;
  };
  Pack<E, N> pack{};
  if constexpr (kTogether) {
    if (const E* from = place(first)) pack = load<N>(from);
  } else {
    for (int k = 0; k < N; ++k)
      if (const E* from = place(first + k)) pack.at[k] = *from;
  }
  store(columns + i, pack);
}

template <class E, int N>
__global__ void scatter_kernel(Windows windows, std::int64_t stride_of_row, const E* columns, E* dx,
                               bool accumulate, std::int64_t n) {
  const std::int64_t i = global_index() * N;
  if (i >= n) return;
  const WindowShape& s = windows.s;
  const At at = windows.in.at(i);
  float sums[N] = {};
  for_windows_over(
      windows, at.y, at.x, [&](std::int64_t y, std::int64_t x, std::int64_t u, std::int64_t v) {
        const Pack<E, N> p = load<N>(columns + windows.out_row(at.sample, y, x) * stride_of_row +
                                     (u * s.kernel_w + v) * s.channels + at.c);
        for (int k = 0; k < N; ++k) sums[k] += to_float(p.at[k]);
      });
  put_pack(dx + i, accumulate, sums);
}

template <class E>
__global__ void permute_kernel(std::int64_t in, std::int64_t points, std::int64_t stride_of_row,
                               const E* weight, E* to, std::int64_t n) {
  const std::int64_t i = global_index();
  if (i >= n) return;
  const std::int64_t o = i / stride_of_row, j = i % stride_of_row;
  const std::int64_t c = j % in, point = j / in;
  to[i] = point < points ? weight[(o * in + c) * points + point] : E{};
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

/// kernel<E, N> over n elements, N a thread: as many as travel in one access where `packed`.
template <class E, class... Parameters, class... Arguments>
cudaError_t launch_packed(bool packed, void (*many)(Parameters...), void (*one)(Parameters...),
                          std::int64_t n, cudaStream_t stream, Arguments... arguments) {
  const int each = packed ? kPack<E> : 1;
  return launch(packed ? many : one, dim3(blocks_for(n, kWindowThreads * each)),
                dim3(kWindowThreads), 0, stream, arguments...);
}
template <class E>
bool whole_packs(const WindowShape& s) {
  return s.channels % kPack<E> == 0;
}
/// As many points as elements travel in one access.
template <class E>
bool aligned_points(const std::int32_t* points) {
  return reinterpret_cast<std::uintptr_t>(points) % sizeof(Pack<std::int32_t, kPack<E>>) == 0;
}

template <class E>
cudaError_t max_pool_forward(const WindowShape& s, const E* x, E* y, std::int32_t* points,
                             cudaStream_t stream) {
  const std::int64_t n = out_elements(s);
  return launch_packed<E>(whole_packs<E>(s) && aligned16(x, y) && aligned_points<E>(points),
                          max_kernel<E, kPack<E>>, max_kernel<E, 1>, n, stream, Windows(s), x, y,
                          points, n);
}
template <class E>
cudaError_t max_pool_backward(const WindowShape& s, const std::int32_t* points, const E* dy, E* dx,
                              bool accumulate, cudaStream_t stream) {
  const std::int64_t n = in_elements(s);
  return launch_packed<E>(whole_packs<E>(s) && aligned16(dy, dx) && aligned_points<E>(points),
                          max_gradient_kernel<E, kPack<E>>, max_gradient_kernel<E, 1>, n, stream,
                          Windows(s), points, dy, dx, accumulate, n);
}
template <class E>
cudaError_t average_pool_forward(const WindowShape& s, const E* x, E* y, cudaStream_t stream) {
  const std::int64_t n = out_elements(s);
  return launch_packed<E>(whole_packs<E>(s) && aligned16(x, y), average_kernel<E, kPack<E>>,
                          average_kernel<E, 1>, n, stream, Windows(s), x, y, n);
}
template <class E>
cudaError_t average_pool_backward(const WindowShape& s, const E* dy, E* dx, bool accumulate,
                                  cudaStream_t stream) {
  const std::int64_t n = in_elements(s);
  return launch_packed<E>(whole_packs<E>(s) && aligned16(dy, dx),
                          average_gradient_kernel<E, kPack<E>>, average_gradient_kernel<E, 1>, n,
                          stream, Windows(s), dy, dx, accumulate, n);
}

template <class E>
cudaError_t gather_patches(const WindowShape& s, std::int64_t stride_of_row, const E* x, E* columns,
                           cudaStream_t stream) {
  const std::int64_t n = s.batch * s.out_height() * s.out_width() * stride_of_row;
  const Windows windows(s);
  const Patches patches(s, stride_of_row, n);
  const bool rows = stride_of_row % kPack<E> == 0 && aligned16(columns);
  if (rows && whole_packs<E>(s) && aligned16(x))
    return launch_packed<E>(true, gather_kernel<E, kPack<E>, true>, gather_kernel<E, 1, true>, n,
                            stream, windows, patches, x, columns, n);
  return launch_packed<E>(rows, gather_kernel<E, kPack<E>, false>, gather_kernel<E, 1, false>, n,
                          stream, windows, patches, x, columns, n);
}
template <class E>
cudaError_t scatter_patches(const WindowShape& s, std::int64_t stride_of_row, const E* columns,
                            E* dx, bool accumulate, cudaStream_t stream) {
  const std::int64_t n = in_elements(s);
  const bool packed = whole_packs<E>(s) && stride_of_row % kPack<E> == 0 && aligned16(dx, columns);
  return launch_packed<E>(packed, scatter_kernel<E, kPack<E>>, scatter_kernel<E, 1>, n, stream,
                          Windows(s), stride_of_row, columns, dx, accumulate, n);
}

template <class E>
cudaError_t permute_weight(std::int64_t out, std::int64_t in, std::int64_t points,
                           std::int64_t stride_of_row, const E* weight, E* to,
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
                                         const E*, E*, cudaStream_t)
RECKON_POOL_FOR(float);
RECKON_POOL_FOR(Bf16);
RECKON_POOL_FOR(Half);

}  // namespace reckon::gpu
