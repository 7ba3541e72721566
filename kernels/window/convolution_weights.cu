#include <algorithm>

#include "kernels/window/convolution.cuh"

// The gradient of the weights: the output's gradient, transposed, times rows of patches, whose rows
// are the inner index. Few outputs by few columns are few tiles, so that rows are shared out too.
namespace reckon::gpu {
namespace {

/// Steps whose rows' places are in shared memory: a block's threads read the same 32. Those of a
/// step are written two steps before it, between which all threads meet.
constexpr int kStepsOfPlaces = 4;

/// A block has M filters by N columns (tap, channel), and rows [part * rows_of_part, ...). partial:
/// (parts, filters, stride).
template <int M, int N, bool kPacksA, bool kPacksB, class E>
__global__ void __launch_bounds__(kTileThreads, 2)
    weight_gradient_kernel(PatchRows p, const E* x, const E* dy, int filters, int stride,
                           int rows_of_part, float* partial) {
  using TileA = Tile<E, M>;
  using TileB = Tile<E, N>;
  constexpr int kRowsA = kDepth / TileA::kRowsAtOnce, kRowsB = kDepth / TileB::kRowsAtOnce;
  // Eight elements a row are gathered from a few rows at a time: those of all would fill registers.
  constexpr int kRowsTogether = kPacksB ? kRowsB : 4;
  E* tiles = dynamic_shared<E>();
  constexpr int kStage = (M + N) * kDepth;
  auto* places = reinterpret_cast<PatchPlace*>(tiles + kStages * kStage);
  Tap* taps = reinterpret_cast<Tap*>(places + kStepsOfPlaces * kDepth);
  const int thread = static_cast<int>(threadIdx.x), blocks_n = (p.inner() + N - 1) / N;
  const int block = static_cast<int>(blockIdx.x), block_m = block / blocks_n;
  const int filter = block_m * M, column = (block - block_m * blocks_n) * N;
  const int begin = static_cast<int>(blockIdx.y) * rows_of_part;
  const int end = begin + rows_of_part < p.rows ? begin + rows_of_part : p.rows;
  write_taps(p, taps);
  const auto write_place = [&](int i) {  // of row `i` of the block's
    const int row = begin + i;
    places[i % (kStepsOfPlaces * kDepth)] = place_of_row(p, row < end ? row : p.rows);
  };
  if (thread < 2 * kDepth) write_place(thread);

  const int part_a = thread % TileA::kParts, row_a = thread / TileA::kParts;
  const int part_b = thread % TileB::kParts, row_b = thread / TileB::kParts;
  const Inner along(p, column + part_b * 8);
  const int filter_a = filter + part_a * 8;
  __syncthreads();

  const auto load = [&](int step, int stage) {
    const TileA a{tiles + stage * kStage};
    const TileB b{tiles + stage * kStage + M * kDepth};
    const int first = begin + step * kDepth;
#pragma unroll
    for (int i = 0; i < kRowsA; ++i) {
      const int r = row_a + i * TileA::kRowsAtOnce, row = first + r;
      copy_neighbours<kPacksA>(a.at(r, part_a), dy, row * filters + filter_a,
                               row < end ? filters - filter_a : 0);
    }
#pragma unroll
    for (int i = 0; i < kRowsB; i += kRowsTogether) {
      PatchPlace some[kRowsTogether];
      const auto row_of_tile = [&](int j) { return row_b + (i + j) * TileB::kRowsAtOnce; };
#pragma unroll
      for (int j = 0; j < kRowsTogether; ++j)
        some[j] = places[step % kStepsOfPlaces * kDepth + row_of_tile(j)];
      copy_patches<kPacksB>(p, x, some, along, taps,
                            [&](int j) { return b.at(row_of_tile(j), part_b); });
    }
    if (thread < kDepth) write_place((step + 2) * kDepth + thread);
  };
  const int warp = thread / 32, warp_filter = warp / (N / kWarpSums) * kWarpSums;
  const int warp_column = warp % (N / kWarpSums) * kWarpSums;
  const bool any = filter + warp_filter < filters && column + warp_column < p.inner();
  const LanePlaces<M, true> rows(warp_filter);
  const LanePlaces<N, false> columns(warp_column);
  WarpSums sums = {};
  for_steps((end - begin + kDepth - 1) / kDepth, load, [&](int stage) {
    if (!any) return;
    const E* a = tiles + stage * kStage;
    multiply_tiles(sums, a, rows, a + M * kDepth, columns);
  });
  if (!any) return;
  const int lane = thread % 32;
#pragma unroll
  for (int i = 0; i < kWarpSums / 16; ++i)
#pragma unroll
    for (int j = 0; j < kWarpSums / 8; ++j)
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int o = filter + warp_filter + i * 16 + lane / 4 + r * 8;
        const int k = column + warp_column + j * 8 + lane % 4 * 2;
        if (o >= filters || k >= stride) continue;
        store(partial + (std::int64_t{blockIdx.y} * filters + o) * stride + k,
              Pack<float, 2>{{sums[i][j][r * 2], sums[i][j][r * 2 + 1]}});
      }
}

/// gradient (filters, channels, taps) += the sum over parts.
__global__ void add_parts_kernel(int parts, std::int64_t n, int stride, int channels, int taps,
                                 Divisor by_stride, Divisor by_channels, const float* partial,
                                 float* gradient) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const int o = by_stride.quotient31(static_cast<int>(i));
  const int k = static_cast<int>(i) - o * stride, tap = by_channels.quotient31(k);
  if (tap >= taps) return;
  float sum = 0;
#pragma unroll 8
  for (int part = 0; part < parts; ++part) sum += partial[part * n + i];
  gradient[(std::int64_t{o} * channels + (k - tap * channels)) * taps + tap] += sum;
}

