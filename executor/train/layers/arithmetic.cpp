#include <algorithm>

#include "executor/train/layers/factories.h"

// Sums, products and multiples of tensors.
namespace reckon::run {
namespace {

template <class T>
class AddRunner : public LayerRunner<T> {
 public:
  explicit AddRunner(const Geometry& g) : size_(elements(g.output)), count_(g.batch * size_) {}
  void set_batch(std::int64_t samples) override { count_ = samples * size_; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run_pieces(count_, 4 * kPiece, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) m.output[i] = m.inputs[0][i] + m.inputs[1][i];
      for (std::size_t k = 2; k < m.inputs.size(); ++k)
        for (std::int64_t i = begin; i < end; ++i) m.output[i] += m.inputs[k][i];
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run_pieces(count_, 4 * kPiece, [&](std::int64_t begin, std::int64_t end) {
      for (std::size_t k = 0; k < m.inputs.size(); ++k) {
        T* dx = m.input_gradients[k];
        if (dx == nullptr) continue;
        const bool accumulate = m.accumulate[k] != 0;
        for (std::int64_t i = begin; i < end; ++i) put(dx[i], accumulate, m.output_gradient[i]);
      }
    });
  }

 private:
  std::int64_t size_, count_;  // of a sample, of the batch
};

/// The second input: the same shape, one number a feature (of the sample), or one a row.
template <class T>
class MultiplyRunner : public LayerRunner<T> {
 public:
  explicit MultiplyRunner(const Geometry& g)
      : batch_(g.batch),
        rows_(rows_of(g.output)),
        features_(features_of(g.output)),
        by_feature_(g.inputs[1] != g.output && g.output.size() == 3),
        by_row_(g.inputs[1] != g.output && !by_feature_) {}

  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    for_rows(*pass.workers, [&](std::int64_t sample, std::int64_t r) {
      const std::int64_t at = (sample * rows_ + r) * features_;
      const T* gate = m.inputs[1] + gate_at(sample, r);
      for (std::int64_t j = 0; j < features_; ++j)
        m.output[at + j] = m.inputs[0][at + j] * gate[by_row_ ? 0 : j];
    });
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    for (std::size_t k = 0; k < 2; ++k)
      if (T* to = m.input_gradients[k]) backward_of(k, to, m.accumulate[k] != 0, m, pass);
  }

 private:
  template <class Body>
  void for_rows(Workers& workers, Body body) {
    workers.run(batch_, [&](std::int64_t sample, int) {
      for (std::int64_t r = 0; r < rows_; ++r) body(sample, r);
    });
  }
  std::int64_t gate_at(std::int64_t sample, std::int64_t r) const {
    if (by_feature_) return sample * features_;
    return by_row_ ? sample * rows_ + r : (sample * rows_ + r) * features_;
  }
  void backward_of(std::size_t k, T* to, bool accumulate, const LayerMemory<T>& m,
                   const PassState& pass) {
    const bool sums = k == 1 && (by_feature_ || by_row_);
    if (sums && !accumulate) {
      const std::int64_t gates = by_feature_ ? features_ : rows_;
      std::fill_n(to, batch_ * gates, T{});
    }
    for_rows(*pass.workers, [&](std::int64_t sample, std::int64_t r) {
      const std::int64_t at = (sample * rows_ + r) * features_;
      const T* dy = m.output_gradient + at;
      const std::int64_t gate_first = gate_at(sample, r);
      if (k == 0) {
        const T* gate = m.inputs[1] + gate_first;
        for (std::int64_t j = 0; j < features_; ++j)
          put(to[at + j], accumulate, dy[j] * gate[by_row_ ? 0 : j]);
      } else if (sums) {
        T* gate = to + gate_first;
        for (std::int64_t j = 0; j < features_; ++j)
          gate[by_row_ ? 0 : j] += dy[j] * m.inputs[0][at + j];
      } else {
        for (std::int64_t j = 0; j < features_; ++j)
          put(to[at + j], accumulate, dy[j] * m.inputs[0][at + j]);
      }
    });
  }

