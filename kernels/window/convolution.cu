#include "kernels/window/convolution.cuh"

// The forward pass and the gradient of the input: rows of patches times weights.
namespace reckon::gpu {
namespace {

/// Where a product goes: row (n, i, j) is point (top + i step, left + j step) of an image of
/// (height, width, columns).
template <class E>
struct Target {
  E* data;
  const E* bias;  // (columns), or null
  int columns, height, width, step, top, left;
  bool packs, accumulate;  // packs: eight neighbours travel at once
};

template <class E>
__device__ void put_sums(const Target<E>& to, int at, int column, const float (&values)[8]) {
  Pack<E, 8> pack{};
  if (to.packs) {
    if (to.accumulate) pack = load<8>(to.data + at + column);
#pragma unroll
    for (int e = 0; e < 8; ++e) pack.at[e] = put(pack.at[e], to.accumulate, values[e]);
    store(to.data + at + column, pack);
    return;
  }
#pragma unroll
  for (int e = 0; e < 8; ++e)
    if (column + e < to.columns)
      to.data[at + column + e] =
          put(to.accumulate ? to.data[at + column + e] : E{}, to.accumulate, values[e]);
}

constexpr int kSumsStride = 40;  // floats: eight rows of pairs lie in different banks

/// A warp's sums, whose first are of `row` and `column`, 32 columns at a time through `shared`:
/// there a thread finds eight neighbours.
template <class E>
__device__ void write_sums(const PatchRows& p, const Target<E>& to, int row, int column,
                           const WarpSums& sums, float* shared) {
  const int lane = static_cast<int>(threadIdx.x % 32), g = lane / 4, t = lane % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int i = 0; i < kWarpSums / 16; ++i)
#pragma unroll
      for (int j = 0; j < 4; ++j)
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const float(&c)[4] = sums[i][half * 4 + j];
          store(shared + (i * 16 + r * 8 + g) * kSumsStride + j * 8 + t * 2,
                Pack<float, 2>{{c[r * 2], c[r * 2 + 1]}});
        }
    __syncwarp();
    const int first = column + half * 32 + t * 8;
    float bias[8] = {};
    if (to.bias != nullptr)
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (first + e < to.columns) bias[e] = to_float(to.bias[first + e]);
    for (int k = g; k < kWarpSums && row + k < p.rows; k += 8) {
      if (first >= to.columns) break;
      const Pack<float, 4> low = load<4>(shared + k * kSumsStride + t * 8);
      const Pack<float, 4> high = load<4>(shared + k * kSumsStride + t * 8 + 4);
      float values[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) values[e] = (e < 4 ? low.at[e] : high.at[e - 4]) + bias[e];
      const int line = p.by_wide.quotient31(row + k), n = p.by_high.quotient31(line);
      const int y = to.top + (line - n * p.high) * to.step;
      const int x = to.left + (row + k - line * p.wide) * to.step;
      put_sums(to, ((n * to.height + y) * to.width + x) * to.columns, first, values);
    }
    __syncwarp();
  }
}

