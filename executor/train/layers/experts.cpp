#include <algorithm>
#include <cmath>
#include <numeric>

#include "executor/train/layers/expert_routing.h"
#include "executor/train/layers/factories.h"
#include "executor/train/products/matrix.h"
#include "executor/train/products/vector_math.h"

// A mixture of experts. The choice of experts has no gradient; the scores learn through the weights
// of ExpertCombine alone.
namespace reckon {

namespace {

/// Whether score a goes before b: the larger first, of equals the lower number, and a NaN before
/// all, so that it is chosen and seen, as torch.topk does.
template <class T>
bool before(const T* score, std::int64_t a, std::int64_t b) {
  const bool a_is_nan = std::isnan(score[a]), b_is_nan = std::isnan(score[b]);
  if (a_is_nan || b_is_nan) return a_is_nan != b_is_nan ? a_is_nan : a < b;
  return score[a] != score[b] ? score[a] > score[b] : a < b;
}

}  // namespace

template <class T>
void route(const T* scores, std::int64_t tokens, std::int64_t experts, std::int64_t top_k,
           std::vector<ExpertRow>& rows) {
  rows.clear();
  std::vector<std::int64_t> order(static_cast<std::size_t>(experts));
  for (std::int64_t t = 0; t < tokens; ++t) {
    const T* score = scores + t * experts;
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + top_k, order.end(),
                      [&](std::int64_t a, std::int64_t b) { return before(score, a, b); });
    for (std::int64_t k = 0; k < top_k; ++k)
      rows.push_back({t, order[static_cast<std::size_t>(k)]});
  }
  std::ranges::stable_sort(rows, {}, &ExpertRow::expert);
}
template void route<float>(const float*, std::int64_t, std::int64_t, std::int64_t,
                           std::vector<ExpertRow>&);
template void route<double>(const double*, std::int64_t, std::int64_t, std::int64_t,
                            std::vector<ExpertRow>&);

