#include "kernels/pairwise_dots.h"

#include "kernels/device.h"

namespace reckon::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kColumns = 64;  // of a sample's vectors in shared memory at a time
// A row more, so that threads of neighbouring vectors read other banks.
constexpr int kStride = kColumns + 1;
constexpr int kPairs = kMostVectors * (kMostVectors - 1) / 2;
constexpr int kPairsEach = (kPairs + kThreads - 1) / kThreads;

__device__ inline int pairs_of(const PairShape& s) {
  return static_cast<int>(s.vectors * (s.vectors - 1) / 2);
}

/// Columns [first, first + columns) of a sample's vectors.
template <class E>
__device__ void load_vectors(const PairShape& s, const VectorsOfPairs<const E>& x, std::int64_t b,
                             std::int64_t first, int columns, float* shared) {
  const int vectors = static_cast<int>(s.vectors);
  for (int i = static_cast<int>(threadIdx.x); i < vectors * columns; i += kThreads) {
    const int vector = i / columns, column = i % columns;
    shared[vector * kStride + column] = to_float(x.at[vector][b * s.width + first + column]);
  }
}

/// A block a sample, a thread some of its pairs.
template <class E>
__global__ void dots_kernel(PairShape s, VectorsOfPairs<const E> x, E* y) {
  __shared__ float shared[kMostVectors * kStride];
  const std::int64_t b = blockIdx.x;
  const int pairs = pairs_of(s), thread = static_cast<int>(threadIdx.x);
  int of[kPairsEach];  // the first vector of each of the thread's pairs
  float sums[kPairsEach] = {};
  for (int k = 0, i = 1; k < kPairsEach; ++k) {
    const int pair = thread + k * kThreads;
    while (pair < pairs && i * (i + 1) / 2 <= pair) ++i;
    of[k] = i;
  }
  for (std::int64_t first = 0; first < s.width; first += kColumns) {
    const int columns = static_cast<int>(s.width - first < kColumns ? s.width - first : kColumns);
    __syncthreads();
    load_vectors(s, x, b, first, columns, shared);
    __syncthreads();
    for (int k = 0; k < kPairsEach && thread + k * kThreads < pairs; ++k) {
      const int i = of[k], j = thread + k * kThreads - i * (i - 1) / 2;
      for (int c = 0; c < columns; ++c)
        sums[k] += shared[i * kStride + c] * shared[j * kStride + c];
    }
  }
  for (int k = 0; k < kPairsEach && thread + k * kThreads < pairs; ++k)
    y[b * pairs + thread + k * kThreads] = from_float<E>(sums[k]);
}

/// A block a sample, a thread some elements of its vectors.
template <class E>
__global__ void gradient_kernel(PairShape s, VectorsOfPairs<const E> x, const E* dy,
                                VectorsOfPairs<E> dx, std::uint64_t accumulate) {
  __shared__ float shared[kMostVectors * kStride];
  __shared__ float slopes[kPairs];
  const std::int64_t b = blockIdx.x;
  const int pairs = pairs_of(s), vectors = static_cast<int>(s.vectors);
  for (int k = static_cast<int>(threadIdx.x); k < pairs; k += kThreads)
    slopes[k] = to_float(dy[b * pairs + k]);
  for (std::int64_t first = 0; first < s.width; first += kColumns) {
    const int columns = static_cast<int>(s.width - first < kColumns ? s.width - first : kColumns);
    __syncthreads();
    load_vectors(s, x, b, first, columns, shared);
    __syncthreads();
    for (int e = static_cast<int>(threadIdx.x); e < vectors * columns; e += kThreads) {
      const int i = e / columns, column = e % columns;
      if (dx.at[i] == nullptr) continue;
      float sum = 0;
      for (int j = 0; j < i; ++j) sum += slopes[i * (i - 1) / 2 + j] * shared[j * kStride + column];
      for (int j = i + 1; j < vectors; ++j)
        sum += slopes[j * (j - 1) / 2 + i] * shared[j * kStride + column];
      E& to = dx.at[i][b * s.width + first + column];
      to = put(to, (accumulate >> i & 1) != 0, sum);
    }
  }
}

}  // namespace

template <class E>
cudaError_t pairwise_dots(const PairShape& s, const VectorsOfPairs<const E>& x, E* y,
                          cudaStream_t stream) {
  return launch(dots_kernel<E>, dim3(static_cast<unsigned>(s.batch)), dim3(kThreads), 0, stream, s,
                x, y);
}
template <class E>
cudaError_t pairwise_dots_gradient(const PairShape& s, const VectorsOfPairs<const E>& x,
                                   const E* dy, const VectorsOfPairs<E>& dx,
                                   std::uint64_t accumulate, cudaStream_t stream) {
  return launch(gradient_kernel<E>, dim3(static_cast<unsigned>(s.batch)), dim3(kThreads), 0, stream,
                s, x, dy, dx, accumulate);
}

#define RECKON_PAIRWISE_DOTS_FOR(E)                                                                \
  template cudaError_t pairwise_dots<E>(const PairShape&, const VectorsOfPairs<const E>&, E*,      \
                                        cudaStream_t);                                             \
  template cudaError_t pairwise_dots_gradient<E>(const PairShape&, const VectorsOfPairs<const E>&, \
                                                 const E*, const VectorsOfPairs<E>&,               \
                                                 std::uint64_t, cudaStream_t)
RECKON_PAIRWISE_DOTS_FOR(float);
RECKON_PAIRWISE_DOTS_FOR(Bf16);
RECKON_PAIRWISE_DOTS_FOR(Half);

}  // namespace reckon::gpu
