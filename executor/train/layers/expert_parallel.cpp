#include <algorithm>

#include "executor/train/layers/expert_traffic.h"
#include "executor/train/layers/factories.h"
#include "executor/train/products/aligned_buffer.h"
#include "executor/train/products/matrix.h"

// A mixture of experts whose experts are shared out among ranks: the same rules as experts.cpp, and
// rows that travel. Tensors of rows have room for those of all ranks, what is behind the arrived
// ones is zero.
namespace reckon::run {
namespace {

template <class T>
class TravellingRunner : public LayerRunner<T> {
 public:
  void set_batch(std::int64_t samples) override { batch_ = samples; }

 protected:
  TravellingRunner(std::int64_t experts, std::int64_t top_k, const Geometry& g)
      : traffic_(*g.traffic),
        experts_(experts),
        top_k_(top_k),
        batch_(g.batch),
        tokens_(g.inputs[1][0]) {}

  void clear(const LayerMemory<T>& m, std::size_t k, std::int64_t size) const {
    if (m.input_gradients[k] != nullptr && m.accumulate[k] == 0)
      std::fill_n(m.input_gradients[k], batch_ * size, T{});
  }
  void clear_scores(const LayerMemory<T>& m) const { clear(m, 1, tokens_ * experts_); }
  /// Numbers of `width` for each row that may be this rank's own.
  std::int64_t own_size(std::int64_t width) const { return batch_ * tokens_ * top_k_ * width; }

  ExpertTraffic& traffic_;
  std::int64_t experts_, top_k_, batch_, tokens_;
};

template <class T>
class DispatchToRanks : public TravellingRunner<T> {
 public:
  DispatchToRanks(const ExpertDispatch& op, const Geometry& g)
      : TravellingRunner<T>(op.experts, op.top_k, g),
        size_(elements(g.output)),
        width_(g.output[1]) {}
  std::int64_t scratch_elements(int /*workers*/) const override { return this->own_size(width_); }

  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    std::vector<std::vector<ExpertRow>> samples(static_cast<std::size_t>(this->batch_));
    pass.workers->run(this->batch_, [&](std::int64_t b, int) {
      route(m.inputs[1] + b * this->tokens_ * this->experts_, this->tokens_, this->experts_,
            this->top_k_, samples[static_cast<std::size_t>(b)]);
    });
    ExpertTraffic& traffic = this->traffic_;
    Communicator& group = *pass.groups.expert;
    traffic.plan(group, std::move(samples), this->experts_);
    for_rows([&](std::int64_t token, std::int64_t row) {
      std::copy_n(m.inputs[0] + token * width_, width_, m.scratch + row * width_);
    });
    traffic.to_experts<T>(group, width_, m.scratch, m.output);
    const std::int64_t filled = traffic.arrived_rows() * width_;
    std::fill(m.output + filled, m.output + this->batch_ * size_, T{});
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    this->clear(m, 0, this->tokens_ * width_);
    this->clear_scores(m);
    if (m.input_gradients[0] == nullptr) return;
    this->traffic_.template from_experts<T>(*pass.groups.expert, width_, m.output_gradient,
                                            m.scratch);
    for_rows([&](std::int64_t token, std::int64_t row) {
      T* dx = m.input_gradients[0] + token * width_;
      for (std::int64_t j = 0; j < width_; ++j) dx[j] += m.scratch[row * width_ + j];
    });
  }

 private:
  /// body(token of the batch, own row)
  template <class Body>
  void for_rows(Body body) const {
    for (std::int64_t b = 0; b < this->batch_; ++b) {
      const auto& sample = this->traffic_.sample(b);
      for (std::size_t r = 0; r < sample.rows.size(); ++r)
        body(b * this->tokens_ + sample.rows[r].token, sample.at[r]);
    }
  }
  std::int64_t size_, width_;
};

template <class T>
class LinearOfOwnExperts : public TravellingRunner<T> {
 public:
  LinearOfOwnExperts(const ExpertLinear& op, const Geometry& g)
      : TravellingRunner<T>(op.experts, op.top_k, g),
        op_(op),
        rows_(g.output[0]),
        adds_bias_(g.part.adds_bias) {}

  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    for_experts([&](std::int64_t expert, std::int64_t first, std::int64_t count) {
      T* y = m.output + first * op_.out;
      reckon::multiply<T>(*pass.workers, {count, op_.out, op_.in},
                          {m.inputs[0] + first * op_.in, op_.in},
                          {m.weight + expert * op_.out * op_.in, op_.in, true}, y, op_.out, false);
      if (m.bias == nullptr || !adds_bias_) return;
      for (std::int64_t i = 0; i < count * op_.out; ++i)
        y[i] += m.bias[expert * op_.out + i % op_.out];
    });
    clear_rest(m.output, op_.out);
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    this->clear_scores(m);
    Workers& workers = *pass.workers;
    for_experts([&](std::int64_t expert, std::int64_t first, std::int64_t count) {
      const T* dy = m.output_gradient + first * op_.out;
      const T* x = m.inputs[0] + first * op_.in;
      const std::int64_t weights = expert * op_.out * op_.in;
      if (m.weight_gradient != nullptr)
        reckon::multiply<T>(workers, {op_.out, op_.in, count}, {dy, op_.out, true}, {x, op_.in},
                            m.weight_gradient + weights, op_.in, true);
      if (m.bias_gradient != nullptr)
        add_column_sums(workers, dy, count, op_.out, m.bias_gradient + expert * op_.out);
      if (m.input_gradients[0] != nullptr)
        reckon::multiply<T>(workers, {count, op_.in, op_.out}, {dy, op_.out},
                            {m.weight + weights, op_.in}, m.input_gradients[0] + first * op_.in,
                            op_.in, m.accumulate[0] != 0);
    });
    if (m.input_gradients[0] != nullptr && m.accumulate[0] == 0)
      clear_rest(m.input_gradients[0], op_.in);
  }

