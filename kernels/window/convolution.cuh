#pragma once
#include "kernels/divisor.h"
#include "kernels/mma.cuh"
#include "kernels/window/convolution.h"

// What the kernels of convolution*.cu share. Four warps a block, 64 x 64 sums a warp: that many, or
// reading fragments from shared memory takes longer than multiplying them. Three stages of tiles:
// while one is multiplied, two travel. Two blocks a multiprocessor.
namespace reckon::gpu {

constexpr int kTileThreads = 128, kWarpSums = 64;
constexpr int kDepth = 32;  // of the inner index, a step
constexpr int kStages = 3;

/// In shared memory; W elements a row. Rows of kDepth hold the inner index; in wider ones it is the
/// row. The 16 bytes of a part are eight elements; parts of a row change places by the row's
/// number, so that neither the parts of a row nor one part of eight rows meet in a bank.
template <class E, int W>
struct Tile {
  E* data;

  static constexpr int kParts = W / 8, kRowsAtOnce = kTileThreads / kParts;
  __device__ E* at(int row, int part) const {
    return data + row * W + (part ^ (W == kDepth ? row / 2 % 4 : row % 8)) * 8;
  }
};

/// Where a lane begins to read the fragments of 64 rows, or columns, of a product, from `first` on:
/// what it adds to the tile's beginning is computed once. kLeft: of the first factor.
template <int W, bool kLeft>
struct LanePlaces {
  static constexpr bool kAlong = W == kDepth;
  static constexpr int kCount = kAlong ? kDepth / 16 : kWarpSums / 16;
  int of[kCount];
  __device__ explicit LanePlaces(int first) {
    const int lane = static_cast<int>(threadIdx.x % 32);
    constexpr bool kInOrder = kAlong == kLeft;  // the matrices of a fragment: down, then across
    const int row = kInOrder ? lane % 16 : lane % 8 + lane / 16 * 8;
    const int part = kInOrder ? lane / 16 : lane / 8 % 2;
#pragma unroll
    for (int q = 0; q < kCount; ++q)
      of[q] = (kAlong ? (first + row) * W : row * W + first) +
              ((q * 2 + part) ^ (kAlong ? row / 2 % 4 : row % 8)) * 8;
  }
  /// The 16 rows or columns of number i, at inner index k.
  template <class E>
  __device__ void load(std::uint32_t (&r)[4], const E* tile, int i, int k) const {
    if constexpr (kAlong)
      load_matrices(r, tile + of[k / 16] + i * 16 * W);
    else
      load_matrices_transposed(r, tile + of[i] + k * W);
  }
};

using WarpSums = float[kWarpSums / 16][kWarpSums / 8][4];

/// sums += the warp's rows of tile a times its columns of tile b
template <int WA, int WB, class E>
__device__ void multiply_tiles(WarpSums& sums, const E* a, const LanePlaces<WA, true>& rows,
                               const E* b, const LanePlaces<WB, false>& columns) {
#pragma unroll
  for (int k = 0; k < kDepth; k += 16) {
    FragmentB2 right[kWarpSums / 16];
#pragma unroll
    for (int j = 0; j < kWarpSums / 16; ++j) columns.load(right[j].r, b, j, k);
#pragma unroll
    for (int i = 0; i < kWarpSums / 16; ++i) {
      FragmentA left;
      rows.load(left.r, a, i, k);
#pragma unroll
      for (int j = 0; j < kWarpSums / 8; ++j)
        multiply_add<E>(sums[i][j], left, right[j / 2], j % 2);
    }
  }
}

/// load(step, stage) begins to bring the tiles of a step, multiply(stage) waits for nothing.
template <class Load, class Multiply>
__device__ void for_steps(int steps, Load load, Multiply multiply) {
#pragma unroll 1
  for (int s = 0; s < kStages - 1; ++s) {
    if (s < steps) load(s, s);
    end_copies();
  }
  int stage = 0, free = kStages - 1;
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<kStages - 2>();
    __syncthreads();  // the step's tiles are there, and all have read those before
    if (step + kStages - 1 < steps) load(step + kStages - 1, free);
    end_copies();
    multiply(stage);
    stage = stage == kStages - 1 ? 0 : stage + 1;
    free = free == kStages - 1 ? 0 : free + 1;
  }
}

