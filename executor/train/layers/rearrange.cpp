#include <algorithm>
#include <cstring>

#include "executor/train/layers/factories.h"
#include "sim/base/check.h"

// Layers that only move numbers.
namespace reckon::run {
namespace {

/// (C, H, W) as the catalogue has it <-> (H, W, C) as the runtime has it. For other shapes both are
/// the same.
template <class From, class To>
void turn(const From* from, To* to, std::int64_t outer, std::int64_t inner, bool accumulate) {
  for (std::int64_t i = 0; i < inner; ++i)
    for (std::int64_t o = 0; o < outer; ++o)
      put(to[i * outer + o], accumulate, static_cast<To>(from[o * inner + i]));
}

template <class T>
class InputRunner : public LayerRunner<T> {
 public:
  explicit InputRunner(const Geometry& g)
      : batch_(g.batch), shape_(g.output), part_(g.part.tokens) {}
  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    if (!part_.all()) return take_tokens(m, pass);
    const std::int64_t size = elements(shape_), channels = shape_.size() == 3 ? shape_[0] : 1;
    RECKON_CHECK(static_cast<std::int64_t>(pass.record.size()) == batch_ * size);
    pass.workers->run(batch_, [&](std::int64_t b, int) {
      turn(pass.record.data() + b * size, m.output + b * size, channels, size / channels, false);
    });
  }
  void backward(const LayerMemory<T>&, const PassState&) override {}

 private:
  /// Of whole samples this rank's tokens.
  void take_tokens(const LayerMemory<T>& m, const PassState& pass) const {
    const std::int64_t tokens = shape_[0], width = elements(shape_) / tokens;
    RECKON_CHECK(static_cast<std::int64_t>(pass.record.size()) == batch_ * part_.total * width);
    for (std::int64_t b = 0; b < batch_; ++b)
      for (std::int64_t t = 0; t < tokens; ++t)
        for (std::int64_t j = 0; j < width; ++j)
          m.output[(b * tokens + t) * width + j] =
              static_cast<T>(pass.record[static_cast<std::size_t>(
                  (b * part_.total + part_.place_of(t)) * width + j)]);
  }
  std::int64_t batch_;
  Shape shape_;
  TokenPart part_;
};

/// Also ImageTokens, which the runtime's order has made already: `turned` is false then.
template <class T>
class FlattenRunner : public LayerRunner<T> {
 public:
  FlattenRunner(const Geometry& g, bool turned)
      : batch_(g.batch),
        size_(elements(g.output)),
        channels_(turned && g.inputs[0].size() == 3 ? g.inputs[0][0] : 1) {}
  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run(batch_, [&](std::int64_t b, int) {
      turn(m.inputs[0] + b * size_, m.output + b * size_, size_ / channels_, channels_, false);
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    T* dx = m.input_gradients[0];
    if (dx == nullptr) return;
    pass.workers->run(batch_, [&](std::int64_t b, int) {
      turn(m.output_gradient + b * size_, dx + b * size_, channels_, size_ / channels_,
           m.accumulate[0] != 0);
    });
  }

 private:
  std::int64_t batch_, size_, channels_;
};

template <class T>
class ConcatRunner : public LayerRunner<T> {
 public:
  explicit ConcatRunner(const Geometry& g)
      : rows_each_(rows_of(g.output)), rows_(g.batch * rows_each_), width_(features_of(g.output)) {
    for (const Shape& shape : g.inputs) widths_.push_back(features_of(shape));
  }
  void set_batch(std::int64_t samples) override { rows_ = samples * rows_each_; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run_pieces(rows_, 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        T* to = m.output + r * width_;
        for (std::size_t k = 0; k < widths_.size(); to += widths_[k], ++k)
          std::copy_n(m.inputs[k] + r * widths_[k], widths_[k], to);
      }
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run_pieces(rows_, 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const T* from = m.output_gradient + r * width_;
        for (std::size_t k = 0; k < widths_.size(); from += widths_[k], ++k) {
          T* dx = m.input_gradients[k];
          if (dx == nullptr) continue;
          for (std::int64_t j = 0; j < widths_[k]; ++j)
            put(dx[r * widths_[k] + j], m.accumulate[k] != 0, from[j]);
        }
      }
    });
  }

 private:
  std::int64_t rows_each_, rows_, width_;
  std::vector<std::int64_t> widths_;
};

