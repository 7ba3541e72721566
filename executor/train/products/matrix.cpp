#include "executor/train/products/matrix.h"

#include <algorithm>
#include <type_traits>

#include "executor/train/products/matrix_table.h"

namespace reckon {
namespace {

enum class Isa { baseline, avx2, avx512 };

Isa best_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
    return Isa::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::baseline;
}

template <class T>
matrix::Product<T> choose() {
  constexpr bool kFloat = std::is_same_v<T, float>;
  const auto of = [](matrix::Product<float> f, matrix::Product<double> d) {
    if constexpr (kFloat)
      return static_cast<void>(d), f;
    else
      return static_cast<void>(f), d;
  };
#if defined(__x86_64__)
  if (best_isa() == Isa::avx512) return of(matrix::float_avx512, matrix::double_avx512);
  if (best_isa() == Isa::avx2) return of(matrix::float_avx2, matrix::double_avx2);
#endif
  return of(matrix::float_baseline, matrix::double_baseline);
}

/// Rows (or columns) of one task: enough work to be worth handing over, and long enough that
/// Eigen's packing of the other operand, once a task, does not show.
std::int64_t piece_of(std::int64_t extent, double flops_each) {
  constexpr double kLeastFlops = 4e6;
  constexpr std::int64_t kLeast = 128, kMostTasks = 16;
  const auto worthwhile = static_cast<std::int64_t>(kLeastFlops / std::max(flops_each, 1.0)) + 1;
  const std::int64_t piece = std::max({kLeast, worthwhile, (extent + kMostTasks - 1) / kMostTasks});
  return std::min(extent, (piece + 15) / 16 * 16);
}

}  // namespace

const char* matrix_instructions() {
  switch (best_isa()) {
    case Isa::avx512:
      return "avx512";
    case Isa::avx2:
      return "avx2";
    case Isa::baseline:
      break;
  }
  return "baseline";
}

template <class T>
void multiply_here(ProductSize size, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t c_stride,
                   bool accumulate) {
  static const matrix::Product<T> product = choose<T>();
  product(size, a, b, c, c_stride, accumulate);
}

template <class T>
void multiply(Workers& workers, ProductSize size, MatrixView<T> a, MatrixView<T> b, T* c,
              std::int64_t c_stride, bool accumulate) {
  // By name: clang captures no structured bindings.
  const std::int64_t m = size.m, n = size.n, k = size.k;
  if (m >= n) {
    const std::int64_t piece = piece_of(m, 2.0 * static_cast<double>(n) * static_cast<double>(k));
    workers.run_pieces(m, piece, [&](std::int64_t begin, std::int64_t end) {
      MatrixView<T> rows = a;
      rows.data += a.transposed ? begin : begin * a.stride;
      multiply_here<T>({end - begin, n, k}, rows, b, c + begin * c_stride, c_stride, accumulate);
    });
  } else {
    const std::int64_t piece = piece_of(n, 2.0 * static_cast<double>(m) * static_cast<double>(k));
    workers.run_pieces(n, piece, [&](std::int64_t begin, std::int64_t end) {
      MatrixView<T> columns = b;
      columns.data += b.transposed ? begin * b.stride : begin;
      multiply_here<T>({m, end - begin, k}, a, columns, c + begin, c_stride, accumulate);
    });
  }
}

template void multiply_here<float>(ProductSize, MatrixView<float>, MatrixView<float>, float*,
                                   std::int64_t, bool);
template void multiply_here<double>(ProductSize, MatrixView<double>, MatrixView<double>, double*,
                                    std::int64_t, bool);
template void multiply<float>(Workers&, ProductSize, MatrixView<float>, MatrixView<float>, float*,
                              std::int64_t, bool);
template void multiply<double>(Workers&, ProductSize, MatrixView<double>, MatrixView<double>,
                               double*, std::int64_t, bool);

}  // namespace reckon
