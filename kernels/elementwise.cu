#include "kernels/elementwise.h"

#include <algorithm>

#include "kernels/column_sums.cuh"
#include "kernels/divisor.h"

namespace reckon::gpu {
namespace {

constexpr int kThreads = 256;

/// out = f(a, b), N elements a thread; the last n % N go to the first threads of the grid.
template <class E, int N, class F>
__global__ void map_kernel(F f, const E* a, const E* b, E* out, bool accumulate, std::int64_t n) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t packs = n / N;
  if (i < packs) {
    const Pack<E, N> p = load<N>(a + i * N), q = load<N>(b + i * N);
    Pack<E, N> to{};
    if (accumulate) to = load<N>(out + i * N);
    for (int k = 0; k < N; ++k)
      to.at[k] = put(to.at[k], accumulate, f(to_float(p.at[k]), to_float(q.at[k])));
    store(out + i * N, to);
  }
  const std::int64_t tail = packs * N + i;
  if (i < N && tail < n)
    out[tail] =
        put(accumulate ? out[tail] : E{}, accumulate, f(to_float(a[tail]), to_float(b[tail])));
}

template <class E, class F>
cudaError_t map(F f, const E* a, const E* b, E* out, bool accumulate, std::int64_t n,
                cudaStream_t stream) {
  const bool packed = aligned16(a, b, out);
  const int each = packed ? kPack<E> : 1;
  return launch(packed ? map_kernel<E, kPack<E>, F> : map_kernel<E, 1, F>,
                dim3(blocks_for((n + each - 1) / each, kThreads)), dim3(kThreads), 0, stream, f, a,
                b, out, accumulate, n);
}

// GELU in the form with tanh [Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2], GPT-2's.
constexpr float kRoot = 0.79788456080286535588f, kCubic = 0.044715f;  // sqrt(2 / pi)
__device__ inline float sigmoid_of(float x) { return 1.0f / (1.0f + expf(-x)); }

template <Curve curve>
struct Value {
  __device__ float operator()(float x, float) const {
    if constexpr (curve == Curve::relu) return x < 0 ? 0.0f : x;  // passes on a NaN
    if constexpr (curve == Curve::gelu)
      return 0.5f * x * (1.0f + tanhf(kRoot * (x + kCubic * x * x * x)));
    if constexpr (curve == Curve::silu) return x * sigmoid_of(x);
    if constexpr (curve == Curve::tanh) return tanhf(x);
    return sigmoid_of(x);
  }
};
/// Of the kept x or y, times the gradient.
template <Curve curve>
struct Slope {
  __device__ float operator()(float kept, float dy) const {
    if constexpr (curve == Curve::relu) return kept <= 0 ? 0.0f : dy;
    if constexpr (curve == Curve::gelu) {
      const float t = tanhf(kRoot * (kept + kCubic * kept * kept * kept));
      const float inner = kRoot * (1.0f + 3.0f * kCubic * kept * kept);
      return dy * (0.5f * (1.0f + t) + 0.5f * kept * (1.0f - t * t) * inner);
    }
    if constexpr (curve == Curve::silu) {
      const float s = sigmoid_of(kept);
      return dy * (s * (1.0f + kept * (1.0f - s)));
    }
    if constexpr (curve == Curve::tanh) return dy * (1.0f - kept * kept);
    return dy * (kept * (1.0f - kept));
  }
};

struct Sum {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Product {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct Multiple {
  float factor;
  __device__ float operator()(float a, float) const { return factor * a; }
};

template <class E>
__global__ void round_kernel(const float* from, E* to, std::int64_t n) {
  const std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 4;
  for (std::int64_t k = i; k < i + 4 && k < n; ++k) to[k] = from_float<E>(from[k]);
}

template <class E>
__global__ void widen_kernel(const E* from, float* to, std::int64_t n) {
  const std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 4;
  for (std::int64_t k = i; k < i + 4 && k < n; ++k) to[k] = to_float(from[k]);
}

constexpr int kTile = 32, kTileRows = 8;

/// A transposition by tiles of shared memory, so that reads and writes are of neighbours.
template <class From, class To>
__global__ void channels_last_kernel(const From* from, To* to, std::int64_t channels,
                                     std::int64_t points, bool accumulate) {
  __shared__ float tile[kTile][kTile + 1];
  const std::int64_t sample = std::int64_t{blockIdx.z} * channels * points;
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const std::int64_t point = std::int64_t{blockIdx.x} * kTile;
  const std::int64_t channel = std::int64_t{blockIdx.y} * kTile;
  for (int k = y; k < kTile; k += kTileRows)
    if (channel + k < channels && point + x < points)
      tile[k][x] = to_float(from[sample + (channel + k) * points + point + x]);
  __syncthreads();
  for (int k = y; k < kTile; k += kTileRows)
    if (point + k < points && channel + x < channels) {
      To& out = to[sample + (point + k) * channels + channel + x];
      out = put(accumulate ? out : To{}, accumulate, tile[x][k]);
    }
}

/// Elements of a sample that are here -> their places in the whole one.
struct WholePlace {
  std::int64_t first, gap;  // between two rows, of what is not here
  Divisor columns;
  bool whole_sample;
  __device__ std::int64_t operator()(std::int64_t element) const {
    if (whole_sample) return 0;
    if (gap == 0) return first + element;
    return first + element + columns.quotient(element) * gap;
  }
};

/// Four elements a thread: those of one block of random numbers, or of several.
template <class E>
__global__ void dropout_kernel(DropoutStream mask, std::int64_t first_sample, WholePlace place,
                               std::int64_t size, const E* in, E* out, bool accumulate) {
  const std::int64_t quad = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (quad * 4 >= size) return;
  const std::int64_t sample = blockIdx.y, at = sample * size + quad * 4;
  std::int64_t numbers = place(quad * 4) / 4;
  DropoutBlock block = dropout_block(mask, first_sample + sample, numbers);
  for (int k = 0; k < 4; ++k) {
    if (quad * 4 + k >= size) break;
    const std::int64_t element = place(quad * 4 + k);
    if (element / 4 != numbers) {
      numbers = element / 4;
      block = dropout_block(mask, first_sample + sample, numbers);
    }
    const float factor = block.keeps[element % 4] ? mask.kept : 0.0f;
    out[at + k] = put(accumulate ? out[at + k] : E{}, accumulate, to_float(in[at + k]) * factor);
  }
}

template <class E>
struct Values {
  const E* values;
  std::int64_t columns;
  template <int N>
  __device__ void operator()(std::int64_t row, std::int64_t column, float (&sums)[1][N]) const {
    const Pack<E, N> p = load<N>(values + row * columns + column);
    for (int k = 0; k < N; ++k) sums[0][k] += to_float(p.at[k]);
  }
};
struct AddTotal {
  float* to;
  __device__ void operator()(std::int64_t column, const float* sums) const {
    to[column] += sums[0];
  }
};

}  // namespace

template <class E>
cudaError_t activation_forward(Curve curve, const E* x, E* y, std::int64_t n, cudaStream_t stream) {
  switch (curve) {
    case Curve::relu:
      return map(Value<Curve::relu>{}, x, x, y, false, n, stream);
    case Curve::gelu:
      return map(Value<Curve::gelu>{}, x, x, y, false, n, stream);
    case Curve::silu:
      return map(Value<Curve::silu>{}, x, x, y, false, n, stream);
    case Curve::tanh:
      return map(Value<Curve::tanh>{}, x, x, y, false, n, stream);
    case Curve::sigmoid:
      break;
  }
  return map(Value<Curve::sigmoid>{}, x, x, y, false, n, stream);
}

template <class E>
cudaError_t activation_backward(Curve curve, const E* kept, const E* dy, E* dx, bool accumulate,
                                std::int64_t n, cudaStream_t stream) {
  switch (curve) {
    case Curve::relu:
      return map(Slope<Curve::relu>{}, kept, dy, dx, accumulate, n, stream);
    case Curve::gelu:
      return map(Slope<Curve::gelu>{}, kept, dy, dx, accumulate, n, stream);
    case Curve::silu:
      return map(Slope<Curve::silu>{}, kept, dy, dx, accumulate, n, stream);
    case Curve::tanh:
      return map(Slope<Curve::tanh>{}, kept, dy, dx, accumulate, n, stream);
    case Curve::sigmoid:
      break;
  }
  return map(Slope<Curve::sigmoid>{}, kept, dy, dx, accumulate, n, stream);
}

template <class E>
cudaError_t add(const E* a, const E* b, E* out, std::int64_t n, cudaStream_t stream) {
  return map(Sum{}, a, b, out, false, n, stream);
}
template <class E>
cudaError_t multiply(const E* a, const E* b, E* out, bool accumulate, std::int64_t n,
                     cudaStream_t stream) {
  return map(Product{}, a, b, out, accumulate, n, stream);
}
template <class E>
cudaError_t scale(const E* a, float factor, E* out, bool accumulate, std::int64_t n,
                  cudaStream_t stream) {
  return map(Multiple{factor}, a, a, out, accumulate, n, stream);
}

template <class E>
cudaError_t round_to(const float* from, E* to, std::int64_t n, cudaStream_t stream) {
  return launch(round_kernel<E>, dim3(blocks_for(n, 4 * kThreads)), dim3(kThreads), 0, stream, from,
                to, n);
}
template <class E>
cudaError_t widen(const E* from, float* to, std::int64_t n, cudaStream_t stream) {
  return launch(widen_kernel<E>, dim3(blocks_for(n, 4 * kThreads)), dim3(kThreads), 0, stream, from,
                to, n);
}

template <class From, class To>
cudaError_t channels_last(const From* from, To* to, std::int64_t batch, std::int64_t channels,
                          std::int64_t points, bool accumulate, cudaStream_t stream) {
  const dim3 grid(blocks_for(points, kTile), blocks_for(channels, kTile),
                  static_cast<unsigned>(batch));
  return launch(channels_last_kernel<From, To>, grid, dim3(kTile, kTileRows), 0, stream, from, to,
                channels, points, accumulate);
}

template <class E>
cudaError_t dropout(const DropoutStream& mask, std::int64_t first_sample, std::int64_t batch,
                    std::int64_t size, bool whole_sample, const E* in, E* out, bool accumulate,
                    cudaStream_t stream, const SamplePlace& place) {
  const dim3 grid(blocks_for(size, 4 * kThreads), static_cast<unsigned>(batch));
  const std::int64_t columns = place.columns > 0 ? place.columns : std::max<std::int64_t>(1, size);
  const WholePlace whole{.first = place.first,
                         .gap = place.columns > 0 ? place.stride - place.columns : 0,
                         .columns = Divisor(columns, size),
                         .whole_sample = whole_sample};
  return launch(dropout_kernel<E>, grid, dim3(kThreads), 0, stream, mask, first_sample, whole, size,
                in, out, accumulate);
}

template <class E>
cudaError_t bias_gradient(const E* values, std::int64_t rows, std::int64_t columns, float* sums,
                          float* scratch, cudaStream_t stream) {
  return sum_columns_of<1, E>(aligned16(values), Values<E>{values, columns}, AddTotal{sums}, rows,
                              columns, scratch, stream);
}
std::int64_t bias_gradient_scratch(std::int64_t rows, std::int64_t columns) {
  return column_scratch(rows, columns, 1);
}

#define RECKON_ELEMENTWISE_FOR(E)                                                                  \
  template cudaError_t activation_forward<E>(Curve, const E*, E*, std::int64_t, cudaStream_t);     \
  template cudaError_t activation_backward<E>(Curve, const E*, const E*, E*, bool, std::int64_t,   \
                                              cudaStream_t);                                       \
  template cudaError_t add<E>(const E*, const E*, E*, std::int64_t, cudaStream_t);                 \
  template cudaError_t multiply<E>(const E*, const E*, E*, bool, std::int64_t, cudaStream_t);      \
  template cudaError_t scale<E>(const E*, float, E*, bool, std::int64_t, cudaStream_t);            \
  template cudaError_t round_to<E>(const float*, E*, std::int64_t, cudaStream_t);                  \
  template cudaError_t widen<E>(const E*, float*, std::int64_t, cudaStream_t);                     \
  template cudaError_t channels_last<E, E>(const E*, E*, std::int64_t, std::int64_t, std::int64_t, \
                                           bool, cudaStream_t);                                    \
  template cudaError_t dropout<E>(const DropoutStream&, std::int64_t, std::int64_t, std::int64_t,  \
                                  bool, const E*, E*, bool, cudaStream_t, const SamplePlace&);     \
  template cudaError_t bias_gradient<E>(const E*, std::int64_t, std::int64_t, float*, float*,      \
                                        cudaStream_t)
RECKON_ELEMENTWISE_FOR(float);
RECKON_ELEMENTWISE_FOR(Bf16);
RECKON_ELEMENTWISE_FOR(Half);
template cudaError_t channels_last<float, Bf16>(const float*, Bf16*, std::int64_t, std::int64_t,
                                                std::int64_t, bool, cudaStream_t);
template cudaError_t channels_last<float, Half>(const float*, Half*, std::int64_t, std::int64_t,
                                                std::int64_t, bool, cudaStream_t);

}  // namespace reckon::gpu
