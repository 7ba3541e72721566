#pragma once
#include <cstdint>

#include "executor/train/workers.h"

// Matrix products. Eigen stands behind this header and nowhere else; on x86-64 it is compiled for
// three instruction sets, and the machine's best is chosen at the start.
namespace reckon {

/// A row-major matrix whose rows begin `stride` elements apart; `transposed`: it stands for the
/// transpose of what lies in memory.
template <class T>
struct MatrixView {
  const T* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};

struct ProductSize {
  std::int64_t m = 0, n = 0, k = 0;
};

/// c (m, n) = a (m, k) b (k, n), or c += where `accumulate`; rows of c are c_stride apart. In the
/// calling thread.
template <class T>
void multiply_here(ProductSize size, MatrixView<T> a, MatrixView<T> b, T* c, std::int64_t c_stride,
                   bool accumulate);

/// The same by all workers. How it is split depends on the sizes alone.
template <class T>
void multiply(Workers& workers, ProductSize size, MatrixView<T> a, MatrixView<T> b, T* c,
              std::int64_t c_stride, bool accumulate);

/// "avx512", "avx2" or "baseline": what products run with here.
const char* matrix_instructions();

}  // namespace reckon
