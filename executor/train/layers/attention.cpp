#include <algorithm>
#include <cmath>
#include <limits>

#include "executor/train/layers/alibi.h"
#include "executor/train/layers/dropout_mask.h"
#include "executor/train/layers/factories.h"
#include "executor/train/products/aligned_buffer.h"
#include "executor/train/products/matrix.h"
#include "executor/train/products/vector_math.h"

// softmax(Q K^T / sqrt(w)) V by blocks of rows, of which only the log of each row's sum is kept;
// the backward pass makes the scores again [Dao 2022, arXiv:2205.14135, algorithms 2 and 4].
namespace reckon::run {
namespace {

constexpr std::int64_t kBlock = 64;  // rows of scores at a time

template <class T>
class AttentionRunner : public LayerRunner<T> {
 public:
  AttentionRunner(const Attention& op, LayerId layer, const Geometry& g)
      : op_(op),
        layer_(layer),
        batch_(g.batch),
        tokens_(g.output[0]),
        seen_(g.inputs.size() == 1 ? tokens_ : g.inputs[1][0]),
        fused_(g.inputs.size() == 1),
        first_head_(g.part.heads.first),
        all_heads_(g.part.heads.total > 0 ? g.part.heads.total : op.heads),
        q_stride_(g.inputs[0][1]),
        kv_stride_(fused_ ? q_stride_ : g.inputs[1][1]),
        log_sums_(static_cast<std::size_t>(batch_ * op.heads * tokens_)) {}

  std::int64_t scratch_elements(int workers) const override { return workers * own_scratch(); }

  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run(batch_ * op_.heads, [&](std::int64_t task, int worker) {
      const std::int64_t b = task / op_.heads, head = task % op_.heads;
      const Head h = head_of(m, b, head);
      T* scores = m.scratch + worker * own_scratch();
      T* factors = scores + kBlock * stride();
      for (std::int64_t first = 0; first < tokens_; first += kBlock) {
        const Block block = block_of(first);
        make_scores(h, head, block, scores);
        for (std::int64_t r = 0; r < block.rows; ++r)
          normalise(scores + r * stride(), block, seen_in(block, r), log_sum(b, head, first + r));
        drop(b, head, block, scores, factors, pass);
        rows_product(block, scores, {h.v + block.left * kv_stride_, kv_stride_},
                     m.output + (b * tokens_ + first) * out_stride() + head * op_.head_width,
                     out_stride(), false);
      }
    });
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    for (std::size_t k = 0; k < m.inputs.size(); ++k) {
      if (m.input_gradients[k] == nullptr || m.accumulate[k] != 0) continue;
      const std::int64_t count = k == 0 ? tokens_ * q_stride_ : seen_ * kv_stride_;
      std::fill_n(m.input_gradients[k], batch_ * count, T{});
    }
    // The heads that share a key and value head add to its gradient: one task.
    pass.workers->run(batch_ * op_.kv_heads, [&](std::int64_t task, int worker) {
      const std::int64_t b = task / op_.kv_heads, shared = op_.heads / op_.kv_heads;
      const std::int64_t first_head = task % op_.kv_heads * shared;
      for (std::int64_t head = first_head; head < first_head + shared; ++head)
        for (std::int64_t first = 0; first < tokens_; first += kBlock)
          backward_block(m, b, head, block_of(first), m.scratch + worker * own_scratch(), pass);
    });
  }

 private:
  /// Where a head's rows begin in a sample.
  struct Head {
    const T *q, *k, *v;
  };
  /// Rows of scores [top, top + rows), and the columns that any of them sees.
  struct Block {
    std::int64_t top, rows, left, columns;
  };

  std::int64_t stride() const { return aligned_count<T>(seen_); }
  std::int64_t own_scratch() const { return 4 * kBlock * stride(); }
  std::int64_t out_stride() const { return op_.heads * op_.head_width; }
  T scale() const { return static_cast<T>(1 / std::sqrt(static_cast<double>(op_.head_width))); }
  T& log_sum(std::int64_t b, std::int64_t head, std::int64_t row) {
    return log_sums_.data()[(b * op_.heads + head) * tokens_ + row];
  }

  std::int64_t q_at(std::int64_t b, std::int64_t head) const {
    return b * tokens_ * q_stride_ + head * op_.head_width;
  }
  /// part 0: keys, 1: values.
  std::int64_t kv_at(std::int64_t b, std::int64_t head, std::int64_t part) const {
    const std::int64_t kv_head = head / (op_.heads / op_.kv_heads);
    const std::int64_t before = fused_ ? op_.heads + part * op_.kv_heads : 0;
    return b * seen_ * kv_stride_ + (before + kv_head) * op_.head_width;
  }
  Head head_of(const LayerMemory<T>& m, std::int64_t b, std::int64_t head) const {
    return {m.inputs[0] + q_at(b, head), m.inputs[fused_ ? 0 : 1] + kv_at(b, head, 0),
            m.inputs[fused_ ? 0 : 2] + kv_at(b, head, 1)};
  }

