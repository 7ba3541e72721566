#include <algorithm>
#include <cmath>

#include "executor/train/layers/factories.h"
#include "executor/train/products/aligned_buffer.h"

// Norms over the features of a row.
namespace reckon::run {
namespace {

constexpr double kEpsilon = 1e-5;   // torch.nn.LayerNorm, GPT-2, Llama 2
constexpr std::int64_t kRows = 16;  // of one task

/// Layer norm [Ba 2016, arXiv:1607.06450, eq. 4]: y = (x - mean) / sqrt(var + eps) * weight + bias.
/// Without Centred, root mean square norm [Zhang & Sennrich 2019, arXiv:1910.07467, eq. 4]: no mean
/// and no bias.
template <class T, bool Centred>
class RowNormRunner : public LayerRunner<T> {
 public:
  /// heads: each row of the tensor is so many rows of the norm.
  RowNormRunner(std::int64_t width, std::int64_t heads, const Geometry& g)
      : width_(width),
        rows_each_(rows_of(g.output) * heads),
        rows_(g.batch * rows_each_),
        mean_(static_cast<std::size_t>(Centred ? rows_ : 0)),
        inverse_(static_cast<std::size_t>(rows_)) {}

  void set_batch(std::int64_t samples) override { rows_ = samples * rows_each_; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run_pieces(rows_, kRows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const T* x = m.inputs[0] + r * width_;
        T* y = m.output + r * width_;
        T mean{}, square{};
        if constexpr (Centred) {
          for (std::int64_t j = 0; j < width_; ++j) mean += x[j];
          mean /= static_cast<T>(width_);
          mean_.data()[r] = mean;
        }
        for (std::int64_t j = 0; j < width_; ++j) square += (x[j] - mean) * (x[j] - mean);
        const T inverse =
            T{1} / std::sqrt(square / static_cast<T>(width_) + static_cast<T>(kEpsilon));
        inverse_.data()[r] = inverse;
        for (std::int64_t j = 0; j < width_; ++j) y[j] = (x[j] - mean) * inverse * m.weight[j];
        if (m.bias == nullptr) continue;
        for (std::int64_t j = 0; j < width_; ++j) y[j] += m.bias[j];
      }
    });
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    if (m.weight_gradient != nullptr) weight_backward(m, *pass.workers);
    if (m.bias_gradient != nullptr)
      add_column_sums(*pass.workers, m.output_gradient, rows_, width_, m.bias_gradient);
    if (m.input_gradients[0] != nullptr) input_backward(m, *pass.workers);
  }

 private:
  T mean_of(std::int64_t r) const {
    if constexpr (Centred)
      return mean_.data()[r];
    else
      return T{0};
  }

  void weight_backward(const LayerMemory<T>& m, Workers& workers) {
    workers.run_pieces(width_, 64, [&](std::int64_t begin, std::int64_t end) {
      T sums[64] = {};
      for (std::int64_t r = 0; r < rows_; ++r) {
        const T *x = m.inputs[0] + r * width_, *dy = m.output_gradient + r * width_;
        const T mean = mean_of(r), inverse = inverse_.data()[r];
        for (std::int64_t j = begin; j < end; ++j)
          sums[j - begin] += dy[j] * ((x[j] - mean) * inverse);
      }
      for (std::int64_t j = begin; j < end; ++j) m.weight_gradient[j] += sums[j - begin];
    });
  }

  void input_backward(const LayerMemory<T>& m, Workers& workers) {
    const bool accumulate = m.accumulate[0] != 0;
    const T share = T{1} / static_cast<T>(width_);
    workers.run_pieces(rows_, kRows, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const T *x = m.inputs[0] + r * width_, *dy = m.output_gradient + r * width_;
        T* dx = m.input_gradients[0] + r * width_;
        const T mean = mean_of(r), inverse = inverse_.data()[r];
        T sum{}, along{};  // of g = dy * weight, and of g * normalised x
        for (std::int64_t j = 0; j < width_; ++j) {
          const T g = dy[j] * m.weight[j];
          sum += g;
          along += g * ((x[j] - mean) * inverse);
        }
        if constexpr (!Centred) sum = 0;
        for (std::int64_t j = 0; j < width_; ++j) {
          const T normal = (x[j] - mean) * inverse;
          const T g = dy[j] * m.weight[j];
          put(dx[j], accumulate, inverse * (g - share * (sum + normal * along)));
        }
      }
    });
  }

  std::int64_t width_, rows_each_, rows_;
  AlignedBuffer<T> mean_, inverse_;
};

}  // namespace

template <class T>
Made<T> layer_norm(const LayerNorm& op, const Geometry& g) {
  return std::make_unique<RowNormRunner<T, true>>(op.width, 1, g);
}
template Made<float> layer_norm<float>(const LayerNorm&, const Geometry&);
template Made<double> layer_norm<double>(const LayerNorm&, const Geometry&);

template <class T>
Made<T> rms_norm(const RmsNorm& op, const Geometry& g) {
  return std::make_unique<RowNormRunner<T, false>>(op.width, op.heads, g);
}
template Made<float> rms_norm<float>(const RmsNorm&, const Geometry&);
template Made<double> rms_norm<double>(const RmsNorm&, const Geometry&);

}  // namespace reckon::run