/// Few filters have tiles of more columns: a warp has 64 x 64 sums of either.
bool has_few_filters(const ConvolutionShape& s) { return s.out <= 64; }

/// Rows are shared out to so many parts that all blocks run at once on 132 multiprocessors, two on
/// each, but a part has 512 rows or its sums take longer to add than to make.
std::int64_t parts_of_rows(const ConvolutionShape& s) {
  constexpr std::int64_t kBlocks = 264, kFewestRows = 512;
  const bool few = has_few_filters(s);
  const std::int64_t tiles = std::int64_t{blocks_for(s.out, few ? 64 : 128)} *
                             blocks_for(s.points() * s.window.channels, few ? 256 : 128);
  const std::int64_t rows = s.window.batch * s.window.out_height() * s.window.out_width();
  return std::max<std::int64_t>(1, std::min(kBlocks / tiles, rows / kFewestRows));
}

template <int M, int N, bool kPacksA, bool kPacksB, class E>
cudaError_t launch_gradient(const ConvolutionShape& s, const E* x, const E* dy, float* partial,
                            cudaStream_t stream) {
  static_assert(M / kWarpSums * (N / kWarpSums) * 32 == kTileThreads);
  const PatchRows p = windows_of(s);
  const std::int64_t parts = parts_of_rows(s);
  const std::int64_t rows_of_part = round_up((p.rows + parts - 1) / parts, kDepth);
  const unsigned tiles = blocks_for(s.out, M) * blocks_for(p.inner(), N);
  return launch(weight_gradient_kernel<M, N, kPacksA, kPacksB, E>,
                dim3(tiles, static_cast<unsigned>(parts)), dim3(kTileThreads),
                sizeof(E) * kStages * (M + N) * kDepth +
                    sizeof(PatchPlace) * kStepsOfPlaces * kDepth + tap_bytes(p.taps()),
                stream, p, x, dy, static_cast<int>(s.out), static_cast<int>(s.patch()),
                static_cast<int>(rows_of_part), partial);
}
template <bool kPacksA, bool kPacksB, class E>
cudaError_t launch_gradient(const ConvolutionShape& s, const E* x, const E* dy, float* partial,
                            cudaStream_t stream) {
  if (has_few_filters(s))
    return launch_gradient<64, 256, kPacksA, kPacksB>(s, x, dy, partial, stream);
  return launch_gradient<128, 128, kPacksA, kPacksB>(s, x, dy, partial, stream);
}

}  // namespace

template <class E>
cudaError_t convolution_weight_gradient(const ConvolutionShape& s, const E* x, const E* dy,
                                        float* gradient, float* scratch, cudaStream_t stream) {
  const bool packs_x = s.window.channels % 8 == 0 && aligned16(x);
  const bool packs_dy = s.out % 8 == 0 && aligned16(dy);
  const cudaError_t status = packs_x && packs_dy
                                 ? launch_gradient<true, true>(s, x, dy, scratch, stream)
                             : packs_dy ? launch_gradient<true, false>(s, x, dy, scratch, stream)
                                        : launch_gradient<false, false>(s, x, dy, scratch, stream);
  if (status != cudaSuccess) return status;
  constexpr int kThreads = 256;
  const std::int64_t n = s.out * s.patch();
  return launch(add_parts_kernel, dim3(blocks_for(n, kThreads)), dim3(kThreads), 0, stream,
                static_cast<int>(parts_of_rows(s)), n, static_cast<int>(s.patch()),
                static_cast<int>(s.window.channels), static_cast<int>(s.points()),
                Divisor(s.patch(), n), Divisor(s.window.channels, s.patch()),
                static_cast<const float*>(scratch), gradient);
}
std::int64_t convolution_scratch(const ConvolutionShape& s) {
  return parts_of_rows(s) * s.out * s.patch();
}

#define RECKON_CONVOLUTION_WEIGHTS_FOR(E)                                                          \
  template cudaError_t convolution_weight_gradient<E>(const ConvolutionShape&, const E*, const E*, \
                                                      float*, float*, cudaStream_t)
RECKON_CONVOLUTION_WEIGHTS_FOR(Bf16);
RECKON_CONVOLUTION_WEIGHTS_FOR(Half);

}  // namespace reckon::gpu
