#include "kernels/reference/layers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

// Sums are in double for both types: a reference has the last digit right.
namespace reckon::reference {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

template <class T>
void convolution(const ConvolutionShape& s, std::span<const T> x, std::span<const T> w,
                 std::span<const T> bias, std::span<T> y) {
  const std::int64_t in = s.in / s.groups, out = s.out / s.groups;
  std::size_t next = 0;
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t o = 0; o < s.out; ++o)
      for (std::int64_t i = 0; i < s.out_height(); ++i)
        for (std::int64_t j = 0; j < s.out_width(); ++j) {
          double sum = bias.empty() ? 0 : double{bias[at(o)]};
          for (std::int64_t c = 0; c < in; ++c)
            for (std::int64_t u = 0; u < s.kernel_h; ++u)
              for (std::int64_t v = 0; v < s.kernel_w; ++v) {
                const std::int64_t h = i * s.stride + u - s.padding_h;
                const std::int64_t l = j * s.stride + v - s.padding_w;
                if (h < 0 || h >= s.height || l < 0 || l >= s.width) continue;
                const std::int64_t channel = o / out * in + c;
                sum += double{w[at(((o * in + c) * s.kernel_h + u) * s.kernel_w + v)]} *
                       double{x[at(((b * s.in + channel) * s.height + h) * s.width + l)]};
              }
          y[next++] = static_cast<T>(sum);
        }
}

template <class T>
void pool(const PoolShape& s, std::span<const T> x, std::span<T> y) {
  const std::int64_t out_h = (s.height + 2 * s.padding - s.kernel) / s.stride + 1;
  const std::int64_t out_w = (s.width + 2 * s.padding - s.kernel) / s.stride + 1;
  std::size_t next = 0;
  for (std::int64_t plane = 0; plane < s.batch * s.channels; ++plane)
    for (std::int64_t i = 0; i < out_h; ++i)
      for (std::int64_t j = 0; j < out_w; ++j) {
        double sum = 0, largest = -std::numeric_limits<double>::infinity();
        for (std::int64_t u = 0; u < s.kernel; ++u)
          for (std::int64_t v = 0; v < s.kernel; ++v) {
            const std::int64_t h = i * s.stride + u - s.padding, l = j * s.stride + v - s.padding;
            if (h < 0 || h >= s.height || l < 0 || l >= s.width) continue;
            const double value{x[at((plane * s.height + h) * s.width + l)]};
            sum += value;
            if (value > largest || std::isnan(value)) largest = value;
          }
        const double mean = sum / static_cast<double>(s.kernel * s.kernel);
        y[next++] = static_cast<T>(s.largest ? largest : mean);
      }
}

template <class T>
void linear(std::int64_t rows, std::int64_t in, std::int64_t out, std::span<const T> x,
            std::span<const T> w, std::span<const T> bias, std::span<T> y) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t o = 0; o < out; ++o) {
      double sum = bias.empty() ? 0 : double{bias[at(o)]};
      for (std::int64_t i = 0; i < in; ++i)
        sum += double{x[at(r * in + i)]} * double{w[at(o * in + i)]};
      y[at(r * out + o)] = static_cast<T>(sum);
    }
}

template <class T>
void batch_norm(std::int64_t batch, std::int64_t channels, std::int64_t points,
                std::span<const T> x, std::span<const T> weight, std::span<const T> bias, T epsilon,
                std::span<T> y) {
  const auto count = static_cast<double>(batch * points);
  for (std::int64_t c = 0; c < channels; ++c) {
    const auto for_all = [&](auto&& body) {
      for (std::int64_t b = 0; b < batch; ++b)
        for (std::int64_t p = 0; p < points; ++p) body(at((b * channels + c) * points + p));
    };
    double mean = 0, variance = 0;
    for_all([&](std::size_t i) { mean += double{x[i]} / count; });
    for_all(
        [&](std::size_t i) { variance += (double{x[i]} - mean) * (double{x[i]} - mean) / count; });
    const double inverse = 1 / std::sqrt(variance + double{epsilon});
    for_all([&](std::size_t i) {
      y[i] = static_cast<T>((double{x[i]} - mean) * inverse * double{weight[at(c)]} +
                            double{bias[at(c)]});
    });
  }
}

template <class T>
void layer_norm(std::int64_t rows, std::int64_t width, std::span<const T> x,
                std::span<const T> weight, std::span<const T> bias, T epsilon, std::span<T> y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto row = x.subspan(at(r * width), at(width));
    double mean = 0, variance = 0;
    for (const T value : row) mean += double{value} / static_cast<double>(width);
    for (const T value : row)
      variance += (double{value} - mean) * (double{value} - mean) / static_cast<double>(width);
    const double inverse = 1 / std::sqrt(variance + double{epsilon});
    for (std::size_t i = 0; i < row.size(); ++i)
      y[at(r * width) + i] = static_cast<T>((double{row[i]} - mean) * inverse * double{weight[i]} +
                                            (bias.empty() ? 0 : double{bias[i]}));
  }
}

template <class T>
void rms_norm(std::int64_t rows, std::int64_t width, std::span<const T> x,
              std::span<const T> weight, T epsilon, std::span<T> y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto row = x.subspan(at(r * width), at(width));
    double square = 0;
    for (const T value : row) square += double{value} * double{value} / static_cast<double>(width);
    const double inverse = 1 / std::sqrt(square + double{epsilon});
    for (std::size_t i = 0; i < row.size(); ++i)
      y[at(r * width) + i] = static_cast<T>(double{row[i]} * inverse * double{weight[i]});
  }
}

