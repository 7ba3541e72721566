#include <algorithm>
#include <cmath>
#include <future>
#include <limits>

#include "executor/train/layers/alibi.h"
#include "executor/train/layers/dropout_mask.h"
#include "executor/train/layers/factories.h"
#include "executor/train/parallel/token_parts.h"
#include "executor/train/products/aligned_buffer.h"
#include "executor/train/products/matrix.h"
#include "executor/train/products/vector_math.h"
#include "sim/base/check.h"

// Attention whose tokens are shared out among context ranks [Liu et al. 2023, "Ring attention",
// arXiv:2310.01889, Sec. 3]: keys and values go round while every rank works with those at hand, by
// an online softmax; going backward their gradients follow them, from the first rank that they come
// to until home, where the owner adds its part. A rank has two pieces of the sequence, and works on
// a piece of rows against a piece of columns at a time.
namespace reckon::run {
namespace {

constexpr std::int64_t kRingRows = 64;  // of scores at a time

template <class T>
class RingAttentionRunner : public LayerRunner<T> {
 public:
  RingAttentionRunner(const Attention& op, LayerId layer, const Geometry& g)
      : op_(op),
        layer_(layer),
        batch_(g.batch),
        tokens_(g.output[0]),
        all_tokens_(g.part.tokens.total),
        fused_(g.inputs.size() == 1),
        first_head_(g.part.heads.first),
        all_heads_(g.part.heads.total > 0 ? g.part.heads.total : op.heads),
        q_stride_(g.inputs[0][1]),
        kv_stride_(fused_ ? q_stride_ : g.inputs[1][1]),
        runs_(g.part.tokens.runs),
        largest_(static_cast<std::size_t>(batch_ * op.heads * tokens_)),
        sums_(largest_.size()) {
    for (AlignedBuffer<T>* buffer : {&here_, &next_})
      *buffer = AlignedBuffer<T>(static_cast<std::size_t>(block_size()));
    for (AlignedBuffer<T>* buffer : {&gradient_, &own_, &total_, &received_})
      *buffer = AlignedBuffer<T>(static_cast<std::size_t>(block_size()));
  }

  std::int64_t scratch_elements(int workers) const override { return workers * own_scratch(); }
  void set_batch(std::int64_t samples) override { batch_ = samples; }

  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    Communicator& group = *pass.groups.context;
    std::fill_n(largest_.data(), largest_.size(), -std::numeric_limits<T>::infinity());
    std::fill_n(sums_.data(), sums_.size(), T{});
    std::fill_n(m.output, batch_ * tokens_ * out_stride(), T{});
    pack(m);
    for (int hop = 0; hop < group.size(); ++hop) {
      std::future<void> transfer;
      if (hop + 1 < group.size())
        transfer = std::async(std::launch::async, [&] { pass_round(group, here_, next_); });
      const std::vector<TokenRun> columns = runs_of(group, hop);
      pass.workers->run(batch_ * op_.heads, [&](std::int64_t task, int worker) {
        const std::int64_t b = task / op_.heads, head = task % op_.heads;
        for_blocks(columns, [&](const Block& block) {
          forward_block(m, b, head, block, m.scratch + worker * own_scratch(), pass);
        });
      });
      if (transfer.valid()) transfer.get();
      std::swap(here_, next_);
    }
    finish(m);
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    for (std::size_t k = 0; k < m.inputs.size(); ++k) {
      if (m.input_gradients[k] == nullptr || m.accumulate[k] != 0) continue;
      std::fill_n(m.input_gradients[k], batch_ * tokens_ * (k == 0 ? q_stride_ : kv_stride_), T{});
    }
    Communicator& group = *pass.groups.context;
    RECKON_CHECK(group.size() > 1);
    pack(m);
    for (int hop = 0; hop < group.size(); ++hop) {
      const bool more = hop + 1 < group.size(), follows = hop > 1;
      std::future<void> transfer = std::async(std::launch::async, [&] {
        if (more) pass_round(group, here_, next_);
        if (follows) pass_round(group, total_, received_);  // what those before have made of it
      });
      std::fill_n(gradient_.data(), gradient_.size(), T{});
      const std::vector<TokenRun> columns = runs_of(group, hop);
      pass.workers->run(batch_ * op_.kv_heads, [&](std::int64_t task, int worker) {
        const std::int64_t b = task / op_.kv_heads, shared = op_.heads / op_.kv_heads;
        const std::int64_t first = task % op_.kv_heads * shared;
        for (std::int64_t head = first; head < first + shared; ++head)
          for_blocks(columns, [&](const Block& block) {
            backward_block(m, b, head, block, m.scratch + worker * own_scratch(), pass);
          });
      });
      transfer.get();
      if (follows) add(gradient_, received_);
      std::swap(hop == 0 ? own_ : total_, gradient_);
      std::swap(here_, next_);
    }
    pass_round(group, total_, received_);  // the own ones come home
    add(received_, own_);
    unpack(m);
  }