  /// The columns that a row sees: [first, last).
  std::int64_t first_seen(std::int64_t row) const {
    return op_.window > 0 ? std::clamp<std::int64_t>(row - op_.window + 1, 0, seen_ - 1) : 0;
  }
  std::int64_t last_seen(std::int64_t row) const {
    if (op_.causal) return row + 1;
    return op_.window > 0 ? std::min(seen_, row + op_.window) : seen_;
  }
  Block block_of(std::int64_t top) const {
    const std::int64_t rows = std::min(kBlock, tokens_ - top);
    const std::int64_t left = first_seen(top) / 16 * 16;  // keeps products aligned
    return {top, rows, left, last_seen(top + rows - 1) - left};
  }

  /// Of a block's columns: [begin, end).
  struct Range {
    std::int64_t begin, end;
  };
  Range seen_in(const Block& block, std::int64_t r) const {
    const std::int64_t row = block.top + r;
    return {std::min(first_seen(row) - block.left, block.columns), last_seen(row) - block.left};
  }

  void make_scores(const Head& h, std::int64_t head, const Block& block, T* scores) const {
    multiply_here<T>({block.rows, block.columns, op_.head_width},
                     {h.q + block.top * q_stride_, q_stride_},
                     {h.k + block.left * kv_stride_, kv_stride_, true}, scores, stride(), false);
    const T slope = op_.alibi ? static_cast<T>(alibi_slope(first_head_ + head, all_heads_)) : T{0};
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const std::int64_t row = block.top + r;
      T* x = scores + r * stride();
      for (std::int64_t j = 0; j < block.columns; ++j) x[j] *= scale();
      if (op_.alibi)
        for (std::int64_t j = 0; j < block.columns; ++j)
          x[j] -= slope * static_cast<T>(std::abs(row - block.left - j));
    }
  }

  /// Scores become probabilities; those that are hidden are zeros.
  void normalise(T* x, const Block& block, Range seen, T& log_sum) const {
    T largest = x[seen.begin];
    for (std::int64_t j = seen.begin + 1; j < seen.end; ++j) largest = std::max(largest, x[j]);
    weigh(x, block, seen, largest);
    T sum{};
    for (std::int64_t j = seen.begin; j < seen.end; ++j) sum += x[j];
    log_sum = largest + std::log(sum);
    const T inverse = T{1} / sum;
    for (std::int64_t j = seen.begin; j < seen.end; ++j) x[j] *= inverse;
  }
  /// x becomes e^(x - shift), zero where it is hidden.
  static void weigh(T* x, const Block& block, Range seen, T shift) {
    for (std::int64_t j = seen.begin; j < seen.end; ++j) x[j] = exp_of(x[j] - shift);
    hide(x, block, seen);
  }
  static void hide(T* x, const Block& block, Range seen) {
    std::fill(x, x + seen.begin, T{});
    std::fill(x + seen.end, x + block.columns, T{});
  }

