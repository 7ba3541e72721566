#include <algorithm>

#include "executor/train/layers/dropout_mask.h"
#include "executor/train/layers/factories.h"
#include "executor/train/products/vector_math.h"

// Activations and dropout: element by element.
namespace reckon::run {
namespace {

// GELU in the form with tanh [Hendrycks & Gimpel 2016, arXiv:1606.08415, section 2], GPT-2's.
template <class T>
struct Gelu {
  static constexpr T kRoot = static_cast<T>(0.79788456080286535588);  // sqrt(2 / pi)
  static constexpr T kCubic = static_cast<T>(0.044715);
  static T value(T x) { return T{0.5} * x * (T{1} + tanh_of(kRoot * (x + kCubic * x * x * x))); }
  static T back(T x, T dy) {
    const T t = tanh_of(kRoot * (x + kCubic * x * x * x));
    const T inner = kRoot * (T{1} + 3 * kCubic * x * x);
    return dy * (T{0.5} * (T{1} + t) + T{0.5} * x * (T{1} - t * t) * inner);
  }
};
template <class T>
struct Relu {
  // Of a NaN neither comparison holds: it is passed on, and its gradient with it.
  static T value(T x) { return x < 0 ? T{0} : x; }
  static T back(T y, T dy) { return y <= 0 ? T{0} : dy; }
};
template <class T>
struct Silu {
  static T value(T x) { return x * sigmoid_of(x); }
  static T back(T x, T dy) {
    const T s = sigmoid_of(x);
    return dy * (s * (T{1} + x * (T{1} - s)));
  }
};
template <class T>
struct Tanh {
  static T value(T x) { return tanh_of(x); }
  static T back(T y, T dy) { return dy * (T{1} - y * y); }
};
template <class T>
struct Sigmoid {
  static T value(T x) { return sigmoid_of(x); }
  static T back(T y, T dy) { return dy * (y * (T{1} - y)); }
};

/// F::value(x); F::back(kept, dy), the gradient of x: `kept` is x or y, whichever the plan keeps.
template <class T, class F>
class ActivationRunner : public LayerRunner<T> {
 public:
  ActivationRunner(const Geometry& g, bool keeps_input)
      : size_(elements(g.output)), count_(g.batch * size_), keeps_input_(keeps_input) {}

  void set_batch(std::int64_t samples) override { count_ = samples * size_; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run_pieces(count_, 4 * kPiece, [&](std::int64_t begin, std::int64_t end) {
      const T* x = m.inputs[0];
      for (std::int64_t i = begin; i < end; ++i) m.output[i] = F::value(x[i]);
    });
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    T* dx = m.input_gradients[0];
    if (dx == nullptr) return;
    const bool accumulate = m.accumulate[0] != 0;
    const T *kept = keeps_input_ ? m.inputs[0] : m.output, *dy = m.output_gradient;
    pass.workers->run_pieces(count_, 4 * kPiece, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) put(dx[i], accumulate, F::back(kept[i], dy[i]));
    });
  }

 private:
  std::int64_t size_, count_;  // of a sample, of the batch
  bool keeps_input_;
};

/// Draws the numbers of one rank: each element's is that of its place in the whole sample.
template <class T>
class DropoutRunner : public LayerRunner<T> {
 public:
  DropoutRunner(const Dropout& op, LayerId layer, const Geometry& g)
      : op_(op), layer_(layer), batch_(g.batch), size_(elements(g.output)) {
    const TokenPart& tokens = g.part.tokens;
    const std::int64_t local = features_of(g.output);
    const std::int64_t width = g.part.features.total > 0 ? g.part.features.total : local;
    if (width == local) {
      if (tokens.all()) add_pieces(0, 0, size_);
      std::int64_t row = 0;
      for (const TokenRun& run : tokens.runs) {
        add_pieces(row * width, run.first * width, run.count * width);
        row += run.count;
      }
      return;
    }
    for (std::int64_t row = 0; row < rows_of(g.output); ++row)
      add_pieces(row * local, tokens.place_of(row) * width + g.part.features.first, local);
  }

  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    apply(m.inputs[0], m.output, false, pass);
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    if (m.input_gradients[0] != nullptr)
      apply(m.output_gradient, m.input_gradients[0], m.accumulate[0] != 0, pass);
  }

 private:
  /// Elements side by side here and in the whole sample.
  struct Piece {
    std::int64_t first, place, count;
  };
  void add_pieces(std::int64_t first, std::int64_t place, std::int64_t count) {
    for (std::int64_t done = 0; done < count; done += kPiece)
      pieces_.push_back({first + done, place + done, std::min(kPiece, count - done)});
  }

  void apply(const T* from, T* to, bool accumulate, const PassState& pass) {
    const bool drops = pass.training && op_.rate > 0;
    const std::int64_t pieces = std::ssize(pieces_);
    pass.workers->run(batch_ * pieces, [&](std::int64_t task, int) {
      const std::int64_t sample = task / pieces;
      const Piece& piece = pieces_[static_cast<std::size_t>(task % pieces)];
      T factors[kPiece];
      const auto span = std::span(factors).first(static_cast<std::size_t>(piece.count));
      std::ranges::fill(span, T{1});
      const DropoutKey key{pass.seed, pass.step, static_cast<std::uint32_t>(index(layer_)),
                           pass.first_sample + sample};
      if (drops && op_.whole_sample) {
        dropout_factors(key, op_.rate, 0, span.first(1));
        std::ranges::fill(span, factors[0]);
      } else if (drops) {
        dropout_factors(key, op_.rate, piece.place, span);
      }
      const T* in = from + sample * size_ + piece.first;
      T* out = to + sample * size_ + piece.first;
      for (std::int64_t i = 0; i < piece.count; ++i) put(out[i], accumulate, in[i] * factors[i]);
    });
  }

  Dropout op_;
  LayerId layer_;
  std::int64_t batch_, size_;
  std::vector<Piece> pieces_;  // of a sample
};

}  // namespace

template <class T>
Made<T> activation(const Activation& op, const Geometry& g) {
  switch (op.kind) {
    case ActivationKind::relu:
      return std::make_unique<ActivationRunner<T, Relu<T>>>(g, false);
    case ActivationKind::gelu:
      return std::make_unique<ActivationRunner<T, Gelu<T>>>(g, true);
    case ActivationKind::silu:
      return std::make_unique<ActivationRunner<T, Silu<T>>>(g, true);
    case ActivationKind::tanh:
      return std::make_unique<ActivationRunner<T, Tanh<T>>>(g, false);
    case ActivationKind::sigmoid:
      break;
  }
  return std::make_unique<ActivationRunner<T, Sigmoid<T>>>(g, false);
}
template Made<float> activation<float>(const Activation&, const Geometry&);
template Made<double> activation<double>(const Activation&, const Geometry&);

template <class T>
Made<T> dropout(const Dropout& op, LayerId layer, const Geometry& g) {
  return std::make_unique<DropoutRunner<T>>(op, layer, g);
}
template Made<float> dropout<float>(const Dropout&, LayerId, const Geometry&);
template Made<double> dropout<double>(const Dropout&, LayerId, const Geometry&);

}  // namespace reckon::run