/// A block has M rows and N columns. kBackward: an inner index is (tap, row of the weights), and
/// a column one of their channels; else a column is a row of the weights. kPacksA, kPacksB: packs
/// of the images' channels, and of the weights, travel.
template <int M, int N, bool kBackward, bool kPacksA, bool kPacksB, class E>
__global__ void __launch_bounds__(kTileThreads, 2)
    convolution_kernel(PatchRows p, const E* images, const E* weight, int patch, Target<E> to) {
  using TileA = Tile<E, kDepth>;
  using TileB = Tile<E, kBackward ? N : kDepth>;
  constexpr int kRowsA = M / TileA::kRowsAtOnce;
  constexpr int kRowsB = (kBackward ? kDepth : N) / TileB::kRowsAtOnce;
  E* tiles = dynamic_shared<E>();
  constexpr int kStage = (M + N) * kDepth;
  Tap* taps = reinterpret_cast<Tap*>(tiles + kStages * kStage);
  const int thread = static_cast<int>(threadIdx.x), blocks_n = (to.columns + N - 1) / N;
  const int block = static_cast<int>(blockIdx.x), block_m = block / blocks_n;
  const int row = block_m * M, column = (block - block_m * blocks_n) * N;
  write_taps(p, taps);

  const int part_a = thread % TileA::kParts, row_a = thread / TileA::kParts;
  const int part_b = thread % TileB::kParts, row_b = thread / TileB::kParts;
  PatchPlace places[kRowsA];
#pragma unroll
  for (int i = 0; i < kRowsA; ++i)
    places[i] = place_of_row(p, row + row_a + i * TileA::kRowsAtOnce);
  Inner along(p, part_a * 8);
  __syncthreads();

  const auto load = [&](int step, int stage) {
    const TileA a{tiles + stage * kStage};
    const TileB b{tiles + stage * kStage + M * kDepth};
    copy_patches<kPacksA>(p, images, places, along, taps,
                          [&](int i) { return a.at(row_a + i * TileA::kRowsAtOnce, part_a); });
    along.advance(p, kDepth);
#pragma unroll
    for (int i = 0; i < kRowsB; ++i) {
      const int r = row_b + i * TileB::kRowsAtOnce;
      if constexpr (kBackward) {
        const Inner k(p, step * kDepth + r);
        const int c = column + part_b * 8, there = k.tap < p.taps() ? to.columns - c : 0;
        copy_neighbours<kPacksB>(b.at(r, part_b), weight, k.c * patch + k.of(p, taps).weight + c,
                                 there);
      } else {
        const int k = step * kDepth + part_b * 8, o = column + r;
        copy_neighbours<kPacksB>(b.at(r, part_b), weight, o * patch + k,
                                 o < to.columns ? patch - k : 0);
      }
    }
  };
  const int warp = thread / 32, warp_row = warp / (N / kWarpSums) * kWarpSums;
  const int warp_column = warp % (N / kWarpSums) * kWarpSums;
  const bool any = row + warp_row < p.rows && column + warp_column < to.columns;
  const LanePlaces<kDepth, true> rows(warp_row);
  const LanePlaces<kBackward ? N : kDepth, false> columns(warp_column);
  WarpSums sums = {};
  for_steps((p.inner() + kDepth - 1) / kDepth, load, [&](int stage) {
    if (!any) return;
    const E* a = tiles + stage * kStage;
    multiply_tiles(sums, a, rows, a + M * kDepth, columns);
  });
  __syncthreads();
  if (any)
    write_sums(p, to, row + warp_row, column + warp_column, sums,
               reinterpret_cast<float*>(tiles) + warp * kWarpSums * kSumsStride);
}

template <int M, int N, bool kBackward, bool kPacksA, bool kPacksB, class E>
cudaError_t launch_tiles(const PatchRows& p, const E* images, const E* weight, std::int64_t patch,
                         const Target<E>& to, cudaStream_t stream) {
  static_assert(M / kWarpSums * (N / kWarpSums) * 32 == kTileThreads);
  constexpr std::size_t kTiles = sizeof(E) * kStages * (M + N) * kDepth;
  static_assert(kTiles >= sizeof(float) * kTileThreads / 32 * kWarpSums * kSumsStride);
  const std::int64_t blocks = std::int64_t{blocks_for(p.rows, M)} * blocks_for(to.columns, N);
  return launch(convolution_kernel<M, N, kBackward, kPacksA, kPacksB, E>,
                dim3(static_cast<unsigned>(blocks)), dim3(kTileThreads),
                kTiles + tap_bytes(p.taps()), stream, p, images, weight, static_cast<int>(patch),
                to);
}
/// Narrow products have tiles of more rows: a warp has 64 x 64 sums of either.
template <bool kBackward, bool kPacksA, bool kPacksB, class E>
cudaError_t launch_product(const PatchRows& p, const E* images, const E* weight, std::int64_t patch,
                           const Target<E>& to, cudaStream_t stream) {
  if (to.columns <= 64)
    return launch_tiles<256, 64, kBackward, kPacksA, kPacksB>(p, images, weight, patch, to, stream);
  return launch_tiles<128, 128, kBackward, kPacksA, kPacksB>(p, images, weight, patch, to, stream);
}