 private:
  /// Rows [top, top + rows) of this rank's, columns [left, left + columns) of those at hand; their
  /// places in the sequence are side by side.
  struct Block {
    std::int64_t top, rows, row_place, left, columns, column_place;
  };
  struct Range {
    std::int64_t begin, end;
  };

  std::int64_t block_size() const { return 2 * batch_ * op_.kv_heads * tokens_ * op_.head_width; }
  std::int64_t longest() const { return runs_[0].count; }
  std::int64_t stride() const { return aligned_count<T>(longest()); }
  std::int64_t own_scratch() const { return 4 * kRingRows * stride(); }
  std::int64_t out_stride() const { return op_.heads * op_.head_width; }
  T scale() const { return static_cast<T>(1 / std::sqrt(static_cast<double>(op_.head_width))); }
  bool drops(const PassState& pass) const { return pass.training && op_.dropout > 0; }
  std::int64_t row_of(std::int64_t b, std::int64_t head, std::int64_t row) const {
    return (b * op_.heads + head) * tokens_ + row;
  }
  std::int64_t q_at(std::int64_t b, std::int64_t head, std::int64_t row) const {
    return (b * tokens_ + row) * q_stride_ + head * op_.head_width;
  }
  std::int64_t y_at(std::int64_t b, std::int64_t head, std::int64_t row) const {
    return (b * tokens_ + row) * out_stride() + head * op_.head_width;
  }
  /// Keys (part 0) or values (1) of a head that travel, (tokens, width).
  std::int64_t packed_at(std::int64_t b, std::int64_t kv_head, std::int64_t part) const {
    return ((b * op_.kv_heads + kv_head) * 2 + part) * tokens_ * op_.head_width;
  }
  std::int64_t packed_of(std::int64_t b, std::int64_t head, std::int64_t part,
                         std::int64_t row) const {
    return packed_at(b, head / (op_.heads / op_.kv_heads), part) + row * op_.head_width;
  }
  std::int64_t kv_at(std::int64_t b, std::int64_t kv_head, std::int64_t part,
                     std::int64_t row) const {
    const std::int64_t before = fused_ ? op_.heads + part * op_.kv_heads : 0;
    return (b * tokens_ + row) * kv_stride_ + (before + kv_head) * op_.head_width;
  }
  std::size_t input_of(std::int64_t part) const {
    return fused_ ? 0 : static_cast<std::size_t>(1 + part);
  }

  /// body(b, kv head, part, row) for all that travels of this rank.
  template <class Body>
  void for_vectors(Body body) const {
    for (std::int64_t b = 0; b < batch_; ++b)
      for (std::int64_t h = 0; h < op_.kv_heads; ++h)
        for (std::int64_t part = 0; part < 2; ++part)
          for (std::int64_t row = 0; row < tokens_; ++row) body(b, h, part, row);
  }
  void pack(const LayerMemory<T>& m) {
    for_vectors([&](std::int64_t b, std::int64_t h, std::int64_t part, std::int64_t row) {
      std::copy_n(m.inputs[input_of(part)] + kv_at(b, h, part, row), op_.head_width,
                  here_.data() + packed_at(b, h, part) + row * op_.head_width);
    });
  }
  void unpack(const LayerMemory<T>& m) const {
    for_vectors([&](std::int64_t b, std::int64_t h, std::int64_t part, std::int64_t row) {
      T* to = m.input_gradients[input_of(part)];
      if (to == nullptr) return;
      to += kv_at(b, h, part, row);
      const T* from = received_.data() + packed_at(b, h, part) + row * op_.head_width;
      for (std::int64_t j = 0; j < op_.head_width; ++j) to[j] += from[j];
    });
  }