/// Some rows of each sample: the first, or those that the data has masked.
template <class T>
class SelectTokensRunner : public LayerRunner<T> {
 public:
  SelectTokensRunner(const SelectTokens& op, const Geometry& g)
      : op_(op), batch_(g.batch), tokens_(g.inputs[0][0]), width_(g.output[1]) {}
  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    for_rows(*pass.workers, pass, [&](std::int64_t from, std::int64_t to) {
      std::copy_n(m.inputs[0] + from * width_, width_, m.output + to * width_);
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    T* dx = m.input_gradients[0];
    if (dx == nullptr) return;
    if (m.accumulate[0] == 0) std::fill_n(dx, batch_ * tokens_ * width_, T{});
    for_rows(*pass.workers, pass, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t j = 0; j < width_; ++j)
        dx[from * width_ + j] += m.output_gradient[to * width_ + j];
    });
  }

 private:
  template <class Body>
  void for_rows(Workers& workers, const PassState& pass, Body body) {
    if (op_.masked)
      RECKON_CHECK(static_cast<std::int64_t>(pass.masked.size()) == batch_ * op_.count);
    workers.run(batch_, [&](std::int64_t b, int) {
      for (std::int64_t i = 0; i < op_.count; ++i) {
        const std::int64_t at =
            op_.masked ? pass.masked[static_cast<std::size_t>(b * op_.count + i)] : i;
        RECKON_CHECK(at >= 0);
        RECKON_CHECK(at < tokens_);
        body(b * tokens_ + at, b * op_.count + i);
      }
    });
  }
  SelectTokens op_;
  std::int64_t batch_, tokens_, width_;
};

template <class T>
class SelectFeaturesRunner : public LayerRunner<T> {
 public:
  SelectFeaturesRunner(const SelectFeatures& op, const Geometry& g)
      : op_(op), batch_(g.batch), width_(g.inputs[0][0]) {}
  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState&) override {
    for (std::int64_t b = 0; b < batch_; ++b)
      std::copy_n(m.inputs[0] + b * width_ + op_.first, op_.count, m.output + b * op_.count);
  }
  void backward(const LayerMemory<T>& m, const PassState&) override {
    T* dx = m.input_gradients[0];
    if (dx == nullptr) return;
    if (m.accumulate[0] == 0) std::fill_n(dx, batch_ * width_, T{});
    for (std::int64_t b = 0; b < batch_; ++b)
      for (std::int64_t j = 0; j < op_.count; ++j)
        dx[b * width_ + op_.first + j] += m.output_gradient[b * op_.count + j];
  }

 private:
  SelectFeatures op_;
  std::int64_t batch_, width_;
};

}  // namespace

template <class T>
Made<T> input(const Geometry& g) {
  return std::make_unique<InputRunner<T>>(g);
}
template <class T>
Made<T> flatten(const Geometry& g) {
  return std::make_unique<FlattenRunner<T>>(g, true);
}
template <class T>
Made<T> image_tokens(const Geometry& g) {
  return std::make_unique<FlattenRunner<T>>(g, false);
}
template <class T>
Made<T> concat(const Geometry& g) {
  return std::make_unique<ConcatRunner<T>>(g);
}
template <class T>
Made<T> select_tokens(const SelectTokens& op, const Geometry& g) {
  return std::make_unique<SelectTokensRunner<T>>(op, g);
}
template <class T>
Made<T> select_features(const SelectFeatures& op, const Geometry& g) {
  return std::make_unique<SelectFeaturesRunner<T>>(op, g);
}
template Made<float> input<float>(const Geometry&);
template Made<double> input<double>(const Geometry&);
template Made<float> flatten<float>(const Geometry&);
template Made<double> flatten<double>(const Geometry&);
template Made<float> image_tokens<float>(const Geometry&);
template Made<double> image_tokens<double>(const Geometry&);
template Made<float> concat<float>(const Geometry&);
template Made<double> concat<double>(const Geometry&);
template Made<float> select_tokens<float>(const SelectTokens&, const Geometry&);
template Made<double> select_tokens<double>(const SelectTokens&, const Geometry&);
template Made<float> select_features<float>(const SelectFeatures&, const Geometry&);
template Made<double> select_features<double>(const SelectFeatures&, const Geometry&);

}  // namespace reckon::run