  std::int64_t batch_, rows_, features_;
  bool by_feature_, by_row_;
};

template <class T>
class ScaleByRunner : public LayerRunner<T> {
 public:
  ScaleByRunner(const ScaleBy& op, const Geometry& g)
      : factor_(static_cast<T>(op.factor)), size_(elements(g.output)), count_(g.batch * size_) {}
  void set_batch(std::int64_t samples) override { count_ = samples * size_; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run_pieces(count_, 4 * kPiece, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) m.output[i] = factor_ * m.inputs[0][i];
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    T* dx = m.input_gradients[0];
    if (dx == nullptr) return;
    const bool accumulate = m.accumulate[0] != 0;
    pass.workers->run_pieces(count_, 4 * kPiece, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        put(dx[i], accumulate, factor_ * m.output_gradient[i]);
    });
  }

 private:
  T factor_;
  std::int64_t size_, count_;  // of a sample, of the batch
};

/// Dot products of all pairs (i, j), j < i, row by row: the lower triangle of
/// facebookresearch/dlrm:dlrm_s_pytorch.py.
template <class T>
class PairwiseDotsRunner : public LayerRunner<T> {
 public:
  PairwiseDotsRunner(const PairwiseDots& op, const Geometry& g)
      : batch_(g.batch), vectors_(op.vectors), width_(op.width) {}
  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    for_pairs(*pass.workers, [&](std::int64_t sample, std::size_t i, std::size_t j, auto pair) {
      const T *a = m.inputs[i] + sample * width_, *b = m.inputs[j] + sample * width_;
      T dot{};
      for (std::int64_t x = 0; x < width_; ++x) dot += a[x] * b[x];
      m.output[pair] = dot;
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    for (std::size_t k = 0; k < m.inputs.size(); ++k)
      if (m.input_gradients[k] != nullptr && m.accumulate[k] == 0)
        std::fill_n(m.input_gradients[k], batch_ * width_, T{});
    for_pairs(*pass.workers, [&](std::int64_t sample, std::size_t i, std::size_t j, auto pair) {
      const T dy = m.output_gradient[pair];
      add_multiple(m.input_gradients[i], m.inputs[j], dy, sample);
      add_multiple(m.input_gradients[j], m.inputs[i], dy, sample);
    });
  }

 private:
  void add_multiple(T* to, const T* from, T factor, std::int64_t sample) const {
    if (to == nullptr) return;
    for (std::int64_t x = sample * width_; x < (sample + 1) * width_; ++x)
      to[x] += factor * from[x];
  }
  template <class Body>
  void for_pairs(Workers& workers, Body body) {
    workers.run(batch_, [&](std::int64_t sample, int) {
      std::int64_t pair = sample * vectors_ * (vectors_ - 1) / 2;
      for (std::size_t i = 1; i < static_cast<std::size_t>(vectors_); ++i)
        for (std::size_t j = 0; j < i; ++j) body(sample, i, j, pair++);
    });
  }
  std::int64_t batch_, vectors_, width_;
};

}  // namespace

template <class T>
Made<T> add(const Geometry& g) {
  return std::make_unique<AddRunner<T>>(g);
}
template Made<float> add<float>(const Geometry&);
template Made<double> add<double>(const Geometry&);

template <class T>
Made<T> multiply(const Geometry& g) {
  return std::make_unique<MultiplyRunner<T>>(g);
}
template Made<float> multiply<float>(const Geometry&);
template Made<double> multiply<double>(const Geometry&);

template <class T>
Made<T> scale_by(const ScaleBy& op, const Geometry& g) {
  return std::make_unique<ScaleByRunner<T>>(op, g);
}
template Made<float> scale_by<float>(const ScaleBy&, const Geometry&);
template Made<double> scale_by<double>(const ScaleBy&, const Geometry&);

template <class T>
Made<T> pairwise_dots(const PairwiseDots& op, const Geometry& g) {
  return std::make_unique<PairwiseDotsRunner<T>>(op, g);
}
template Made<float> pairwise_dots<float>(const PairwiseDots&, const Geometry&);
template Made<double> pairwise_dots<double>(const PairwiseDots&, const Geometry&);

}  // namespace reckon::run
