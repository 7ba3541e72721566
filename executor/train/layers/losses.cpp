#include <algorithm>
#include <cmath>

#include "executor/train/layers/factories.h"
#include "executor/train/products/aligned_buffer.h"
#include "executor/train/products/vector_math.h"
#include "sim/base/check.h"

// Losses: one number a sample, the mean over its rows (tokens) or its elements. The loss of a batch
// is the mean over its samples.
namespace reckon::run {
namespace {

void check_target(const PassState& pass, std::int64_t count) {
  RECKON_CHECK(static_cast<std::int64_t>(pass.target.size()) == count);
}

/// -log softmax(logits)[class], in natural logarithms.
template <class T>
class SoftmaxCrossEntropyRunner : public LayerRunner<T> {
 public:
  SoftmaxCrossEntropyRunner(const SoftmaxCrossEntropy& op, const Geometry& g)
      : classes_(op.classes),
        batch_(g.batch),
        rows_(rows_of(g.inputs[0])),
        log_sums_(static_cast<std::size_t>(batch_ * rows_)),
        losses_(static_cast<std::size_t>(batch_ * rows_)) {}

  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    check_target(pass, batch_ * rows_);
    pass.workers->run_pieces(
        batch_ * rows_, kRowsOfTask, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t r = begin; r < end; ++r) {
            const T* x = m.inputs[0] + r * classes_;
            T largest = x[0];
            for (std::int64_t j = 1; j < classes_; ++j) largest = std::max(largest, x[j]);
            T lanes[kLanes] = {};  // several sums, so that the compiler may use vectors
            std::int64_t j = 0;
            for (; j + kLanes <= classes_; j += kLanes)
              for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += exp_of(x[j + l] - largest);
            for (; j < classes_; ++j) lanes[0] += exp_of(x[j] - largest);
            T sum{};
            for (const T lane : lanes) sum += lane;
            log_sums_.data()[r] = largest + std::log(sum);
            losses_.data()[r] = log_sums_.data()[r] - x[class_of(pass, r)];
          }
        });
    for (std::int64_t b = 0; b < batch_; ++b) {
      T sum{};
      for (std::int64_t r = b * rows_; r < (b + 1) * rows_; ++r) sum += losses_.data()[r];
      m.output[b] = sum / static_cast<T>(rows_);
    }
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    T* gradient = m.input_gradients[0];
    if (gradient == nullptr) return;
    const bool accumulate = m.accumulate[0] != 0;
    pass.workers->run_pieces(
        batch_ * rows_, kRowsOfTask, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t r = begin; r < end; ++r) {
            const T *x = m.inputs[0] + r * classes_, log_sum = log_sums_.data()[r];
            T* dx = gradient + r * classes_;
            const T dy = m.output_gradient[r / rows_] / static_cast<T>(rows_);
            const std::int64_t target = class_of(pass, r);
            T of_target = dx[target];
            put(of_target, accumulate, dy * (exp_of(x[target] - log_sum) - T{1}));
            for (std::int64_t j = 0; j < classes_; ++j)
              put(dx[j], accumulate, dy * exp_of(x[j] - log_sum));
            dx[target] = of_target;  // not by -= dy: infinity less infinity would be NaN
          }
        });
  }

 private:
  static constexpr std::int64_t kRowsOfTask = 8, kLanes = 16;
  std::int64_t class_of(const PassState& pass, std::int64_t r) const {
    const auto c = static_cast<std::int64_t>(pass.target[static_cast<std::size_t>(r)]);
    RECKON_CHECK(c >= 0);  // the data has been checked against the model
    RECKON_CHECK(c < classes_);
    return c;
  }
  std::int64_t classes_, batch_, rows_;
  AlignedBuffer<T> log_sums_, losses_;
};

/// Loss(x, target) and its slope, element by element.
template <class T, class F>
class ElementLossRunner : public LayerRunner<T> {
 public:
  explicit ElementLossRunner(const Geometry& g) : batch_(g.batch), size_(elements(g.inputs[0])) {}
  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    check_target(pass, batch_ * size_);
    pass.workers->run(batch_, [&](std::int64_t b, int) {
      T sum{};
      for (std::int64_t i = b * size_; i < (b + 1) * size_; ++i)
        sum += F::loss(m.inputs[0][i], target(pass, i));
      m.output[b] = sum / static_cast<T>(size_);
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    T* dx = m.input_gradients[0];
    if (dx == nullptr) return;
    pass.workers->run(batch_, [&](std::int64_t b, int) {
      const T dy = m.output_gradient[b] / static_cast<T>(size_);
      for (std::int64_t i = b * size_; i < (b + 1) * size_; ++i)
        put(dx[i], m.accumulate[0] != 0, dy * F::slope(m.inputs[0][i], target(pass, i)));
    });
  }

 private:
  static T target(const PassState& pass, std::int64_t i) {
    return static_cast<T>(pass.target[static_cast<std::size_t>(i)]);
  }
  std::int64_t batch_, size_;
};

/// log(1 + e^x) - target * x, in the form that does not overflow.
template <class T>
struct LogisticLoss {
  static T loss(T x, T t) { return std::max(x, T{0}) - x * t + std::log1p(exp_of(-std::abs(x))); }
  static T slope(T x, T t) { return sigmoid_of(x) - t; }
};
template <class T>
struct Square {
  static T loss(T x, T t) { return (x - t) * (x - t); }
  static T slope(T x, T t) { return 2 * (x - t); }
};

}  // namespace

template <class T>
Made<T> softmax_cross_entropy(const SoftmaxCrossEntropy& op, const Geometry& g) {
  return std::make_unique<SoftmaxCrossEntropyRunner<T>>(op, g);
}
template <class T>
Made<T> sigmoid_cross_entropy(const Geometry& g) {
  return std::make_unique<ElementLossRunner<T, LogisticLoss<T>>>(g);
}
template <class T>
Made<T> mean_squared_error(const Geometry& g) {
  return std::make_unique<ElementLossRunner<T, Square<T>>>(g);
}
template Made<float> softmax_cross_entropy<float>(const SoftmaxCrossEntropy&, const Geometry&);
template Made<double> softmax_cross_entropy<double>(const SoftmaxCrossEntropy&, const Geometry&);
template Made<float> sigmoid_cross_entropy<float>(const Geometry&);
template Made<double> sigmoid_cross_entropy<double>(const Geometry&);
template Made<float> mean_squared_error<float>(const Geometry&);
template Made<double> mean_squared_error<double>(const Geometry&);

}  // namespace reckon::run
