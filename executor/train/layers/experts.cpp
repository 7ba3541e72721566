#include <algorithm>

#include "executor/train/layers/expert_routing.h"
#include "executor/train/layers/factories.h"
#include "executor/train/products/matrix.h"
#include "executor/train/products/vector_math.h"

// A mixture of experts. The choice of experts has no gradient; the scores learn through the weights
// of ExpertCombine alone.
namespace reckon::run {
namespace {

/// The routing of every sample, from its scores (the second input).
template <class T>
class RoutedRunner : public LayerRunner<T> {
 public:
  void set_batch(std::int64_t samples) override { batch_ = samples; }

 protected:
  RoutedRunner(std::int64_t experts, std::int64_t top_k, const Geometry& g)
      : experts_(experts),
        top_k_(top_k),
        batch_(g.batch),
        tokens_(g.inputs[1][0]),
        rows_of_sample_(static_cast<std::size_t>(g.batch)) {}

  /// body(sample, its rows)
  template <class Body>
  void for_samples(const LayerMemory<T>& m, const PassState& pass, Body body) {
    pass.workers->run(batch_, [&](std::int64_t b, int) {
      std::vector<ExpertRow>& rows = rows_of_sample_[static_cast<std::size_t>(b)];
      route(m.inputs[1] + b * tokens_ * experts_, tokens_, experts_, top_k_, rows);
      body(b, rows);
    });
  }
  void clear(const LayerMemory<T>& m, std::size_t k, std::int64_t size) const {
    if (m.input_gradients[k] != nullptr && m.accumulate[k] == 0)
      std::fill_n(m.input_gradients[k], batch_ * size, T{});
  }
  std::int64_t experts_, top_k_, batch_, tokens_;

 private:
  std::vector<std::vector<ExpertRow>> rows_of_sample_;
};

template <class T>
class DispatchRunner : public RoutedRunner<T> {
 public:
  DispatchRunner(const ExpertDispatch& op, const Geometry& g)
      : RoutedRunner<T>(op.experts, op.top_k, g), width_(g.output[1]) {}
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    this->for_samples(m, pass, [&](std::int64_t b, const std::vector<ExpertRow>& rows) {
      T* y = m.output + b * this->tokens_ * this->top_k_ * width_;
      for (const ExpertRow& row : rows) {
        std::copy_n(m.inputs[0] + (b * this->tokens_ + row.token) * width_, width_, y);
        y += width_;
      }
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    this->clear(m, 0, this->tokens_ * width_);
    this->clear(m, 1, this->tokens_ * this->experts_);
    if (m.input_gradients[0] == nullptr) return;
    this->for_samples(m, pass, [&](std::int64_t b, const std::vector<ExpertRow>& rows) {
      const T* dy = m.output_gradient + b * this->tokens_ * this->top_k_ * width_;
      for (const ExpertRow& row : rows) {
        T* dx = m.input_gradients[0] + (b * this->tokens_ + row.token) * width_;
        for (std::int64_t j = 0; j < width_; ++j) dx[j] += dy[j];
        dy += width_;
      }
    });
  }

 private:
  std::int64_t width_;
};

template <class T>
class ExpertLinearRunner : public RoutedRunner<T> {
 public:
  ExpertLinearRunner(const ExpertLinear& op, const Geometry& g)
      : RoutedRunner<T>(op.experts, op.top_k, g), op_(op), adds_bias_(g.part.adds_bias) {}
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    this->for_samples(m, pass, [&](std::int64_t b, const std::vector<ExpertRow>& rows) {
      for_experts(b, rows, [&](std::int64_t expert, std::int64_t first, std::int64_t count) {
        T* y = m.output + first * op_.out;
        multiply_here<T>({count, op_.out, op_.in}, {m.inputs[0] + first * op_.in, op_.in},
                         {m.weight + expert * op_.out * op_.in, op_.in, true}, y, op_.out, false);
        if (m.bias == nullptr || !adds_bias_) return;
        for (std::int64_t i = 0; i < count * op_.out; ++i)
          y[i] += m.bias[expert * op_.out + i % op_.out];
      });
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    this->clear(m, 1, this->tokens_ * this->experts_);
    PassState alone = pass;  // samples share the weights' gradients: one after the other
    Workers one(1);
    alone.workers = &one;
    this->for_samples(m, alone, [&](std::int64_t b, const std::vector<ExpertRow>& rows) {
      for_experts(b, rows, [&](std::int64_t expert, std::int64_t first, std::int64_t count) {
        expert_backward(m, *pass.workers, expert, first, count);
      });
    });
  }

 private:
  /// body(expert, first of its rows in the batch, how many)
  template <class Body>
  void for_experts(std::int64_t b, const std::vector<ExpertRow>& rows, Body body) const {
    const auto total = static_cast<std::int64_t>(rows.size());
    for (std::int64_t begin = 0; begin < total;) {
      const std::int64_t expert = rows[static_cast<std::size_t>(begin)].expert;
      std::int64_t end = begin;
      while (end < total && rows[static_cast<std::size_t>(end)].expert == expert) ++end;
      body(expert, b * total + begin, end - begin);
      begin = end;
    }
  }
  void expert_backward(const LayerMemory<T>& m, Workers& workers, std::int64_t expert,
                       std::int64_t first, std::int64_t count) {
    const T* dy = m.output_gradient + first * op_.out;
    const std::int64_t weights = expert * op_.out * op_.in;
    if (m.weight_gradient != nullptr)
      reckon::multiply<T>(workers, {op_.out, op_.in, count}, {dy, op_.out, true},
                          {m.inputs[0] + first * op_.in, op_.in}, m.weight_gradient + weights,
                          op_.in, true);
    if (m.bias_gradient != nullptr)
      add_column_sums(workers, dy, count, op_.out, m.bias_gradient + expert * op_.out);
    if (m.input_gradients[0] != nullptr)
      reckon::multiply<T>(workers, {count, op_.in, op_.out}, {dy, op_.out},
                          {m.weight + weights, op_.in}, m.input_gradients[0] + first * op_.in,
                          op_.in, m.accumulate[0] != 0);
  }
  ExpertLinear op_;
  bool adds_bias_;
};

template <class T>
class CombineRunner : public RoutedRunner<T> {
 public:
  CombineRunner(const ExpertCombine& op, const Geometry& g)
      : RoutedRunner<T>(op.experts, op.top_k, g), normalize_(op.normalize), width_(g.output[1]) {}
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    this->for_samples(m, pass, [&](std::int64_t b, const std::vector<ExpertRow>& rows) {
      const ExpertWeights<T> weights = weights_of(m, b, rows);
      T* y = m.output + b * this->tokens_ * width_;
      std::fill_n(y, this->tokens_ * width_, T{});
      const T* x = row_of(m.inputs[0], b, 0);
      for (const ExpertRow& row : rows) {
        const T weight = weights.of(row);
        for (std::int64_t j = 0; j < width_; ++j) y[row.token * width_ + j] += weight * x[j];
        x += width_;
      }
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    this->clear(m, 1, this->tokens_ * this->experts_);
    this->for_samples(m, pass, [&](std::int64_t b, const std::vector<ExpertRow>& rows) {
      ExpertWeights<T> weights = weights_of(m, b, rows);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const T* dy = m.output_gradient + (b * this->tokens_ + rows[r].token) * width_;
        const T* x = row_of(m.inputs[0], b, static_cast<std::int64_t>(r));
        const T weight = weights.of(rows[r]);
        T dot{};
        for (std::int64_t j = 0; j < width_; ++j) dot += dy[j] * x[j];
        weights.set_slope(rows[r], dot);
        if (m.input_gradients[0] == nullptr) continue;
        T* dx = m.input_gradients[0] + (x - m.inputs[0]);
        for (std::int64_t j = 0; j < width_; ++j) put(dx[j], m.accumulate[0] != 0, weight * dy[j]);
      }
      if (m.input_gradients[1] != nullptr)
        weights.backward(m.input_gradients[1] + b * this->tokens_ * this->experts_);
    });
  }