  bool masks() const { return op_.causal || op_.window > 0; }
  /// to (+)= p v, where p is zero at what a row does not see. A zero times infinity or NaN is NaN,
  /// so values that are not finite and hidden from a row are left out of its sum.
  void rows_product(const Block& block, const T* p, MatrixView<T> v, T* to, std::int64_t to_stride,
                    bool accumulate) const {
    const std::int64_t width = op_.head_width;
    const std::int64_t first = seen_in(block, block.rows - 1).begin;  // all see [first, last)
    const std::int64_t last = std::max(first, seen_in(block, 0).end);
    if (!masks() || (all_finite(v, 0, first) && all_finite(v, last, block.columns)))
      return multiply_here<T>({block.rows, width, block.columns}, {p, stride()}, v, to, to_stride,
                              accumulate);
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const Range seen = seen_in(block, r);
      multiply_here<T>({1, width, seen.end - seen.begin}, {p + r * stride() + seen.begin, stride()},
                       {v.data + seen.begin * v.stride, v.stride}, to + r * to_stride, to_stride,
                       accumulate);
    }
  }
  /// to += p^T y, likewise: rows that are not finite add nothing to what they do not see.
  void columns_product(const Block& block, const T* p, MatrixView<T> y, T* to,
                       std::int64_t to_stride) const {
    const std::int64_t width = op_.head_width;
    if (!masks() || all_finite(y, 0, block.rows))
      return multiply_here<T>({block.columns, width, block.rows}, {p, stride(), true}, y, to,
                              to_stride, true);
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const Range seen = seen_in(block, r);
      multiply_here<T>(
          {seen.end - seen.begin, width, 1}, {p + r * stride() + seen.begin, stride(), true},
          {y.data + r * y.stride, y.stride}, to + seen.begin * to_stride, to_stride, true);
    }
  }
  /// Rows [first, last) of a matrix that is as wide as a head.
  bool all_finite(MatrixView<T> x, std::int64_t first, std::int64_t last) const {
    int beyond = 0;
    for (std::int64_t r = first; r < last; ++r)
      for (std::int64_t i = 0; i < op_.head_width; ++i)
        beyond |= std::abs(x.data[r * x.stride + i]) <= std::numeric_limits<T>::max() ? 0 : 1;
    return beyond == 0;
  }

  /// factors: of each probability, where there is dropout; scores are multiplied by them.
  void drop(std::int64_t b, std::int64_t head, const Block& block, T* scores, T* factors,
            const PassState& pass) const {
    if (!drops(pass)) return;
    const DropoutKey key{pass.seed, pass.step, static_cast<std::uint32_t>(index(layer_)),
                         pass.first_sample + b};
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const std::int64_t element =
          ((first_head_ + head) * tokens_ + block.top + r) * seen_ + block.left;
      T* f = factors + r * stride();
      dropout_factors(key, op_.dropout, element,
                      std::span(f, static_cast<std::size_t>(block.columns)));
      if (scores == nullptr) continue;
      for (std::int64_t j = 0; j < block.columns; ++j) scores[r * stride() + j] *= f[j];
    }
  }
  bool drops(const PassState& pass) const { return pass.training && op_.dropout > 0; }

  void backward_block(const LayerMemory<T>& m, std::int64_t b, std::int64_t head,
                      const Block& block, T* scratch, const PassState& pass) {
    T *scores = scratch, *factors = scratch + kBlock * stride();
    T* slopes = scratch + 2 * kBlock * stride();  // gradient of the probabilities, then the scores
    const Head h = head_of(m, b, head);
    const std::int64_t at = (b * tokens_ + block.top) * out_stride() + head * op_.head_width;
    const MatrixView<T> dy{m.output_gradient + at, out_stride()};
    make_scores(h, head, block, scores);
    for (std::int64_t r = 0; r < block.rows; ++r) {
      T* x = scores + r * stride();
      weigh(x, block, seen_in(block, r), log_sum(b, head, block.top + r));
    }
    multiply_here<T>({block.rows, block.columns, op_.head_width}, dy,
                     {h.v + block.left * kv_stride_, kv_stride_, true}, slopes, stride(), false);
    drop(b, head, block, nullptr, factors, pass);
    T* dv = m.input_gradients[fused_ ? 0 : 2];
    if (dv != nullptr)
      value_backward(block, scores, factors, slopes + kBlock * stride(), dy, dv + kv_at(b, head, 1),
                     drops(pass));
    for (std::int64_t r = 0; r < block.rows; ++r) {
      T *x = scores + r * stride(), *s = slopes + r * stride();
      const T *y = m.output + at + r * out_stride(), *g = dy.data + r * out_stride();
      if (drops(pass))
        for (std::int64_t j = 0; j < block.columns; ++j) s[j] *= factors[r * stride() + j];
      T along{};  // sum of probability * its gradient = output . its gradient [Dao 2022, eq. 4]
      for (std::int64_t j = 0; j < op_.head_width; ++j) along += y[j] * g[j];
      const Range seen = seen_in(block, r);
      for (std::int64_t j = seen.begin; j < seen.end; ++j) s[j] = scale() * x[j] * (s[j] - along);
      hide(s, block, seen);
    }
    if (T* dq = m.input_gradients[0])
      rows_product(block, slopes, {h.k + block.left * kv_stride_, kv_stride_},
                   dq + q_at(b, head) + block.top * q_stride_, q_stride_, true);
    if (T* dk = m.input_gradients[fused_ ? 0 : 1])
      columns_product(block, slopes, {h.q + block.top * q_stride_, q_stride_},
                      dk + kv_at(b, head, 0) + block.left * kv_stride_, kv_stride_);
  }

  /// dV += P^T dY, with the probabilities as dropout left them.
  void value_backward(const Block& block, const T* scores, const T* factors, T* dropped,
                      MatrixView<T> dy, T* dv, bool drops) const {
    if (drops)
      for (std::int64_t i = 0; i < block.rows * stride(); ++i) dropped[i] = scores[i] * factors[i];
    columns_product(block, drops ? dropped : scores, dy, dv + block.left * kv_stride_, kv_stride_);
  }

  Attention op_;
  LayerId layer_;
  std::int64_t batch_, tokens_, seen_;
  bool fused_;
  std::int64_t first_head_, all_heads_;  // of all tensor ranks
  std::int64_t q_stride_, kv_stride_;
  AlignedBuffer<T> log_sums_;  // (B, heads, T)
};

}  // namespace

template <class T>
Made<T> attention(const Attention& op, LayerId layer, const Geometry& g) {
  if (!g.part.tokens.all()) return ring_attention<T>(op, layer, g);
  return std::make_unique<AttentionRunner<T>>(op, layer, g);
}
template Made<float> attention<float>(const Attention&, LayerId, const Geometry&);
template Made<double> attention<double>(const Attention&, LayerId, const Geometry&);

}  // namespace reckon::run
