#include "kernels/embedding.h"

#include <cmath>

#include "kernels/device.h"
#include "kernels/record_id.h"

namespace reckon::gpu {
namespace {

constexpr int kThreads = 256;

template <class E, int N>
__global__ void gather_kernel(std::int64_t rows, std::int64_t width, TableRows part,
                              const float* numbers, IdPlaces ids, const E* table, E* y) {
  const std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * N;
  if (i >= rows * width) return;
  const std::int64_t row = i / width, column = i % width, at = ids.at(row);
  float sums[N] = {};
  for (std::int64_t k = 0; k < ids.each; ++k) {
    const std::int64_t id = record_id(numbers[at + k]) - part.first;
    if (id < 0 || id >= part.count) continue;
    const Pack<E, N> vector = load<N>(table + id * width + column);
    for (int j = 0; j < N; ++j) sums[j] += to_float(vector.at[j]);
  }
  Pack<E, N> sum;
  for (int j = 0; j < N; ++j) sum.at[j] = from_float<E>(sums[j]);
  store(y + i, sum);
}

/// A thread a column: all of a group's rows, one after the other.
template <class E>
__global__ void scatter_kernel(std::int64_t width, IdGroups groups, const E* dy, float* gradient) {
  const std::int64_t group = blockIdx.x;
  const std::int64_t column = std::int64_t{blockIdx.y} * kThreads + threadIdx.x;
  if (column >= width) return;
  float sum = 0;
  for (std::int32_t k = groups.starts[group]; k < groups.starts[group + 1]; ++k)
    sum += to_float(dy[groups.order[k] * width + column]);
  gradient[groups.ids[group] * width + column] += sum;
}

template <class E>
__global__ void position_kernel(std::int64_t count, std::int64_t size, const E* x, const E* table,
                                E* y) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) y[i] = from_float<E>(to_float(x[i]) + to_float(table[i % size]));
}

template <class E>
__global__ void position_gradient_kernel(std::int64_t batch, std::int64_t size, const E* dy,
                                         float* gradient) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= size) return;
  float sum = 0;
  for (std::int64_t b = 0; b < batch; ++b) sum += to_float(dy[b * size + i]);
  gradient[i] += sum;
}

/// A thread a pair of features; the first threads of a head also carry what is not turned.
template <class E>
__global__ void rotary_kernel(RotaryShape s, float direction, float log2_theta, const E* x, E* y,
                              bool accumulate) {
  const std::int64_t half = s.rotated / 2, pairs = s.head_width - half;
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= s.batch * s.tokens * s.heads * pairs) return;
  const std::int64_t head = i / pairs, pair = i % pairs;
  const E* from = x + head * s.head_width;
  E* to = y + head * s.head_width;
  const auto write = [&](std::int64_t at, float value) {
    to[at] = put(accumulate ? to[at] : E{}, accumulate, value);
  };
  if (pair >= half) {  // features [rotated, head_width)
    const std::int64_t at = s.rotated + pair - half;
    write(at, to_float(from[at]));
    return;
  }
  const auto position = static_cast<float>(s.first + head / s.heads % s.tokens);
  const float angle = position * exp2f(-log2_theta * 2.0f * static_cast<float>(pair) /
                                       static_cast<float>(s.rotated));
  const float c = cosf(angle), sine = direction * sinf(angle);
  const float low = to_float(from[pair]), high = to_float(from[pair + half]);
  write(pair, low * c - high * sine);
  write(pair + half, high * c + low * sine);
}

}  // namespace

template <class E>
cudaError_t embedding_forward(std::int64_t rows, std::int64_t width, const float* numbers,
                              const IdPlaces& ids, const E* table, E* y, cudaStream_t stream,
                              TableRows part) {
  const bool packed = width % kPack<E> == 0 && aligned16(table, y);
  const int each = packed ? kPack<E> : 1;
  return launch(packed ? gather_kernel<E, kPack<E>> : gather_kernel<E, 1>,
                dim3(blocks_for(rows * width, kThreads * each)), dim3(kThreads), 0, stream, rows,
                width, part, numbers, ids, table, y);
}

template <class E>
cudaError_t embedding_backward(std::int64_t width, const IdGroups& groups, const E* dy,
                               float* gradient, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(groups.groups), blocks_for(width, kThreads));
  return launch(scatter_kernel<E>, grid, dim3(kThreads), 0, stream, width, groups, dy, gradient);
}

template <class E>
cudaError_t position_forward(std::int64_t batch, std::int64_t size, const E* x, const E* table,
                             E* y, cudaStream_t stream) {
  return launch(position_kernel<E>, dim3(blocks_for(batch * size, kThreads)), dim3(kThreads), 0,
                stream, batch * size, size, x, table, y);
}

template <class E>
cudaError_t position_backward(std::int64_t batch, std::int64_t size, const E* dy, float* gradient,
                              cudaStream_t stream) {
  return launch(position_gradient_kernel<E>, dim3(blocks_for(size, kThreads)), dim3(kThreads), 0,
                stream, batch, size, dy, gradient);
}

template <class E>
cudaError_t rotary(const RotaryShape& s, int direction, const E* x, E* y, bool accumulate,
                   cudaStream_t stream) {
  const std::int64_t pairs = s.batch * s.tokens * s.heads * (s.head_width - s.rotated / 2);
  return launch(rotary_kernel<E>, dim3(blocks_for(pairs, kThreads)), dim3(kThreads), 0, stream, s,
                static_cast<float>(direction), static_cast<float>(std::log2(s.theta)), x, y,
                accumulate);
}

#define RECKON_EMBEDDING_FOR(E)                                                                \
  template cudaError_t embedding_forward<E>(std::int64_t, std::int64_t, const float*,          \
                                            const IdPlaces&, const E*, E*, cudaStream_t,       \
                                            TableRows);                                        \
  template cudaError_t embedding_backward<E>(std::int64_t, const IdGroups&, const E*, float*,  \
                                             cudaStream_t);                                    \
  template cudaError_t position_forward<E>(std::int64_t, std::int64_t, const E*, const E*, E*, \
                                           cudaStream_t);                                      \
  template cudaError_t position_backward<E>(std::int64_t, std::int64_t, const E*, float*,      \
                                            cudaStream_t);                                     \
  template cudaError_t rotary<E>(const RotaryShape&, int, const E*, E*, bool, cudaStream_t)
RECKON_EMBEDDING_FOR(float);
RECKON_EMBEDDING_FOR(Bf16);
RECKON_EMBEDDING_FOR(Half);

}  // namespace reckon::gpu