namespace run {
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
      : RoutedRunner<T>(op.experts, op.top_k, g), op_(op) {}
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    this->for_samples(m, pass, [&](std::int64_t b, const std::vector<ExpertRow>& rows) {
      for_experts(b, rows, [&](std::int64_t expert, std::int64_t first, std::int64_t count) {
        T* y = m.output + first * op_.out;
        multiply_here<T>({count, op_.out, op_.in}, {m.inputs[0] + first * op_.in, op_.in},
                         {m.weight + expert * op_.out * op_.in, op_.in, true}, y, op_.out, false);
        if (m.bias == nullptr) return;
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
};

template <class T>
class CombineRunner : public RoutedRunner<T> {
 public:
  CombineRunner(const ExpertCombine& op, const Geometry& g)
      : RoutedRunner<T>(op.experts, op.top_k, g), normalize_(op.normalize), width_(g.output[1]) {}
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    this->for_samples(m, pass, [&](std::int64_t b, const std::vector<ExpertRow>& rows) {
      const std::vector<T> weights = weights_of(m, b, rows);
      T* y = m.output + b * this->tokens_ * width_;
      std::fill_n(y, this->tokens_ * width_, T{});
      const T* x = row_of(m.inputs[0], b, 0);
      for (const ExpertRow& row : rows) {
        const T weight = weights[at(row)];
        for (std::int64_t j = 0; j < width_; ++j) y[row.token * width_ + j] += weight * x[j];
        x += width_;
      }
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    this->clear(m, 1, this->tokens_ * this->experts_);
    this->for_samples(m, pass, [&](std::int64_t b, const std::vector<ExpertRow>& rows) {
      const std::vector<T> weights = weights_of(m, b, rows);
      std::vector<T> slopes(weights.size());  // gradient of each weight
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const auto row = static_cast<std::int64_t>(r);
        const T* dy = m.output_gradient + (b * this->tokens_ + rows[r].token) * width_;
        const T* x = row_of(m.inputs[0], b, row);
        const T weight = weights[at(rows[r])];
        T dot{};
        for (std::int64_t j = 0; j < width_; ++j) dot += dy[j] * x[j];
        slopes[at(rows[r])] = dot;
        if (m.input_gradients[0] == nullptr) continue;
        T* dx = m.input_gradients[0] + (x - m.inputs[0]);
        for (std::int64_t j = 0; j < width_; ++j) put(dx[j], m.accumulate[0] != 0, weight * dy[j]);
      }
      if (m.input_gradients[1] != nullptr)
        score_backward(weights, slopes, all_weights(m, b, rows),
                       m.input_gradients[1] + b * this->tokens_ * this->experts_);
    });
  }

 private:
  const T* row_of(const T* rows, std::int64_t b, std::int64_t r) const {
    return rows + (b * this->tokens_ * this->top_k_ + r) * width_;
  }
  std::size_t at(const ExpertRow& row) const {
    return static_cast<std::size_t>(row.token * this->experts_ + row.expert);
  }
  /// Softmax of the scores: over the chosen experts (normalize), or over all.
  std::vector<T> all_weights(const LayerMemory<T>& m, std::int64_t b,
                             const std::vector<ExpertRow>& rows) const {
    const std::int64_t experts = this->experts_;
    std::vector<T> weights(static_cast<std::size_t>(this->tokens_ * experts));
    std::vector<char> counts(weights.size(), normalize_ ? 0 : 1);
    for (const ExpertRow& row : rows) counts[at(row)] = 1;
    for (std::int64_t t = 0; t < this->tokens_; ++t) {
      const T* score = m.inputs[1] + (b * this->tokens_ + t) * experts;
      const T largest = *std::max_element(score, score + experts);  // always chosen
      T sum{};
      for (std::int64_t e = 0; e < experts; ++e) {
        const auto i = static_cast<std::size_t>(t * experts + e);
        weights[i] = counts[i] != 0 ? exp_of(score[e] - largest) : T{0};
        sum += weights[i];
      }
      for (std::int64_t e = 0; e < experts; ++e)
        weights[static_cast<std::size_t>(t * experts + e)] /= sum;
    }
    return weights;
  }
  /// The same, zero where an expert was not chosen.
  std::vector<T> weights_of(const LayerMemory<T>& m, std::int64_t b,
                            const std::vector<ExpertRow>& rows) const {
    const std::vector<T> all = all_weights(m, b, rows);
    std::vector<T> chosen(all.size());
    for (const ExpertRow& row : rows) chosen[at(row)] = all[at(row)];
    return chosen;
  }
  /// Of a softmax p with the gradient g of p (zero for experts not chosen): p (g - p . g).
  void score_backward(const std::vector<T>& chosen, const std::vector<T>& slopes,
                      const std::vector<T>& all, T* gradient) const {
    for (std::int64_t t = 0; t < this->tokens_; ++t) {
      const std::int64_t first = t * this->experts_, last = first + this->experts_;
      T along{};
      for (std::int64_t i = first; i < last; ++i)
        along += chosen[static_cast<std::size_t>(i)] * slopes[static_cast<std::size_t>(i)];
      for (std::int64_t i = first; i < last; ++i)
        gradient[i] +=
            all[static_cast<std::size_t>(i)] * (slopes[static_cast<std::size_t>(i)] - along);
    }
  }
  bool normalize_;
  std::int64_t width_;
};

}  // namespace

template <class T>
Made<T> expert_dispatch(const ExpertDispatch& op, const Geometry& g) {
  return std::make_unique<DispatchRunner<T>>(op, g);
}
template <class T>
Made<T> expert_linear(const ExpertLinear& op, const Geometry& g) {
  return std::make_unique<ExpertLinearRunner<T>>(op, g);
}
template <class T>
Made<T> expert_combine(const ExpertCombine& op, const Geometry& g) {
  return std::make_unique<CombineRunner<T>>(op, g);
}
template Made<float> expert_dispatch<float>(const ExpertDispatch&, const Geometry&);
template Made<double> expert_dispatch<double>(const ExpertDispatch&, const Geometry&);
template Made<float> expert_linear<float>(const ExpertLinear&, const Geometry&);
template Made<double> expert_linear<double>(const ExpertLinear&, const Geometry&);
template Made<float> expert_combine<float>(const ExpertCombine&, const Geometry&);
template Made<double> expert_combine<double>(const ExpertCombine&, const Geometry&);

}  // namespace run
}  // namespace reckon