/// Rows of patches: row (n, i, j) is one of (batch, high, wide), and has its tap (0, 0) at
/// (top + i step, left + j step) of image n, and the others below and to the right of it, or above
/// and to the left (direction -1).
struct PatchRows {
  int rows, high, wide, step, top, left;
  int height, width, channels;  // of the images
  int taps_h, taps_w, direction;
  int weight, weight_down, weight_right;  // elements of a row of weights: the first tap, the others
  Divisor by_high, by_wide, by_channels;
  PatchRows(std::int64_t batch, std::int64_t high_, std::int64_t wide_, std::int64_t channels_,
            std::int64_t taps)
      : rows(static_cast<int>(batch * high_ * wide_)),
        high(static_cast<int>(high_)),
        wide(static_cast<int>(wide_)),
        channels(static_cast<int>(channels_)),
        by_high(high_, batch * high_),
        by_wide(wide_, batch * high_ * wide_),
        by_channels(channels_, taps * channels_ + kDepth) {}
  RECKON_BOTH int taps() const { return taps_h * taps_w; }
  RECKON_BOTH int inner() const { return taps() * channels; }
};
/// The windows of a convolution.
inline PatchRows windows_of(const ConvolutionShape& s) {
  const WindowShape& w = s.window;
  PatchRows p(w.batch, w.out_height(), w.out_width(), w.channels, s.points());
  p.step = static_cast<int>(w.stride);
  p.top = static_cast<int>(-w.padding_h);
  p.left = static_cast<int>(-w.padding_w);
  p.height = static_cast<int>(w.height);
  p.width = static_cast<int>(w.width);
  p.taps_h = static_cast<int>(w.kernel_h);
  p.taps_w = static_cast<int>(w.kernel_w);
  p.direction = 1;
  p.weight = 0;
  p.weight_right = p.channels;
  p.weight_down = p.taps_w * p.channels;
  return p;
}

/// What lies outside every image, whatever is added to it.
constexpr int kOutside = -(1 << 29);

/// Of a row: its first tap, and where that lies in the images.
struct alignas(16) PatchPlace {
  int from, y, x;
};
__device__ inline PatchPlace place_of_row(const PatchRows& p, int row) {
  if (row >= p.rows) return {0, kOutside, 0};
  const int line = p.by_wide.quotient31(row), n = p.by_high.quotient31(line);
  PatchPlace place;
  place.y = (line - n * p.high) * p.step + p.top;
  place.x = (row - line * p.wide) * p.step + p.left;
  place.from = ((n * p.height + place.y) * p.width + place.x) * p.channels;
  return place;
}

/// Of a tap: what is added to a row's first, and to where a row of weights begins.
struct alignas(16) Tap {
  int from, y, x, weight;
};
/// `taps` gets them all, and one more that is outside.
__device__ inline void write_taps(const PatchRows& p, Tap* taps) {
  for (int t = static_cast<int>(threadIdx.x); t <= p.taps(); t += kTileThreads) {
    taps[t] = {0, kOutside, 0, 0};
    if (t == p.taps()) continue;
    const int u = t / p.taps_w, v = t - u * p.taps_w, y = u * p.direction, x = v * p.direction;
    taps[t] = {(y * p.width + x) * p.channels, y, x,
               p.weight + u * p.weight_down + v * p.weight_right};
  }
}
inline std::size_t tap_bytes(std::int64_t taps) {
  return static_cast<std::size_t>(taps + 1) * sizeof(Tap);
}
__device__ inline bool has_point(const PatchRows& p, const PatchPlace& row, const Tap& tap) {
  return static_cast<unsigned>(row.y + tap.y) < static_cast<unsigned>(p.height) &&
         static_cast<unsigned>(row.x + tap.x) < static_cast<unsigned>(p.width);
}

/// A place along a row of patches.
struct Inner {
  int tap, c;
  __device__ explicit Inner(const PatchRows& p, int k) : tap(p.by_channels.quotient31(k)) {
    c = k - tap * p.channels;
  }
  __device__ void advance(const PatchRows& p, int by) {
    for (c += by; c >= p.channels; c -= p.channels) ++tap;
  }
  __device__ const Tap& of(const PatchRows& p, const Tap* taps) const {
    return taps[tap < p.taps() ? tap : p.taps()];
  }
};

/// kRows rows of patches, eight elements each from `k` on, to eight elements each of shared memory;
/// kPacks: which are channels of one tap, and aligned. to(i): of row i.
template <bool kPacks, int kRows, class E, class To>
__device__ void copy_patches(const PatchRows& p, const E* x, const PatchPlace (&rows)[kRows],
                             Inner k, const Tap* taps, To to) {
  if constexpr (kPacks) {
    const Tap tap = k.of(p, taps);
    const int from = tap.from + k.c;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const bool there = has_point(p, rows[i], tap);
      copy_to_shared<16, true>(to(i), x + (there ? rows[i].from + from : 0), there);
    }
  } else {
    Pack<E, 8> packs[kRows] = {};
#pragma unroll
    for (int e = 0; e < 8; ++e, k.advance(p, 1)) {
      const Tap tap = k.of(p, taps);
#pragma unroll
      for (int i = 0; i < kRows; ++i)
        if (has_point(p, rows[i], tap)) packs[i].at[e] = x[rows[i].from + tap.from + k.c];
    }
#pragma unroll
    for (int i = 0; i < kRows; ++i) store(to(i), packs[i]);
  }
}
/// `count` of eight neighbours, and zeros.
template <bool kPacks, class E>
__device__ void copy_neighbours(E* to, const E* from, int at, int count) {
  if constexpr (kPacks) {
    copy_to_shared<16>(to, from + (count > 0 ? at : 0), count > 0);
  } else {
    Pack<E, 8> pack{};
#pragma unroll
    for (int e = 0; e < 8; ++e)
      if (e < count) pack.at[e] = from[at + e];
    store(to, pack);
  }
}

}  // namespace reckon::gpu
