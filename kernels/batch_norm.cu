#include "kernels/batch_norm.h"

#include "kernels/column_sums.cuh"

namespace reckon::gpu {
namespace {

constexpr int kThreads = 256;

template <class E>
struct Values {
  const E* x;
  std::int64_t channels;
  template <int N>
  __device__ void operator()(std::int64_t row, std::int64_t c, float (&sums)[1][N]) const {
    const Pack<E, N> p = load<N>(x + row * channels + c);
    for (int k = 0; k < N; ++k) sums[0][k] += to_float(p.at[k]);
  }
};
struct SetMean {
  float* mean;
  float share;
  __device__ void operator()(std::int64_t c, const float* sums) const { mean[c] = sums[0] * share; }
};

template <class E>
struct CentredSquares {
  const E* x;
  const float* mean;
  std::int64_t channels;
  template <int N>
  __device__ void operator()(std::int64_t row, std::int64_t c, float (&sums)[1][N]) const {
    const Pack<E, N> p = load<N>(x + row * channels + c);
    for (int k = 0; k < N; ++k) {
      const float centred = to_float(p.at[k]) - mean[c + k];
      sums[0][k] += centred * centred;
    }
  }
};
struct SetInverse {
  const float* mean;
  float *inverse, *running;
  std::int64_t channels;
  float share, unbiased, epsilon, momentum;
  __device__ void operator()(std::int64_t c, const float* sums) const {
    const float variance = sums[0] * share;
    inverse[c] = rsqrtf(variance + epsilon);
    if (running == nullptr) return;
    running[c] += momentum * (mean[c] - running[c]);
    running[channels + c] += momentum * (unbiased * variance - running[channels + c]);
  }
};

__global__ void running_kernel(BatchNormShape s, const float* running, float* mean,
                               float* inverse) {
  const std::int64_t c = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= s.channels) return;
  mean[c] = running[c];
  inverse[c] = rsqrtf(running[s.channels + c] + s.epsilon);
}

/// N neighbours a thread: of one row, for channels are a multiple of N.
template <class E, int N>
__global__ void apply_kernel(BatchNormShape s, const E* x, const float* mean, const float* inverse,
                             const E* weight, const E* bias, E* y) {
  const std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N;
  if (i >= s.rows * s.channels) return;
  const std::int64_t c = i % s.channels;
  const Pack<E, N> p = load<N>(x + i), w = load<N>(weight + c), b = load<N>(bias + c);
  Pack<E, N> out;
  for (int k = 0; k < N; ++k)
    out.at[k] = from_float<E>(
        (to_float(p.at[k]) - mean[c + k]) * inverse[c + k] * to_float(w.at[k]) + to_float(b.at[k]));
  store(y + i, out);
}

template <class E>
struct GradientTerms {
  const E *x, *dy;
  const float *mean, *inverse;
  std::int64_t channels;
  template <int N>
  __device__ void operator()(std::int64_t row, std::int64_t c, float (&sums)[2][N]) const {
    const Pack<E, N> p = load<N>(x + row * channels + c), g = load<N>(dy + row * channels + c);
    for (int k = 0; k < N; ++k) {
      sums[0][k] += to_float(g.at[k]) * ((to_float(p.at[k]) - mean[c + k]) * inverse[c + k]);
      sums[1][k] += to_float(g.at[k]);
    }
  }
};
struct KeepSums {
  float *sums, *dweight, *dbias;
  std::int64_t channels;
  __device__ void operator()(std::int64_t c, const float* totals) const {
    sums[c] = totals[0];
    sums[channels + c] = totals[1];
    if (dweight != nullptr) dweight[c] += totals[0];
    if (dbias != nullptr) dbias[c] += totals[1];
  }
};

/// dx = weight * inverse * (dy - (sum(dy) + normal * sum(dy * normal)) / rows)
/// [Ioffe & Szegedy 2015, section 3].
/// N channels a thread, and what is the same for all rows of them read once.
template <class E, int N>
__global__ void input_kernel(BatchNormShape s, const E* x, const float* mean, const float* inverse,
                             const E* weight, const E* dy, const float* sums, E* dx,
                             bool accumulate) {
  const std::int64_t c = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N;
  if (c >= s.channels) return;
  const float share = 1.0f / static_cast<float>(s.rows);
  float centre[N], scale[N], factor[N], along[N], all[N];
  for (int k = 0; k < N; ++k) {
    centre[k] = mean[c + k];
    scale[k] = inverse[c + k];
    factor[k] = to_float(weight[c + k]) * scale[k];
    along[k] = sums[c + k];
    all[k] = sums[s.channels + c + k];
  }
  const std::int64_t step = std::int64_t{gridDim.y} * blockDim.y;
  for (std::int64_t row = std::int64_t{blockIdx.y} * blockDim.y + threadIdx.y; row < s.rows;
       row += step) {
    const std::int64_t i = row * s.channels + c;
    const Pack<E, N> p = load<N>(x + i), g = load<N>(dy + i);
    Pack<E, N> out{};
    if (accumulate) out = load<N>(dx + i);
    for (int k = 0; k < N; ++k) {
      const float normal = (to_float(p.at[k]) - centre[k]) * scale[k];
      const float rest = share * (all[k] + normal * along[k]);
      out.at[k] = put(out.at[k], accumulate, factor[k] * (to_float(g.at[k]) - rest));
    }
    store(dx + i, out);
  }
}

}  // namespace