  static void add(AlignedBuffer<T>& to, const AlignedBuffer<T>& more) {
    for (std::size_t i = 0; i < to.size(); ++i) to.data()[i] += more.data()[i];
  }
  /// To the next rank, from the one before. Odd ranks listen first, so that somebody does.
  static void pass_round(Communicator& group, const AlignedBuffer<T>& out, AlignedBuffer<T>& in) {
    const int ranks = group.size(), own = group.rank();
    const bool listens = own % 2 == 1;
    if (listens) group.receive(std::as_writable_bytes(in.span()), (own + ranks - 1) % ranks);
    group.send(std::as_bytes(out.span()), (own + 1) % ranks);
    if (!listens) group.receive(std::as_writable_bytes(in.span()), (own + ranks - 1) % ranks);
  }
  /// Places of the keys that are here after so many hops.
  std::vector<TokenRun> runs_of(const Communicator& group, int hop) const {
    return tokens_after(hop, all_tokens_, {group.rank(), group.size()});
  }

  template <class Body>
  void for_blocks(const std::vector<TokenRun>& columns, Body body) const {
    std::int64_t left = 0;
    for (const TokenRun& column : columns) {
      std::int64_t top = 0;
      for (const TokenRun& row : runs_) {
        for (std::int64_t done = 0; done < row.count; done += kRingRows) {
          const Block block{top + done,       std::min(kRingRows, row.count - done),
                            row.first + done, left,
                            column.count,     column.first};
          if (sees_any(op_, {block.row_place, block.rows}, {block.column_place, block.columns}))
            body(block);
        }
        top += row.count;
      }
      left += column.count;
    }
  }
  /// Of a block's columns those that its row r sees.
  Range seen_in(const Block& block, std::int64_t r) const {
    const std::int64_t place = block.row_place + r;
    const std::int64_t first = op_.window > 0 ? place - op_.window + 1 : 0;
    const std::int64_t last = op_.causal ? place + 1 : all_tokens_;
    const auto inside = [&](std::int64_t x) {
      return std::clamp<std::int64_t>(x - block.column_place, 0, block.columns);
    };
    return {inside(first), inside(last)};
  }

  void make_scores(const LayerMemory<T>& m, std::int64_t b, std::int64_t head, const Block& block,
                   T* scores) const {
    multiply_here<T>({block.rows, block.columns, op_.head_width},
                     {m.inputs[0] + q_at(b, head, block.top), q_stride_},
                     {here_.data() + packed_of(b, head, 0, block.left), op_.head_width, true},
                     scores, stride(), false);
    const T slope = op_.alibi ? static_cast<T>(alibi_slope(first_head_ + head, all_heads_)) : T{0};
    for (std::int64_t r = 0; r < block.rows; ++r)
      for (std::int64_t j = 0; j < block.columns; ++j) {
        const std::int64_t distance = std::abs(block.row_place + r - block.column_place - j);
        T& x = scores[r * stride() + j];
        x = x * scale() - slope * static_cast<T>(distance);
      }
  }
  /// x becomes e^(x - shift), zero where it is hidden.
  static void weigh(T* x, const Block& block, Range seen, T shift) {
    for (std::int64_t j = seen.begin; j < seen.end; ++j) x[j] = exp_of(x[j] - shift);
    std::fill(x, x + seen.begin, T{});
    std::fill(x + seen.end, x + block.columns, T{});
  }
  /// Of a row of probabilities; they are those of one rank.
  void drop_factors(std::int64_t b, std::int64_t head, const Block& block, std::int64_t r,
                    const PassState& pass, T* factors) const {
    const DropoutKey key{pass.seed, pass.step, static_cast<std::uint32_t>(index(layer_)),
                         pass.first_sample + b};
    const std::int64_t row = (first_head_ + head) * all_tokens_ + block.row_place + r;
    dropout_factors(key, op_.dropout, row * all_tokens_ + block.column_place,
                    std::span(factors, static_cast<std::size_t>(block.columns)));
  }

