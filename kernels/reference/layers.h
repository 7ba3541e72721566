#pragma once
#include <cstdint>
#include <span>

// Layers as their definitions say, in plain loops: what fast code, on CPUs and on GPUs, is held to.
// Shapes are those of sim/model/graph.h with a batch axis in front, row major. Defined for
// float and double.
namespace reckon::reference {

struct ConvolutionShape {
  std::int64_t batch = 1, in = 1, height = 1, width = 1;  // (B, C, H, W)
  std::int64_t out = 1, kernel_h = 1, kernel_w = 1, stride = 1, padding_h = 0, padding_w = 0;
  std::int64_t groups = 1;
  std::int64_t out_height() const { return (height + 2 * padding_h - kernel_h) / stride + 1; }
  std::int64_t out_width() const { return (width + 2 * padding_w - kernel_w) / stride + 1; }
};
/// y[b, o, i, j] = bias[o] + sum over c, u, v of w[o, c, u, v] x[b, g(o) + c, i s + u - p, j s + v
/// - p]: cross-correlation, as every framework's convolution. bias: (out), or empty.
template <class T>
void convolution(const ConvolutionShape& s, std::span<const T> x, std::span<const T> w,
                 std::span<const T> bias, std::span<T> y);

struct PoolShape {
  std::int64_t batch = 1, channels = 1, height = 1, width = 1;
  std::int64_t kernel = 2, stride = 2, padding = 0;
  bool largest = true;  // else the mean, padding counted as zeros
};
template <class T>
void pool(const PoolShape& s, std::span<const T> x, std::span<T> y);

/// y = x w^T + bias: x (rows, in), w (out, in), bias (out) or empty, y (rows, out).
template <class T>
void linear(std::int64_t rows, std::int64_t in, std::int64_t out, std::span<const T> x,
            std::span<const T> w, std::span<const T> bias, std::span<T> y);

/// By the batch's own statistics [Ioffe & Szegedy 2015, algorithm 1]: x (B, C, points).
template <class T>
void batch_norm(std::int64_t batch, std::int64_t channels, std::int64_t points,
                std::span<const T> x, std::span<const T> weight, std::span<const T> bias, T epsilon,
                std::span<T> y);
/// [Ba 2016, eq. 4]: x (rows, width).
template <class T>
void layer_norm(std::int64_t rows, std::int64_t width, std::span<const T> x,
                std::span<const T> weight, std::span<const T> bias, T epsilon, std::span<T> y);
/// [Zhang & Sennrich 2019, eq. 4]
template <class T>
void rms_norm(std::int64_t rows, std::int64_t width, std::span<const T> x,
              std::span<const T> weight, T epsilon, std::span<T> y);

struct AttentionShape {
  std::int64_t batch = 1, tokens = 1, seen = 1;  // of q; of k and v
  std::int64_t heads = 1, kv_heads = 1, head_width = 1;
  bool causal = true;
  std::int64_t window = 0;
  bool alibi = false;
};
/// softmax(q k^T / sqrt(head_width)) v [Vaswani 2017, eq. 1]: q and y (B, T, heads * w), k and v
/// (B, S, kv_heads * w); head h reads the key and value head h / (heads / kv_heads) [Ainslie 2023].
/// Distances lower scores by 2^(-8 (h + 1) / heads) a token [Press 2022], heads a power of two.
template <class T>
void attention(const AttentionShape& s, std::span<const T> q, std::span<const T> k,
               std::span<const T> v, std::span<T> y);

/// Features i and i + rotated / 2 of a head are turned by position * theta^(-2i / rotated)
/// [Su 2021, eq. 15]; x (B, T, heads * w).
template <class T>
void rotary(std::int64_t batch, std::int64_t tokens, std::int64_t heads, std::int64_t head_width,
            std::int64_t rotated, double theta, std::span<const T> x, std::span<T> y);

/// -log softmax(x)[class], one for each of the rows: x (rows, classes).
template <class T>
void softmax_cross_entropy(std::int64_t rows, std::int64_t classes, std::span<const T> x,
                           std::span<const std::int32_t> target, std::span<T> loss);

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) [Hendrycks & Gimpel 2016, section 2]
template <class T>
T gelu(T x);
/// x / (1 + e^-x)
template <class T>
T silu(T x);

}  // namespace reckon::reference
