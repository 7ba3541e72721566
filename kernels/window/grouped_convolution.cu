#include "kernels/window/grouped_convolution.h"

#include "kernels/column_sums.cuh"
#include "kernels/window/windows.cuh"

namespace reckon::gpu {
namespace {

/// A GroupedShape as kernels read it: nothing of it is divided there.
struct Groups {
  std::int64_t out, group_in, group_out, points;
  Windows windows;
  Images made;                             // the output, of its own channels
  Divisor by_group_in, by_group_out;       // a channel
  Divisor column_out, column_in, by_taps;  // a column of the weights, in the order (tap, c, o)
  explicit Groups(const GroupedShape& s)
      : out(s.out),
        group_in(s.group_in()),
        group_out(s.group_out()),
        points(s.points()),
        windows(s.window),
        made(windows.out_height, windows.out_width, s.out,
             s.window.batch * windows.out_height * windows.out_width * s.out),
        by_group_in(group_in, s.window.channels),
        by_group_out(group_out, s.out),
        column_out(s.out, s.out * group_in * points),
        column_in(group_in, s.out * group_in * points),
        by_taps(s.window.kernel_w, points) {}
};

template <class E>
__global__ void grouped_forward_kernel(Groups s, const E* x, const E* weight, const E* bias, E* y,
                                       std::int64_t n) {
  const std::int64_t i = global_index();
  if (i >= n) return;
  const WindowShape& w = s.windows.s;
  const At at = s.made.at(i);
  const E* channels = x + s.by_group_out.quotient(at.c) * s.group_in;
  const E* row = weight + at.c * s.group_in * s.points;
  float sum = bias != nullptr ? to_float(bias[at.c]) : 0;
  const std::int64_t top = at.y * w.stride - w.padding_h, left = at.x * w.stride - w.padding_w;
  std::int64_t tap = 0;
  for (std::int64_t h = top; h < top + w.kernel_h; ++h)
    for (std::int64_t v = left; v < left + w.kernel_w; ++v, ++tap) {
      // A point outside is a zero, and not nothing: a weight that is no number stays one.
      const bool inside = h >= 0 && h < w.height && v >= 0 && v < w.width;
      const E* point = channels + s.windows.in_row(at.sample, h, v) * w.channels;
      for (std::int64_t c = 0; c < s.group_in; ++c)
        sum += (inside ? to_float(point[c]) : 0.0f) * to_float(row[c * s.points + tap]);
    }
  y[i] = from_float<E>(sum);
}

template <class E>
__global__ void grouped_input_gradient_kernel(Groups s, const E* dy, const E* weight, E* dx,
                                              bool accumulate, std::int64_t n) {
  const std::int64_t i = global_index();
  if (i >= n) return;
  const At at = s.windows.in.at(i);
  std::int64_t group = at.c;
  const std::int64_t c = s.by_group_in.take_rest(group), first = group * s.group_out;
  float sum = 0;
  for_windows_over(
      s.windows, at.y, at.x, [&](std::int64_t y, std::int64_t x, std::int64_t u, std::int64_t v) {
        const E* out = dy + s.windows.out_row(at.sample, y, x) * s.out + first;
        const E* tap = weight + (first * s.group_in + c) * s.points + u * s.windows.s.kernel_w + v;
        for (std::int64_t o = 0; o < s.group_out; ++o)
          sum += to_float(out[o]) * to_float(tap[o * s.group_in * s.points]);
      });
  dx[i] = put(accumulate ? dx[i] : E{}, accumulate, sum);
}

/// A row is an output point of a sample; a column a weight, in the order (tap, c, o), so that
/// threads beside each other read channels beside each other.
template <class E>
struct WeightTerms {
  Groups s;
  const E* x;
  const E* dy;
  __device__ void operator()(std::int64_t row, std::int64_t column, float (&sums)[1][1]) const {
    const WindowShape& w = s.windows.s;
    std::int64_t tap = column;
    const std::int64_t o = s.column_out.take_rest(tap), c = s.column_in.take_rest(tap);
    const At at = s.made.at_row(row);
    std::int64_t u = tap;
    const std::int64_t v = at.x * w.stride - w.padding_w + s.by_taps.take_rest(u);
    const std::int64_t h = at.y * w.stride - w.padding_h + u;
    const bool inside = h >= 0 && h < w.height && v >= 0 && v < w.width;
    const std::int64_t channel = s.by_group_out.quotient(o) * s.group_in + c;
    const std::int64_t from = s.windows.in_row(at.sample, h, v) * w.channels + channel;
    sums[0][0] += to_float(dy[row * s.out + o]) * (inside ? to_float(x[from]) : 0.0f);
  }
};

struct AddWeight {
  GroupedShape s;
  float* gradient;
  __device__ void operator()(std::int64_t column, const float* sums) const {
    const std::int64_t o = column % s.out, c = column / s.out % s.group_in();
    const std::int64_t tap = column / s.out / s.group_in();
    gradient[(o * s.group_in() + c) * s.points() + tap] += sums[0];
  }
};

std::int64_t rows_of(const GroupedShape& s) {
  return s.window.batch * s.window.out_height() * s.window.out_width();
}
std::int64_t weights_of(const GroupedShape& s) { return s.out * s.group_in() * s.points(); }

}  // namespace

template <class E>
cudaError_t grouped_convolution_forward(const GroupedShape& s, const E* x, const E* weight,
                                        const E* bias, E* y, cudaStream_t stream) {
  const std::int64_t n = rows_of(s) * s.out;
  return launch(grouped_forward_kernel<E>, dim3(blocks_for(n, kWindowThreads)),
                dim3(kWindowThreads), 0, stream, Groups(s), x, weight, bias, y, n);
}
template <class E>
cudaError_t grouped_convolution_input_gradient(const GroupedShape& s, const E* dy, const E* weight,
                                               E* dx, bool accumulate, cudaStream_t stream) {
  const std::int64_t n = in_elements(s.window);
  return launch(grouped_input_gradient_kernel<E>, dim3(blocks_for(n, kWindowThreads)),
                dim3(kWindowThreads), 0, stream, Groups(s), dy, weight, dx, accumulate, n);
}
template <class E>
cudaError_t grouped_convolution_weight_gradient(const GroupedShape& s, const E* x, const E* dy,
                                                float* gradient, float* scratch,
                                                cudaStream_t stream) {
  return sum_columns<1, 1>(WeightTerms<E>{Groups(s), x, dy}, AddWeight{s, gradient}, rows_of(s),
                           weights_of(s), scratch, stream);
}
std::int64_t grouped_convolution_scratch(const GroupedShape& s) {
  return column_scratch(rows_of(s), weights_of(s), 1);
}

#define RECKON_GROUPED_FOR(E)                                                                   \
  template cudaError_t grouped_convolution_forward<E>(const GroupedShape&, const E*, const E*,  \
                                                      const E*, E*, cudaStream_t);              \
  template cudaError_t grouped_convolution_input_gradient<E>(const GroupedShape&, const E*,     \
                                                             const E*, E*, bool, cudaStream_t); \
  template cudaError_t grouped_convolution_weight_gradient<E>(                                  \
      const GroupedShape&, const E*, const E*, float*, float*, cudaStream_t)
RECKON_GROUPED_FOR(float);
RECKON_GROUPED_FOR(Bf16);
RECKON_GROUPED_FOR(Half);

}  // namespace reckon::gpu
