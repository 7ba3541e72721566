#include "executor/cuda/layers/products.h"

// cuBLASLt's place in the emulator: plain loops, sums in double.
namespace reckon::cuda {

struct Products::Library {};
Products::Products(cudaStream_t) {}
Products::~Products() = default;

template <class E, class Out>
void Products::multiply(const ProductShape& s, DeviceMatrix<E> a, DeviceMatrix<E> b, Out* out,
                        std::int64_t out_stride, bool accumulate, const E* bias) {
  const auto at = [](const DeviceMatrix<E>& m, std::int64_t i, std::int64_t j) {
    return double{to_float(m.transposed ? m.data[j * m.stride + i] : m.data[i * m.stride + j])};
  };
  for (std::int64_t i = 0; i < s.rows; ++i)
    for (std::int64_t j = 0; j < s.columns; ++j) {
      double sum = bias != nullptr ? double{to_float(bias[j])} : 0.0;
      for (std::int64_t k = 0; k < s.inner; ++k) sum += at(a, i, k) * at(b, k, j);
      Out& to = out[i * out_stride + j];
      to = from_float<Out>(static_cast<float>(accumulate ? double{to_float(to)} + sum : sum));
    }
}

template void Products::multiply<float, float>(const ProductShape&, DeviceMatrix<float>,
                                               DeviceMatrix<float>, float*, std::int64_t, bool,
                                               const float*);
template void Products::multiply<Bf16, Bf16>(const ProductShape&, DeviceMatrix<Bf16>,
                                             DeviceMatrix<Bf16>, Bf16*, std::int64_t, bool,
                                             const Bf16*);
template void Products::multiply<Bf16, float>(const ProductShape&, DeviceMatrix<Bf16>,
                                              DeviceMatrix<Bf16>, float*, std::int64_t, bool,
                                              const Bf16*);
template void Products::multiply<Half, Half>(const ProductShape&, DeviceMatrix<Half>,
                                             DeviceMatrix<Half>, Half*, std::int64_t, bool,
                                             const Half*);
template void Products::multiply<Half, float>(const ProductShape&, DeviceMatrix<Half>,
                                              DeviceMatrix<Half>, float*, std::int64_t, bool,
                                              const Half*);

}  // namespace reckon::cuda