/// Those points along one side of an image over which windows have taps first, first + stride, ...
struct Class {
  std::int64_t point, window, count, taps;  // the first point, the window whose tap `first` it is
  Class(std::int64_t first, std::int64_t stride, std::int64_t padding, std::int64_t kernel,
        std::int64_t size) {
    window = padding > first ? (padding - first + stride - 1) / stride : 0;
    point = window * stride + first - padding;
    count = point < size ? (size - point + stride - 1) / stride : 0;
    taps = first < kernel ? (kernel - first + stride - 1) / stride : 0;
  }
};

}  // namespace

bool implicit_convolution_takes(const ConvolutionShape& s) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;  // places are of 32 bits, with a margin
  const WindowShape& w = s.window;
  const std::int64_t rows = w.batch * w.out_height() * w.out_width();
  return s.points() <= 1024 && w.batch * w.height * w.width * w.channels < kMost &&
         rows * s.out < kMost && rows < kMost && s.out * s.patch() < kMost &&
         device_multiplies_tiles();
}

template <class E>
cudaError_t convolution_forward(const ConvolutionShape& s, const E* x, const E* weight,
                                const E* bias, E* y, cudaStream_t stream) {
  if (!aligned16(weight)) return cudaErrorInvalidValue;
  const PatchRows p = windows_of(s);
  const Target<E> to{.data = y,
                     .bias = bias,
                     .columns = static_cast<int>(s.out),
                     .height = p.high,
                     .width = p.wide,
                     .step = 1,
                     .top = 0,
                     .left = 0,
                     .packs = s.out % 8 == 0 && aligned16(y),
                     .accumulate = false};
  if (p.channels % 8 == 0 && aligned16(x))
    return launch_product<false, true, true>(p, x, weight, s.patch(), to, stream);
  return launch_product<false, false, true>(p, x, weight, s.patch(), to, stream);
}

template <class E>
cudaError_t convolution_input_gradient(const ConvolutionShape& s, const E* dy, const E* weight,
                                       E* dx, bool accumulate, cudaStream_t stream) {
  const WindowShape& w = s.window;
  const std::int64_t c = w.channels;
  for (std::int64_t u = 0; u < w.stride; ++u)
    for (std::int64_t v = 0; v < w.stride; ++v) {
      const Class down(u, w.stride, w.padding_h, w.kernel_h, w.height);
      const Class right(v, w.stride, w.padding_w, w.kernel_w, w.width);
      if (down.count == 0 || right.count == 0) continue;
      PatchRows p(w.batch, down.count, right.count, s.out, down.taps * right.taps);
      p.step = 1;
      p.top = static_cast<int>(down.window);
      p.left = static_cast<int>(right.window);
      p.height = static_cast<int>(w.out_height());
      p.width = static_cast<int>(w.out_width());
      p.taps_h = static_cast<int>(down.taps);
      p.taps_w = static_cast<int>(right.taps);
      p.direction = -1;
      p.weight = static_cast<int>((u * w.kernel_w + v) * c);
      p.weight_down = static_cast<int>(w.stride * w.kernel_w * c);
      p.weight_right = static_cast<int>(w.stride * c);
      if (p.taps() == 0 && accumulate) continue;
      const Target<E> to{.data = dx,
                         .bias = nullptr,
                         .columns = static_cast<int>(c),
                         .height = static_cast<int>(w.height),
                         .width = static_cast<int>(w.width),
                         .step = static_cast<int>(w.stride),
                         .top = static_cast<int>(down.point),
                         .left = static_cast<int>(right.point),
                         .packs = c % 8 == 0 && aligned16(dx),
                         .accumulate = accumulate};
      const bool packs = s.out % 8 == 0 && c % 8 == 0 && aligned16(dy, weight);
      const cudaError_t status =
          packs ? launch_product<true, true, true>(p, dy, weight, s.patch(), to, stream)
                : launch_product<true, false, false>(p, dy, weight, s.patch(), to, stream);
      if (status != cudaSuccess) return status;
    }
  return cudaSuccess;
}

#define RECKON_CONVOLUTION_FOR(E)                                                                 \
  template cudaError_t convolution_forward<E>(const ConvolutionShape&, const E*, const E*,        \
                                              const E*, E*, cudaStream_t);                        \
  template cudaError_t convolution_input_gradient<E>(const ConvolutionShape&, const E*, const E*, \
                                                     E*, bool, cudaStream_t)
RECKON_CONVOLUTION_FOR(Bf16);
RECKON_CONVOLUTION_FOR(Half);

}  // namespace reckon::gpu