  void forward_block(const LayerMemory<T>& m, std::int64_t b, std::int64_t head, const Block& block,
                     T* scores, const PassState& pass) {
    make_scores(m, b, head, block, scores);
    T* factors = scores + kRingRows * stride();
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const Range seen = seen_in(block, r);
      T* x = scores + r * stride();
      T& largest = largest_.data()[row_of(b, head, block.top + r)];
      const T before = largest;
      for (std::int64_t j = seen.begin; j < seen.end; ++j) largest = std::max(largest, x[j]);
      weigh(x, block, seen, largest);
      if (seen.begin == seen.end) continue;
      const T kept = exp_of(before - largest);
      T sum{};
      for (std::int64_t j = seen.begin; j < seen.end; ++j) sum += x[j];
      T& all = sums_.data()[row_of(b, head, block.top + r)];
      all = all * kept + sum;
      T* y = m.output + y_at(b, head, block.top + r);
      for (std::int64_t j = 0; j < op_.head_width; ++j) y[j] *= kept;
      if (!drops(pass)) continue;
      drop_factors(b, head, block, r, pass, factors);
      for (std::int64_t j = 0; j < block.columns; ++j) x[j] *= factors[j];
    }
    multiply_here<T>({block.rows, op_.head_width, block.columns}, {scores, stride()},
                     {here_.data() + packed_of(b, head, 1, block.left), op_.head_width},
                     m.output + y_at(b, head, block.top), out_stride(), true);
  }
  void finish(const LayerMemory<T>& m) {
    for (std::int64_t b = 0; b < batch_; ++b)
      for (std::int64_t head = 0; head < op_.heads; ++head)
        for (std::int64_t row = 0; row < tokens_; ++row) {
          T& sum = sums_.data()[row_of(b, head, row)];
          T* y = m.output + y_at(b, head, row);
          for (std::int64_t j = 0; j < op_.head_width; ++j) y[j] /= sum;
          largest_.data()[row_of(b, head, row)] += std::log(sum);  // what the backward pass needs
        }
  }

  void backward_block(const LayerMemory<T>& m, std::int64_t b, std::int64_t head,
                      const Block& block, T* scratch, const PassState& pass) {
    const std::int64_t width = op_.head_width;
    T *scores = scratch, *slopes = scratch + kRingRows * stride();
    T *dropped = slopes + kRingRows * stride(), *factors = dropped + kRingRows * stride();
    const std::int64_t at = y_at(b, head, block.top);
    const MatrixView<T> dy{m.output_gradient + at, out_stride()};
    make_scores(m, b, head, block, scores);
    multiply_here<T>({block.rows, block.columns, width}, dy,
                     {here_.data() + packed_of(b, head, 1, block.left), width, true}, slopes,
                     stride(), false);
    for (std::int64_t r = 0; r < block.rows; ++r) {
      const Range seen = seen_in(block, r);
      T *x = scores + r * stride(), *s = slopes + r * stride(), *p = dropped + r * stride();
      weigh(x, block, seen, largest_.data()[row_of(b, head, block.top + r)]);
      std::fill_n(factors, block.columns, T{1});
      if (drops(pass)) drop_factors(b, head, block, r, pass, factors);
      const T *y = m.output + at + r * out_stride(), *g = dy.data + r * out_stride();
      T along{};  // sum of probability * its gradient = output . its gradient [Dao 2022, eq. 4]
      for (std::int64_t j = 0; j < width; ++j) along += y[j] * g[j];
      for (std::int64_t j = 0; j < block.columns; ++j) {
        p[j] = x[j] * factors[j];
        s[j] = scale() * x[j] * (s[j] * factors[j] - along);
      }
    }
    T* gradient = gradient_.data();
    multiply_here<T>({block.columns, width, block.rows}, {dropped, stride(), true}, dy,
                     gradient + packed_of(b, head, 1, block.left), width, true);
    multiply_here<T>({block.columns, width, block.rows}, {slopes, stride(), true},
                     {m.inputs[0] + q_at(b, head, block.top), q_stride_},
                     gradient + packed_of(b, head, 0, block.left), width, true);
    if (T* dq = m.input_gradients[0])
      multiply_here<T>({block.rows, width, block.columns}, {slopes, stride()},
                       {here_.data() + packed_of(b, head, 0, block.left), width},
                       dq + q_at(b, head, block.top), q_stride_, true);
  }

  Attention op_;
  LayerId layer_;
  std::int64_t batch_, tokens_, all_tokens_;
  bool fused_;
  std::int64_t first_head_, all_heads_;  // of all tensor ranks
  std::int64_t q_stride_, kv_stride_;
  std::vector<TokenRun> runs_;
  AlignedBuffer<T> largest_, sums_;  // (B, heads, T / c)
  AlignedBuffer<T> here_, next_;     // keys and values, (B, kv heads, 2, T / c, width)
  AlignedBuffer<T> gradient_, own_, total_, received_;  // of keys and values
};

}  // namespace

template <class T>
Made<T> ring_attention(const Attention& op, LayerId layer, const Geometry& g) {
  return std::make_unique<RingAttentionRunner<T>>(op, layer, g);
}
template Made<float> ring_attention<float>(const Attention&, LayerId, const Geometry&);
template Made<double> ring_attention<double>(const Attention&, LayerId, const Geometry&);

}  // namespace reckon::run
