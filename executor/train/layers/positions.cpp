#include <cmath>

#include "executor/train/layers/factories.h"
#include "executor/train/products/aligned_buffer.h"

// Positions without parameters.
namespace reckon::run {
namespace {

/// Rotary embedding [Su 2021, arXiv:2104.09864, eq. 15]. Which features make a pair: i and i +
/// rotated / 2 of a head, as Hugging Face's Llama and GPT-NeoX have it (the paper's neighbours,
/// with the features in another order).
template <class T>
class RotaryRunner : public LayerRunner<T> {
 public:
  RotaryRunner(const RotaryEmbedding& op, const Geometry& g)
      : head_(op.head_width),
        pairs_((op.rotated > 0 ? op.rotated : op.head_width) / 2),
        tokens_(g.output[0]),
        width_(g.output[1]),
        rows_(g.batch * tokens_),
        cosine_(static_cast<std::size_t>(tokens_ * pairs_)),
        sine_(static_cast<std::size_t>(tokens_ * pairs_)) {
    for (std::int64_t t = 0; t < tokens_; ++t) {
      for (std::int64_t i = 0; i < pairs_; ++i) {
        const double power = static_cast<double>(i) / static_cast<double>(pairs_);
        const auto place = static_cast<double>(g.part.tokens.place_of(t));
        const double angle = place * std::pow(op.theta, -power);
        cosine_.data()[t * pairs_ + i] = static_cast<T>(std::cos(angle));
        sine_.data()[t * pairs_ + i] = static_cast<T>(std::sin(angle));
      }
    }
  }
  void set_batch(std::int64_t samples) override { rows_ = samples * tokens_; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    rotate(m.inputs[0], m.output, T{1}, false, *pass.workers);
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    if (m.input_gradients[0] != nullptr)  // the inverse of a rotation is its transpose
      rotate(m.output_gradient, m.input_gradients[0], T{-1}, m.accumulate[0] != 0, *pass.workers);
  }

 private:
  void rotate(const T* from, T* to, T direction, bool accumulate, Workers& workers) {
    workers.run_pieces(rows_, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const T* cosine = cosine_.data() + r % tokens_ * pairs_;
        const T* sine = sine_.data() + r % tokens_ * pairs_;
        for (std::int64_t at = r * width_; at < (r + 1) * width_; at += head_) {
          const T *low = from + at, *high = low + pairs_;
          T *low_to = to + at, *high_to = low_to + pairs_;
          for (std::int64_t i = 0; i < pairs_; ++i) {
            const T s = direction * sine[i];
            put(low_to[i], accumulate, low[i] * cosine[i] - high[i] * s);
            put(high_to[i], accumulate, high[i] * cosine[i] + low[i] * s);
          }
          for (std::int64_t i = 2 * pairs_; i < head_; ++i) put(low_to[i], accumulate, low[i]);
        }
      }
    });
  }
  std::int64_t head_, pairs_, tokens_, width_, rows_;
  AlignedBuffer<T> cosine_, sine_;  // (tokens, pairs)
};

/// [Vaswani 2017, arXiv:1706.03762, section 3.5]: sine at even features, cosine at odd ones.
template <class T>
class SinusoidalRunner : public LayerRunner<T> {
 public:
  SinusoidalRunner(const SinusoidalPositions& op, const Geometry& g)
      : batch_(g.batch), size_(elements(g.output)), table_(static_cast<std::size_t>(size_)) {
    for (std::int64_t i = 0; i < size_; ++i) {
      const std::int64_t t = g.part.tokens.place_of(i / op.width), j = i % op.width;
      const std::int64_t even = j - j % 2;
      const double power = static_cast<double>(even) / static_cast<double>(op.width);
      const double angle = static_cast<double>(t) / std::pow(10000.0, power);
      table_.data()[i] = static_cast<T>(j % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  }
  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run(batch_, [&](std::int64_t b, int) {
      for (std::int64_t i = 0; i < size_; ++i)
        m.output[b * size_ + i] = m.inputs[0][b * size_ + i] + table_.data()[i];
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    T* dx = m.input_gradients[0];
    if (dx == nullptr) return;
    pass.workers->run_pieces(batch_ * size_, kPiece, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        put(dx[i], m.accumulate[0] != 0, m.output_gradient[i]);
    });
  }

 private:
  std::int64_t batch_, size_;
  AlignedBuffer<T> table_;
};

}  // namespace

template <class T>
Made<T> rotary(const RotaryEmbedding& op, const Geometry& g) {
  return std::make_unique<RotaryRunner<T>>(op, g);
}
template <class T>
Made<T> sinusoidal(const SinusoidalPositions& op, const Geometry& g) {
  return std::make_unique<SinusoidalRunner<T>>(op, g);
}
template Made<float> rotary<float>(const RotaryEmbedding&, const Geometry&);
template Made<double> rotary<double>(const RotaryEmbedding&, const Geometry&);
template Made<float> sinusoidal<float>(const SinusoidalPositions&, const Geometry&);
template Made<double> sinusoidal<double>(const SinusoidalPositions&, const Geometry&);

}  // namespace reckon::run
