#include "kernels/norm.h"

#include "kernels/column_sums.cuh"

namespace reckon::gpu {
namespace {

constexpr int kWarps = 8;  // of a block, a row each

template <class E, int N>
__global__ void forward_kernel(NormShape s, const E* x, const E* weight, const E* bias, E* y,
                               float* mean, float* inverse) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (row >= s.rows) return;  // a whole warp
  const int lane = static_cast<int>(threadIdx.x % 32);
  const E* from = x + row * s.width;
  float centre = 0;
  if (s.centred) {
    for (std::int64_t j = lane * N; j < s.width; j += 32 * N) {
      const Pack<E, N> p = load<N>(from + j);
      for (int k = 0; k < N; ++k) centre += to_float(p.at[k]);
    }
    centre = warp_sum(centre) / static_cast<float>(s.width);
  }
  float square = 0;  // of the centred values: no cancellation
  for (std::int64_t j = lane * N; j < s.width; j += 32 * N) {
    const Pack<E, N> p = load<N>(from + j);
    for (int k = 0; k < N; ++k) {
      const float v = to_float(p.at[k]) - centre;
      square += v * v;
    }
  }
  const float scale = rsqrtf(warp_sum(square) / static_cast<float>(s.width) + s.epsilon);
  if (lane == 0) {
    if (mean != nullptr) mean[row] = centre;
    inverse[row] = scale;
  }
  for (std::int64_t j = lane * N; j < s.width; j += 32 * N) {
    const Pack<E, N> p = load<N>(from + j), w = load<N>(weight + j);
    Pack<E, N> b{}, out;
    if (bias != nullptr) b = load<N>(bias + j);
    for (int k = 0; k < N; ++k)
      out.at[k] = from_float<E>((to_float(p.at[k]) - centre) * scale * to_float(w.at[k]) +
                                to_float(b.at[k]));
    store(y + row * s.width + j, out);
  }
}

/// dx = inverse * (g - mean(g) - normal * mean(g * normal)), g = dy * weight; without centring the
/// second term is not there [Ba 2016; Zhang & Sennrich 2019, differentiated].
template <class E, int N>
__global__ void input_kernel(NormShape s, const E* x, const E* weight, const float* mean,
                             const float* inverse, const E* dy, E* dx, bool accumulate) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (row >= s.rows) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t at = row * s.width;
  const float centre = s.centred ? mean[row] : 0.0f, scale = inverse[row];
  float sum = 0, along = 0;
  for (std::int64_t j = lane * N; j < s.width; j += 32 * N) {
    const Pack<E, N> p = load<N>(x + at + j), w = load<N>(weight + j), g = load<N>(dy + at + j);
    for (int k = 0; k < N; ++k) {
      const float slope = to_float(g.at[k]) * to_float(w.at[k]);
      sum += slope;
      along += slope * ((to_float(p.at[k]) - centre) * scale);
    }
  }
  const float share = 1.0f / static_cast<float>(s.width);
  sum = s.centred ? warp_sum(sum) * share : 0.0f;
  along = warp_sum(along) * share;
  for (std::int64_t j = lane * N; j < s.width; j += 32 * N) {
    const Pack<E, N> p = load<N>(x + at + j), w = load<N>(weight + j), g = load<N>(dy + at + j);
    Pack<E, N> out{};
    if (accumulate) out = load<N>(dx + at + j);
    for (int k = 0; k < N; ++k) {
      const float normal = (to_float(p.at[k]) - centre) * scale;
      const float slope = to_float(g.at[k]) * to_float(w.at[k]);
      out.at[k] = put(out.at[k], accumulate, scale * (slope - sum - normal * along));
    }
    store(dx + at + j, out);
  }
}

template <class E>
struct WeightTerms {
  const E *x, *dy;
  const float *mean, *inverse;
  std::int64_t width;
  template <int N>
  __device__ void operator()(std::int64_t row, std::int64_t column, float (&sums)[2][N]) const {
    const std::int64_t at = row * width + column;
    const Pack<E, N> p = load<N>(x + at), g = load<N>(dy + at);
    const float centre = mean != nullptr ? mean[row] : 0.0f, scale = inverse[row];
    for (int k = 0; k < N; ++k) {
      sums[0][k] += to_float(g.at[k]) * ((to_float(p.at[k]) - centre) * scale);
      sums[1][k] += to_float(g.at[k]);
    }
  }
};
struct AddTotals {
  float *dweight, *dbias;
  __device__ void operator()(std::int64_t column, const float* sums) const {
    if (dweight != nullptr) dweight[column] += sums[0];
    if (dbias != nullptr) dbias[column] += sums[1];
  }
};

}  // namespace

template <class E>
cudaError_t norm_forward(const NormShape& s, const E* x, const E* weight, const E* bias, E* y,
                         float* mean, float* inverse, cudaStream_t stream) {
  const bool packed = s.width % kPack<E> == 0 && aligned16(x, weight, bias, y);
  return launch(packed ? forward_kernel<E, kPack<E>> : forward_kernel<E, 1>,
                dim3(blocks_for(s.rows, kWarps)), dim3(32 * kWarps), 0, stream, s, x, weight, bias,
                y, s.centred ? mean : nullptr, inverse);
}

template <class E>
cudaError_t norm_backward_input(const NormShape& s, const E* x, const E* weight, const float* mean,
                                const float* inverse, const E* dy, E* dx, bool accumulate,
                                cudaStream_t stream) {
  const bool packed = s.width % kPack<E> == 0 && aligned16(x, weight, dy, dx);
  return launch(packed ? input_kernel<E, kPack<E>> : input_kernel<E, 1>,
                dim3(blocks_for(s.rows, kWarps)), dim3(32 * kWarps), 0, stream, s, x, weight, mean,
                inverse, dy, dx, accumulate);
}

template <class E>
cudaError_t norm_backward_weight(const NormShape& s, const E* x, const float* mean,
                                 const float* inverse, const E* dy, float* dweight, float* dbias,
                                 float* scratch, cudaStream_t stream) {
  const WeightTerms<E> terms{x, dy, s.centred ? mean : nullptr, inverse, s.width};
  return sum_columns_of<2, E>(aligned16(x, dy), terms, AddTotals{dweight, dbias}, s.rows, s.width,
                              scratch, stream);
}

std::int64_t norm_scratch(const NormShape& s) { return column_scratch(s.rows, s.width, 2); }

#define RECKON_NORM_FOR(E)                                                                         \
  template cudaError_t norm_forward<E>(const NormShape&, const E*, const E*, const E*, E*, float*, \
                                       float*, cudaStream_t);                                      \
  template cudaError_t norm_backward_input<E>(const NormShape&, const E*, const E*, const float*,  \
                                              const float*, const E*, E*, bool, cudaStream_t);     \
  template cudaError_t norm_backward_weight<E>(const NormShape&, const E*, const float*,           \
                                               const float*, const E*, float*, float*, float*,     \
                                               cudaStream_t)
RECKON_NORM_FOR(float);
RECKON_NORM_FOR(Bf16);
RECKON_NORM_FOR(Half);

}  // namespace reckon::gpu