 private:
  const T* row_of(const T* rows, std::int64_t b, std::int64_t r) const {
    return rows + (b * this->tokens_ * this->top_k_ + r) * width_;
  }
  ExpertWeights<T> weights_of(const LayerMemory<T>& m, std::int64_t b,
                              const std::vector<ExpertRow>& rows) const {
    return {m.inputs[1] + b * this->tokens_ * this->experts_, this->tokens_, this->experts_,
            normalize_, rows};
  }
  bool normalize_;
  std::int64_t width_;
};

}  // namespace

template <class T>
Made<T> expert_dispatch(const ExpertDispatch& op, const Geometry& g) {
  if (g.traffic != nullptr) return dispatch_to_ranks<T>(op, g);
  return std::make_unique<DispatchRunner<T>>(op, g);
}
template <class T>
Made<T> expert_linear(const ExpertLinear& op, const Geometry& g) {
  if (g.traffic != nullptr) return linear_of_own_experts<T>(op, g);
  return std::make_unique<ExpertLinearRunner<T>>(op, g);
}
template <class T>
Made<T> expert_combine(const ExpertCombine& op, const Geometry& g) {
  if (g.traffic != nullptr) return combine_from_ranks<T>(op, g);
  return std::make_unique<CombineRunner<T>>(op, g);
}
template Made<float> expert_dispatch<float>(const ExpertDispatch&, const Geometry&);
template Made<double> expert_dispatch<double>(const ExpertDispatch&, const Geometry&);
template Made<float> expert_linear<float>(const ExpertLinear&, const Geometry&);
template Made<double> expert_linear<double>(const ExpertLinear&, const Geometry&);
template Made<float> expert_combine<float>(const ExpertCombine&, const Geometry&);
template Made<double> expert_combine<double>(const ExpertCombine&, const Geometry&);

}  // namespace reckon::run