template <class T>
void attention(const AttentionShape& s, std::span<const T> q, std::span<const T> k,
               std::span<const T> v, std::span<T> y) {
  const std::int64_t w = s.head_width;
  std::vector<double> score(at(s.seen));
  for (std::int64_t b = 0; b < s.batch; ++b)
    for (std::int64_t h = 0; h < s.heads; ++h)
      for (std::int64_t t = 0; t < s.tokens; ++t) {
        const std::int64_t shared = h / (s.heads / s.kv_heads);
        const std::int64_t q_at = ((b * s.tokens + t) * s.heads + h) * w;
        const auto kv_at = [&](std::int64_t u) {
          return ((b * s.seen + u) * s.kv_heads + shared) * w;
        };
        double sum = 0;
        for (std::int64_t u = 0; u < s.seen; ++u) {
          double dot = 0;
          for (std::int64_t i = 0; i < w; ++i)
            dot += double{q[at(q_at + i)]} * double{k[at(kv_at(u) + i)]};
          dot /= std::sqrt(static_cast<double>(w));
          const double slope =
              std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(s.heads));
          if (s.alibi) dot -= slope * static_cast<double>(std::abs(t - u));
          const bool hidden = (s.causal && u > t) || (s.window > 0 && u <= t - s.window);
          score[at(u)] = hidden ? 0 : std::exp(dot);
          sum += score[at(u)];
        }
        for (std::int64_t i = 0; i < w; ++i) {
          double value = 0;
          for (std::int64_t u = 0; u < s.seen; ++u)
            value += score[at(u)] / sum * double{v[at(kv_at(u) + i)]};
          y[at(q_at + i)] = static_cast<T>(value);
        }
      }
}

template <class T>
void rotary(std::int64_t batch, std::int64_t tokens, std::int64_t heads, std::int64_t head_width,
            std::int64_t rotated, double theta, std::span<const T> x, std::span<T> y) {
  std::ranges::copy(x, y.begin());
  for (std::int64_t row = 0; row < batch * tokens * heads; ++row) {
    const auto position = static_cast<double>(row / heads % tokens);
    for (std::int64_t i = 0; i < rotated / 2; ++i) {
      const double angle =
          position * std::pow(theta, -2.0 * static_cast<double>(i) / static_cast<double>(rotated));
      const std::size_t low = at(row * head_width + i), high = low + at(rotated / 2);
      y[low] = static_cast<T>(double{x[low]} * std::cos(angle) - double{x[high]} * std::sin(angle));
      y[high] =
          static_cast<T>(double{x[high]} * std::cos(angle) + double{x[low]} * std::sin(angle));
    }
  }
}

template <class T>
void softmax_cross_entropy(std::int64_t rows, std::int64_t classes, std::span<const T> x,
                           std::span<const std::int32_t> target, std::span<T> loss) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto row = x.subspan(at(r * classes), at(classes));
    const double largest{*std::ranges::max_element(row)};
    double sum = 0;
    for (const T value : row) sum += std::exp(double{value} - largest);
    loss[at(r)] = static_cast<T>(largest + std::log(sum) -
                                 double{row[static_cast<std::size_t>(target[at(r)])]});
  }
}

template <class T>
T gelu(T x) {
  const double v{x};
  const double inner = std::sqrt(2 / std::numbers::pi) * (v + 0.044715 * v * v * v);
  return static_cast<T>(0.5 * v * (1 + std::tanh(inner)));
}
template <class T>
T silu(T x) {
  return static_cast<T>(double{x} / (1 + std::exp(-double{x})));
}

#define RECKON_REFERENCE_FOR(T)                                                                    \
  template void convolution<T>(const ConvolutionShape&, std::span<const T>, std::span<const T>,    \
                               std::span<const T>, std::span<T>);                                  \
  template void pool<T>(const PoolShape&, std::span<const T>, std::span<T>);                       \
  template void linear<T>(std::int64_t, std::int64_t, std::int64_t, std::span<const T>,            \
                          std::span<const T>, std::span<const T>, std::span<T>);                   \
  template void batch_norm<T>(std::int64_t, std::int64_t, std::int64_t, std::span<const T>,        \
                              std::span<const T>, std::span<const T>, T, std::span<T>);            \
  template void layer_norm<T>(std::int64_t, std::int64_t, std::span<const T>, std::span<const T>,  \
                              std::span<const T>, T, std::span<T>);                                \
  template void rms_norm<T>(std::int64_t, std::int64_t, std::span<const T>, std::span<const T>, T, \
                            std::span<T>);                                                         \
  template void attention<T>(const AttentionShape&, std::span<const T>, std::span<const T>,        \
                             std::span<const T>, std::span<T>);                                    \
  template void rotary<T>(std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,    \
                          double, std::span<const T>, std::span<T>);                               \
  template void softmax_cross_entropy<T>(std::int64_t, std::int64_t, std::span<const T>,           \
                                         std::span<const std::int32_t>, std::span<T>);             \
  template T gelu<T>(T);                                                                           \
  template T silu<T>(T)
RECKON_REFERENCE_FOR(float);
RECKON_REFERENCE_FOR(double);

}  // namespace reckon::reference
