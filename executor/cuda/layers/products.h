#pragma once
#include <cuda_runtime.h>

#include <cstdint>
#include <memory>

#include "kernels/half.h"

// Matrix products on the device: cuBLASLt, sums in float.
namespace reckon::cuda {

/// Row-major, `stride` elements from row to row; transposed: read the other way round.
template <class E>
struct DeviceMatrix {
  const E* data = nullptr;
  std::int64_t stride = 0;
  bool transposed = false;
};
struct ProductShape {
  std::int64_t rows = 0, columns = 0, inner = 0;
};

class Products {
 public:
  explicit Products(cudaStream_t stream);
  ~Products();
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// out (rows, columns) = a (rows, inner) b (inner, columns), plus bias (columns) if given, plus
  /// what is there if `accumulate`. E: float, Bf16 or Half; Out: E, or float. Throws DeviceError.
  /// The algorithm is chosen once a shape, so a run repeats bit for bit on one device.
  template <class E, class Out>
  void multiply(const ProductShape& shape, DeviceMatrix<E> a, DeviceMatrix<E> b, Out* out,
                std::int64_t out_stride, bool accumulate, const E* bias = nullptr);

 private:
  struct Library;  // cuBLASLt's handle, workspace and choices
  std::unique_ptr<Library> library_;
};

}  // namespace reckon::cuda
