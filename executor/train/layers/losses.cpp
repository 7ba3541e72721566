#include <algorithm>
#include <cmath>

#include "executor/train/layers/factories.h"
#include "executor/train/products/vector_math.h"
#include "sim/base/check.h"

// Losses of the elements by themselves: one number a sample, the mean over its elements. The loss
// of a batch is the mean over its samples.
namespace reckon::run {
namespace {

void check_target(const PassState& pass, std::int64_t count) {
  RECKON_CHECK(static_cast<std::int64_t>(pass.target.size()) == count);
}

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
Made<T> sigmoid_cross_entropy(const Geometry& g) {
  return std::make_unique<ElementLossRunner<T, LogisticLoss<T>>>(g);
}
template <class T>
Made<T> mean_squared_error(const Geometry& g) {
  return std::make_unique<ElementLossRunner<T, Square<T>>>(g);
}
template Made<float> sigmoid_cross_entropy<float>(const Geometry&);
template Made<double> sigmoid_cross_entropy<double>(const Geometry&);
template Made<float> mean_squared_error<float>(const Geometry&);
template Made<double> mean_squared_error<double>(const Geometry&);

}  // namespace reckon::run