std::int64_t batch_norm_scratch(const BatchNormShape& s) {
  return column_scratch(s.rows, s.channels, 2);
}

template <class E>
cudaError_t batch_norm_measure(const BatchNormShape& s, const E* x, float* mean, float* inverse,
                               float* running, float* scratch, cudaStream_t stream) {
  const auto rows = static_cast<float>(s.rows);
  const cudaError_t status =
      sum_columns_of<1, E>(aligned16(x), Values<E>{x, s.channels}, SetMean{mean, 1 / rows}, s.rows,
                           s.channels, scratch, stream);
  if (status != cudaSuccess) return status;
  const SetInverse finish{mean,       inverse,   running,
                          s.channels, 1 / rows,  s.rows > 1 ? rows / (rows - 1) : 1.0f,
                          s.epsilon,  s.momentum};
  return sum_columns_of<1, E>(aligned16(x), CentredSquares<E>{x, mean, s.channels}, finish, s.rows,
                              s.channels, scratch, stream);
}

cudaError_t batch_norm_use_running(const BatchNormShape& s, const float* running, float* mean,
                                   float* inverse, cudaStream_t stream) {
  return launch(running_kernel, dim3(blocks_for(s.channels, kThreads)), dim3(kThreads), 0, stream,
                s, running, mean, inverse);
}

template <class E>
cudaError_t batch_norm_apply(const BatchNormShape& s, const E* x, const float* mean,
                             const float* inverse, const E* weight, const E* bias, E* y,
                             cudaStream_t stream) {
  const bool packed = s.channels % kPack<E> == 0 && aligned16(x, weight, bias, y);
  const int each = packed ? kPack<E> : 1;
  return launch(packed ? apply_kernel<E, kPack<E>> : apply_kernel<E, 1>,
                dim3(blocks_for(s.rows * s.channels, kThreads * each)), dim3(kThreads), 0, stream,
                s, x, mean, inverse, weight, bias, y);
}

template <class E>
cudaError_t batch_norm_backward(const BatchNormShape& s, const E* x, const float* mean,
                                const float* inverse, const E* weight, const E* dy, float* sums,
                                float* dweight, float* dbias, E* dx, bool accumulate,
                                float* scratch, cudaStream_t stream) {
  const cudaError_t status = sum_columns_of<2, E>(
      aligned16(x, dy), GradientTerms<E>{x, dy, mean, inverse, s.channels},
      KeepSums{sums, dweight, dbias, s.channels}, s.rows, s.channels, scratch, stream);
  if (status != cudaSuccess || dx == nullptr) return status;
  const bool packed = s.channels % kPack<E> == 0 && aligned16(x, dy, dx);
  const std::int64_t packs = packed ? s.channels / kPack<E> : s.channels;
  unsigned lanes = 1;
  while (lanes < 32 && lanes < packs) lanes *= 2;
  constexpr std::int64_t kRowsOfThread = 8, kMostBlocks = 65535;
  const std::int64_t rows_of_block = kThreads / lanes * kRowsOfThread;
  const dim3 grid(blocks_for(packs, lanes),
                  std::min<unsigned>(blocks_for(s.rows, rows_of_block), kMostBlocks));
  return launch(packed ? input_kernel<E, kPack<E>> : input_kernel<E, 1>, grid,
                dim3(lanes, kThreads / lanes), 0, stream, s, x, mean, inverse, weight, dy, sums, dx,
                accumulate);
}

#define RECKON_BATCH_NORM_FOR(E)                                                                \
  template cudaError_t batch_norm_measure<E>(const BatchNormShape&, const E*, float*, float*,   \
                                             float*, float*, cudaStream_t);                     \
  template cudaError_t batch_norm_apply<E>(const BatchNormShape&, const E*, const float*,       \
                                           const float*, const E*, const E*, E*, cudaStream_t); \
  template cudaError_t batch_norm_backward<E>(const BatchNormShape&, const E*, const float*,    \
                                              const float*, const E*, const E*, float*, float*, \
                                              float*, E*, bool, float*, cudaStream_t)
RECKON_BATCH_NORM_FOR(float);
RECKON_BATCH_NORM_FOR(Bf16);
RECKON_BATCH_NORM_FOR(Half);

}  // namespace reckon::gpu