 private:
  /// body(one of this rank's experts, first of its arrived rows, how many)
  template <class Body>
  void for_experts(Body body) const {
    std::int64_t first = 0;
    for (std::int64_t e = 0; e < this->traffic_.own_experts(); ++e) {
      const std::int64_t count = this->traffic_.arrived_rows(e);
      if (count > 0) body(e, first, count);
      first += count;
    }
  }
  void clear_rest(T* rows, std::int64_t width) const {
    std::fill(rows + this->traffic_.arrived_rows() * width, rows + this->batch_ * rows_ * width,
              T{});
  }
  ExpertLinear op_;
  std::int64_t rows_;  // that there is room for, of a sample
  bool adds_bias_;
};

template <class T>
class CombineFromRanks : public TravellingRunner<T> {
 public:
  CombineFromRanks(const ExpertCombine& op, const Geometry& g)
      : TravellingRunner<T>(op.experts, op.top_k, g),
        normalize_(op.normalize),
        room_(g.inputs[0][0]),
        width_(g.output[1]),
        returned_(static_cast<std::size_t>(this->own_size(width_))) {}
  std::int64_t scratch_elements(int /*workers*/) const override {
    return (this->own_size(width_) + this->batch_ * room_ * width_);
  }

  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    this->traffic_.template from_experts<T>(*pass.groups.expert, width_, m.inputs[0],
                                            returned_.data());
    pass.workers->run(this->batch_, [&](std::int64_t b, int) {
      const auto& sample = this->traffic_.sample(b);
      const ExpertWeights<T> weights = weights_of(m, b);
      T* y = m.output + b * this->tokens_ * width_;
      std::fill_n(y, this->tokens_ * width_, T{});
      for (std::size_t r = 0; r < sample.rows.size(); ++r) {
        const T weight = weights.of(sample.rows[r]);
        const T* x = returned_.data() + sample.at[r] * width_;
        for (std::int64_t j = 0; j < width_; ++j)
          y[sample.rows[r].token * width_ + j] += weight * x[j];
      }
    });
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    this->clear_scores(m);
    pass.workers->run(this->batch_, [&](std::int64_t b, int) {
      const auto& sample = this->traffic_.sample(b);
      ExpertWeights<T> weights = weights_of(m, b);
      for (std::size_t r = 0; r < sample.rows.size(); ++r) {
        const ExpertRow& row = sample.rows[r];
        const T* dy = m.output_gradient + (b * this->tokens_ + row.token) * width_;
        const T *x = returned_.data() + sample.at[r] * width_, weight = weights.of(row);
        T* slope = m.scratch + sample.at[r] * width_;  // of the row
        T dot{};
        for (std::int64_t j = 0; j < width_; ++j) {
          dot += dy[j] * x[j];
          slope[j] = weight * dy[j];
        }
        weights.set_slope(row, dot);
      }
      if (m.input_gradients[1] != nullptr)
        weights.backward(m.input_gradients[1] + b * this->tokens_ * this->experts_);
    });
    if (m.input_gradients[0] != nullptr) return_slopes(m, pass);
  }

 private:
  /// The rows' gradients to where their experts are.
  void return_slopes(const LayerMemory<T>& m, const PassState& pass) {
    const bool adds = m.accumulate[0] != 0;
    T* dx = m.input_gradients[0];
    T* to = adds ? m.scratch + this->own_size(width_) : dx;
    this->traffic_.template to_experts<T>(*pass.groups.expert, width_, m.scratch, to);
    const std::int64_t filled = this->traffic_.arrived_rows() * width_;
    if (!adds) return std::fill(dx + filled, dx + this->batch_ * room_ * width_, T{});
    for (std::int64_t i = 0; i < filled; ++i) dx[i] += to[i];
  }
  ExpertWeights<T> weights_of(const LayerMemory<T>& m, std::int64_t b) const {
    return {m.inputs[1] + b * this->tokens_ * this->experts_, this->tokens_, this->experts_,
            normalize_, this->traffic_.sample(b).rows};
  }
  bool normalize_;
  std::int64_t room_, width_;  // rows that there is room for, of a sample
  AlignedBuffer<T> returned_;  // own rows, as the experts made them
};

}  // namespace

template <class T>
Made<T> dispatch_to_ranks(const ExpertDispatch& op, const Geometry& g) {
  return std::make_unique<DispatchToRanks<T>>(op, g);
}
template <class T>
Made<T> linear_of_own_experts(const ExpertLinear& op, const Geometry& g) {
  return std::make_unique<LinearOfOwnExperts<T>>(op, g);
}
template <class T>
Made<T> combine_from_ranks(const ExpertCombine& op, const Geometry& g) {
  return std::make_unique<CombineFromRanks<T>>(op, g);
}
template Made<float> dispatch_to_ranks<float>(const ExpertDispatch&, const Geometry&);
template Made<double> dispatch_to_ranks<double>(const ExpertDispatch&, const Geometry&);
template Made<float> linear_of_own_experts<float>(const ExpertLinear&, const Geometry&);
template Made<double> linear_of_own_experts<double>(const ExpertLinear&, const Geometry&);
template Made<float> combine_from_ranks<float>(const ExpertCombine&, const Geometry&);
template Made<double> combine_from_ranks<double>(const ExpertCombine&, const Geometry&);

}  // namespace reckon::run
