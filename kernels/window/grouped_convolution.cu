#include "kernels/window/grouped_convolution.h"

#include "kernels/column_sums.cuh"
#include "kernels/window/windows.cuh"

namespace reckon::gpu {
namespace {

template <class E>
__global__ void grouped_forward_kernel(GroupedShape s, const E* x, const E* weight, const E* bias,
                                       E* y, std::int64_t n) {
  const std::int64_t i = global_index();
  if (i >= n) return;
  const WindowShape& w = s.window;
  const At at(i, w.out_height(), w.out_width(), s.out);
  const std::int64_t group_in = s.group_in(), points = s.points();
  const E* image =
      x + at.sample * w.height * w.width * w.channels + at.c / s.group_out() * group_in;
  const E* row = weight + at.c * group_in * points;
  float sum = bias != nullptr ? to_float(bias[at.c]) : 0;
  for (std::int64_t tap = 0; tap < points; ++tap) {
    const std::int64_t h = at.y * w.stride - w.padding_h + tap / w.kernel_w;
    const std::int64_t v = at.x * w.stride - w.padding_w + tap % w.kernel_w;
    const bool inside = h >= 0 && h < w.height && v >= 0 && v < w.width;
    const E* point = image + (h * w.width + v) * w.channels;
    for (std::int64_t c = 0; c < group_in; ++c)
      sum += (inside ? to_float(point[c]) : 0.0f) * to_float(row[c * points + tap]);
  }
  y[i] = from_float<E>(sum);
}

template <class E>
__global__ void grouped_input_gradient_kernel(GroupedShape s, const E* dy, const E* weight, E* dx,
                                              bool accumulate, std::int64_t n) {
  const std::int64_t i = global_index();
  if (i >= n) return;
  const WindowShape& w = s.window;
  const At at(i, w.height, w.width, w.channels);
  const std::int64_t group_in = s.group_in(), group_out = s.group_out(), points = s.points();
  const std::int64_t first = at.c / group_in * group_out, c = at.c % group_in;
  float sum = 0;
  for_windows_over(
      w, at.y, at.x, [&](std::int64_t y, std::int64_t x, std::int64_t u, std::int64_t v) {
        const E* out = dy + ((at.sample * w.out_height() + y) * w.out_width() + x) * s.out + first;
        const E* tap = weight + (first * group_in + c) * points + u * w.kernel_w + v;
        for (std::int64_t o = 0; o < group_out; ++o)
          sum += to_float(out[o]) * to_float(tap[o * group_in * points]);
      });
  dx[i] = put(accumulate ? dx[i] : E{}, accumulate, sum);
}

/// A row is an output point of a sample; a column a weight, in the order (tap, c, o), so that
/// threads beside each other read channels beside each other.
template <class E>
struct WeightTerms {
  GroupedShape s;
  const E* x;
  const E* dy;
  __device__ void operator()(std::int64_t row, std::int64_t column, float* sums) const {
    const WindowShape& w = s.window;
    const std::int64_t o = column % s.out, c = column / s.out % s.group_in();
    const std::int64_t tap = column / s.out / s.group_in();
    const std::int64_t out_w = w.out_width(), out_h = w.out_height();
    const std::int64_t h = row / out_w % out_h * w.stride - w.padding_h + tap / w.kernel_w;
    const std::int64_t v = row % out_w * w.stride - w.padding_w + tap % w.kernel_w;
    const bool inside = h >= 0 && h < w.height && v >= 0 && v < w.width;
    const std::int64_t sample = row / out_w / out_h;
    const std::int64_t channel = o / s.group_out() * s.group_in() + c;
    const std::int64_t at = ((sample * w.height + h) * w.width + v) * w.channels + channel;
    sums[0] += to_float(dy[row * s.out + o]) * (inside ? to_float(x[at]) : 0.0f);
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
                dim3(kWindowThreads), 0, stream, s, x, weight, bias, y, n);
}
template <class E>
cudaError_t grouped_convolution_input_gradient(const GroupedShape& s, const E* dy, const E* weight,
                                               E* dx, bool accumulate, cudaStream_t stream) {
  const std::int64_t n = in_elements(s.window);
  return launch(grouped_input_gradient_kernel<E>, dim3(blocks_for(n, kWindowThreads)),
                dim3(kWindowThreads), 0, stream, s, dy, weight, dx, accumulate, n);
}
template <class E>
cudaError_t grouped_convolution_weight_gradient(const GroupedShape& s, const E* x, const E* dy,
                                                float* gradient, float* scratch,
                                                cudaStream_t stream) {
  return sum_columns<1>(WeightTerms<E>{s, x, dy}, AddWeight{s, gradient}, rows_of(s), weights_of(s),
                        scratch, stream);
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
