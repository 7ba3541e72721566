#include <algorithm>
#include <cmath>

#include "executor/train/layers/factories.h"
#include "executor/train/products/aligned_buffer.h"

// Batch normalisation [Ioffe & Szegedy 2015, arXiv:1502.03167, algorithm 1], with torch's epsilon
// and momentum; the running variance is the unbiased one. Statistics are those of this rank's
// batch.
namespace reckon::run {
namespace {

constexpr double kBatchNormEpsilon = 1e-5;
constexpr double kMomentum = 0.1;
constexpr std::int64_t kRowsSummed = 256;  // summed in T; sums of these in double

template <class T>
class BatchNormRunner : public LayerRunner<T> {
 public:
  BatchNormRunner(const BatchNorm& op, const Geometry& g)
      : channels_(op.channels),
        rows_each_(rows_of(g.output)),
        rows_(g.batch * rows_each_),
        pieces_((rows_ + kRowsSummed - 1) / kRowsSummed),
        mean_(size(1)),
        inverse_(size(1)),
        first_(size(1)),
        second_(size(1)),
        sums_(size(2 * pieces_)),
        running_(size(2)) {
    std::fill_n(running_.data() + channels_, channels_, T{1});
  }

  void set_batch(std::int64_t samples) override {
    rows_ = samples * rows_each_;
    pieces_ = (rows_ + kRowsSummed - 1) / kRowsSummed;
  }
  std::span<T> running_statistics() override { return running_.span(); }

  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    if (pass.training)
      measure(m.inputs[0], pass);
    else
      use_running();
    for_rows(*pass.workers, [&](std::int64_t r) {
      const T* x = m.inputs[0] + r * channels_;
      T* y = m.output + r * channels_;
      for (std::int64_t c = 0; c < channels_; ++c)
        y[c] = (x[c] - mean_.data()[c]) * (inverse_.data()[c] * m.weight[c]) + m.bias[c];
    });
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    const T *mean = mean_.data(), *inverse = inverse_.data();
    // Sums of dy, and of dy * normalised x.
    sum(*pass.workers, [&](std::int64_t r, T* a, T* b) {
      const T *x = m.inputs[0] + r * channels_, *dy = m.output_gradient + r * channels_;
      for (std::int64_t c = 0; c < channels_; ++c) {
        a[c] += dy[c];
        b[c] += dy[c] * ((x[c] - mean[c]) * inverse[c]);
      }
    });
    if (m.bias_gradient != nullptr) {
      for (std::int64_t c = 0; c < channels_; ++c) m.bias_gradient[c] += first_.data()[c];
      for (std::int64_t c = 0; c < channels_; ++c) m.weight_gradient[c] += second_.data()[c];
    }
    T* gradient = m.input_gradients[0];
    if (gradient == nullptr) return;
    const bool accumulate = m.accumulate[0] != 0;
    const T share = T{1} / static_cast<T>(rows_);
    for_rows(*pass.workers, [&](std::int64_t r) {
      const T *x = m.inputs[0] + r * channels_, *dy = m.output_gradient + r * channels_;
      T* dx = gradient + r * channels_;
      for (std::int64_t c = 0; c < channels_; ++c) {
        const T normal = (x[c] - mean[c]) * inverse[c];
        const T centred = dy[c] - share * (first_.data()[c] + normal * second_.data()[c]);
        put(dx[c], accumulate, m.weight[c] * inverse[c] * centred);
      }
    });
  }

 private:
  std::size_t size(std::int64_t vectors) const {
    return static_cast<std::size_t>(vectors * channels_);
  }
  template <class Body>
  void for_rows(Workers& workers, Body body) {
    workers.run_pieces(rows_, kRowsSummed, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) body(r);
    });
  }
  /// first_ and second_: what body(row, a, b) adds up, over all rows.
  template <class Body>
  void sum(Workers& workers, Body body) {
    workers.run(pieces_, [&](std::int64_t piece, int) {
      T* a = sums_.data() + 2 * piece * channels_;
      T* b = a + channels_;
      std::fill_n(a, 2 * channels_, T{});
      const std::int64_t end = std::min((piece + 1) * kRowsSummed, rows_);
      for (std::int64_t r = piece * kRowsSummed; r < end; ++r) body(r, a, b);
    });
    for (std::int64_t c = 0; c < channels_; ++c) {
      double a = 0, b = 0;
      for (std::int64_t piece = 0; piece < pieces_; ++piece) {
        a += double{sums_.data()[2 * piece * channels_ + c]};
        b += double{sums_.data()[(2 * piece + 1) * channels_ + c]};
      }
      first_.data()[c] = static_cast<T>(a);
      second_.data()[c] = static_cast<T>(b);
    }
  }

  void measure(const T* input, const PassState& pass) {
    const auto rows = static_cast<T>(rows_);
    sum(*pass.workers, [&](std::int64_t r, T* a, T*) {
      for (std::int64_t c = 0; c < channels_; ++c) a[c] += input[r * channels_ + c];
    });
    for (std::int64_t c = 0; c < channels_; ++c) mean_.data()[c] = first_.data()[c] / rows;
    sum(*pass.workers, [&](std::int64_t r, T* a, T*) {
      for (std::int64_t c = 0; c < channels_; ++c) {
        const T centred = input[r * channels_ + c] - mean_.data()[c];
        a[c] += centred * centred;
      }
    });
    const T unbiased = rows_ > 1 ? rows / (rows - 1) : T{1};
    for (std::int64_t c = 0; c < channels_; ++c) {
      const T variance = first_.data()[c] / rows;
      inverse_.data()[c] = T{1} / std::sqrt(variance + static_cast<T>(kBatchNormEpsilon));
      if (pass.recomputing) continue;
      T &mean = running_.data()[c], &spread = running_.data()[channels_ + c];
      mean += static_cast<T>(kMomentum) * (mean_.data()[c] - mean);
      spread += static_cast<T>(kMomentum) * (unbiased * variance - spread);
    }
  }

  void use_running() {
    for (std::int64_t c = 0; c < channels_; ++c) {
      mean_.data()[c] = running_.data()[c];
      inverse_.data()[c] =
          T{1} / std::sqrt(running_.data()[channels_ + c] + static_cast<T>(kBatchNormEpsilon));
    }
  }

  std::int64_t channels_, rows_each_, rows_, pieces_;
  AlignedBuffer<T> mean_, inverse_, first_, second_, sums_, running_;
};

}  // namespace

template <class T>
Made<T> batch_norm(const BatchNorm& op, const Geometry& g) {
  return std::make_unique<BatchNormRunner<T>>(op, g);
}
template Made<float> batch_norm<float>(const BatchNorm&, const Geometry&);
template Made<double> batch_norm<double>(const BatchNorm&, const Geometry&);

}  // namespace reckon::run
