#pragma once
#include <type_traits>

#include "kernels/device.h"

// Tensor cores by the instructions that every architecture since sm_80 has (older ones never come
// here, device_multiplies_tiles()): mma.m16n8k16 of bf16 and of fp16 with sums in float, and
// ldmatrix. Fragments as in the PTX ISA, "Matrix fragments for mma.m16n8k16": with g = lane / 4 and
// t = lane % 4,
//   A (16 x 16): r[0] holds (g, 2t), (g, 2t + 1); r[1] row g + 8; r[2] column + 8; r[3] both
//   B (16 x 8):  r[0] holds (2t, g), (2t + 1, g); r[1] row + 8
//   C (16 x 8):  c[0], c[1] are (g, 2t), (g, 2t + 1); c[2], c[3] row g + 8
namespace reckon::gpu {

struct FragmentA {
  std::uint32_t r[4];
};
/// Two neighbours: columns 0-7 (r[0], r[1]) and 8-15 (r[2], r[3]).
struct FragmentB2 {
  std::uint32_t r[4];
};

#ifdef __CUDACC__
/// c += a b, b the first (which = 0) or second of the two.
template <class E>
__device__ inline void multiply_add(float (&c)[4], const FragmentA& a, const FragmentB2& b,
                                    int which) {
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<E, Bf16>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[2 * which]),
          "r"(b.r[2 * which + 1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[2 * which]),
          "r"(b.r[2 * which + 1]));
#else
  __trap();
#endif
}
/// Four 8 x 8 matrices; lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void load_matrices(std::uint32_t (&r)[4], const void* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_matrices_transposed(std::uint32_t (&r)[4], const void* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
#else
template <class E>
void multiply_add(float (&c)[4], const FragmentA& a, const FragmentB2& b, int which) {
  emulator::multiply_add(c, a.r, b.r + 2 * which,
                         [](std::uint16_t bits) { return to_float(E{bits}); });
}
inline void load_matrices(std::uint32_t (&r)[4], const void* row) {
  emulator::load_matrices(r, row, false);
}
inline void load_matrices_transposed(std::uint32_t (&r)[4], const void* row) {
  emulator::load_matrices(r, row, true);
}
#endif

/// Whether the current device has these instructions.
inline bool device_multiplies_tiles() {
#ifdef __CUDACC__
  int device = 0, major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         major >= 8;
#else
  return true;
#endif
}

template <class E>
__device__ inline std::uint32_t two(float low, float high) {
  return std::uint32_t{from_float<E>(low).bits} | (std::uint32_t{from_float<E>(high).bits} << 16);
}

/// Rows of a tile in shared memory are padded, so that eight of them lie in different banks.
template <int W>
constexpr int kTileStride = W + 8;

/// A: tile[row ... row + 15][k ... k + 15]
template <int W, class E>
__device__ inline FragmentA rows_of_tile(const E* tile, int row, int k) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  FragmentA a;
  load_matrices(a.r, tile + (row + lane % 16) * kTileStride<W> + k + lane / 16 * 8);
  return a;
}
/// B of a product with the tile's transpose: tile[n ... n + 15][k ... k + 15], n its columns.
template <int W, class E>
__device__ inline FragmentB2 transpose_of_tile(const E* tile, int n, int k) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  FragmentB2 b;
  load_matrices(b.r, tile + (n + lane % 8 + lane / 16 * 8) * kTileStride<W> + k + lane / 8 % 2 * 8);
  return b;
}
/// B of a product with the tile: tile[k ... k + 15][n ... n + 15].
template <int W, class E>
__device__ inline FragmentB2 columns_of_tile(const E* tile, int k, int n) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  FragmentB2 b;
  load_matrices_transposed(b.r, tile + (k + lane % 16) * kTileStride<W> + n + lane / 16 * 8);
  return b;
}

}  // namespace reckon::gpu
