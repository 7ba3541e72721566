#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "executor/train/layers/factories.h"

// Pooling of images (B, H, W, C). The average counts the padding, as torch.nn.AvgPool2d does.
namespace reckon::run {
namespace {

template <class T>
class PoolRunner : public LayerRunner<T> {
 public:
  PoolRunner(const Pool2d& op, const Geometry& g)
      : op_(op),
        batch_(g.batch),
        channels_(g.output[0]),
        in_h_(g.inputs[0][1]),
        in_w_(g.inputs[0][2]),
        out_h_(g.output[1]),
        out_w_(g.output[2]) {
    if (op.kind == PoolKind::max)
      largest_.resize(static_cast<std::size_t>(batch_ * out_h_ * out_w_ * channels_));
  }

  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    const bool max = op_.kind == PoolKind::max;
    for_outputs(*pass.workers, [&](std::int64_t sample, std::int64_t out, const Window& w) {
      T* y = m.output + out * channels_;
      std::fill_n(y, channels_, max ? -std::numeric_limits<T>::infinity() : T{});
      if (max)  // where nothing is larger than that
        std::fill_n(largest_.data() + out * channels_, channels_,
                    static_cast<std::int32_t>(w.first_h * in_w_ + w.first_w));
      for (std::int64_t i = w.first_h; i < w.last_h; ++i) {
        for (std::int64_t j = w.first_w; j < w.last_w; ++j) {
          const std::int64_t point = i * in_w_ + j;
          const T* x = m.inputs[0] + (sample * in_h_ * in_w_ + point) * channels_;
          if (max)
            take_larger(x, y, largest_.data() + out * channels_, point);
          else
            for (std::int64_t c = 0; c < channels_; ++c) y[c] += x[c];
        }
      }
      if (max) return;
      for (std::int64_t c = 0; c < channels_; ++c) y[c] *= share();
    });
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    T* gradient = m.input_gradients[0];
    if (gradient == nullptr) return;
    const std::int64_t size = in_h_ * in_w_ * channels_;
    if (m.accumulate[0] == 0)
      pass.workers->run(batch_,
                        [&](std::int64_t b, int) { std::fill_n(gradient + b * size, size, T{}); });
    for_outputs(*pass.workers, [&](std::int64_t sample, std::int64_t out, const Window& w) {
      const T* dy = m.output_gradient + out * channels_;
      T* image = gradient + sample * size;
      if (op_.kind == PoolKind::max) {
        const std::int32_t* from = largest_.data() + out * channels_;
        for (std::int64_t c = 0; c < channels_; ++c) image[from[c] * channels_ + c] += dy[c];
        return;
      }
      for (std::int64_t i = w.first_h; i < w.last_h; ++i)
        for (std::int64_t j = w.first_w; j < w.last_w; ++j)
          for (std::int64_t c = 0; c < channels_; ++c)
            image[(i * in_w_ + j) * channels_ + c] += share() * dy[c];
    });
  }

 private:
  struct Window {
    std::int64_t first_h, last_h, first_w, last_w;  // inside the image
  };
  T share() const { return T{1} / static_cast<T>(op_.kernel * op_.kernel); }

  void take_larger(const T* x, T* y, std::int32_t* from, std::int64_t point) const {
    for (std::int64_t c = 0; c < channels_; ++c) {
      // The first of equals wins; a NaN is passed on, not hidden.
      const bool larger = x[c] > y[c] || std::isnan(x[c]);
      y[c] = larger ? x[c] : y[c];
      from[c] = larger ? static_cast<std::int32_t>(point) : from[c];
    }
  }

  /// One task a sample: windows overlap inside one.
  template <class Body>
  void for_outputs(Workers& workers, Body body) {
    workers.run(batch_, [&](std::int64_t sample, int) {
      for (std::int64_t y = 0; y < out_h_; ++y) {
        for (std::int64_t x = 0; x < out_w_; ++x) {
          const std::int64_t top = y * op_.stride - op_.padding;
          const std::int64_t left = x * op_.stride - op_.padding;
          const Window w{std::max<std::int64_t>(top, 0), std::min(top + op_.kernel, in_h_),
                         std::max<std::int64_t>(left, 0), std::min(left + op_.kernel, in_w_)};
          body(sample, (sample * out_h_ + y) * out_w_ + x, w);
        }
      }
    });
  }

  Pool2d op_;
  std::int64_t batch_, channels_, in_h_, in_w_, out_h_, out_w_;
  std::vector<std::int32_t> largest_;  // the input point of each output
};

template <class T>
class GlobalAveragePoolRunner : public LayerRunner<T> {
 public:
  explicit GlobalAveragePoolRunner(const Geometry& g)
      : batch_(g.batch), points_(rows_of(g.inputs[0])), channels_(g.output[0]) {}
  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    pass.workers->run(batch_, [&](std::int64_t sample, int) {
      T* y = m.output + sample * channels_;
      std::fill_n(y, channels_, T{});
      for (std::int64_t p = 0; p < points_; ++p) {
        const T* x = m.inputs[0] + (sample * points_ + p) * channels_;
        for (std::int64_t c = 0; c < channels_; ++c) y[c] += x[c];
      }
      for (std::int64_t c = 0; c < channels_; ++c) y[c] *= T{1} / static_cast<T>(points_);
    });
  }
  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    T* gradient = m.input_gradients[0];
    if (gradient == nullptr) return;
    const bool accumulate = m.accumulate[0] != 0;
    const T share = T{1} / static_cast<T>(points_);
    pass.workers->run(batch_, [&](std::int64_t sample, int) {
      const T* dy = m.output_gradient + sample * channels_;
      for (std::int64_t p = 0; p < points_; ++p) {
        T* dx = gradient + (sample * points_ + p) * channels_;
        for (std::int64_t c = 0; c < channels_; ++c) put(dx[c], accumulate, share * dy[c]);
      }
    });
  }

 private:
  std::int64_t batch_, points_, channels_;
};

}  // namespace

template <class T>
Made<T> pool(const Pool2d& op, const Geometry& g) {
  return std::make_unique<PoolRunner<T>>(op, g);
}
template Made<float> pool<float>(const Pool2d&, const Geometry&);
template Made<double> pool<double>(const Pool2d&, const Geometry&);

template <class T>
Made<T> global_average_pool(const Geometry& g) {
  return std::make_unique<GlobalAveragePoolRunner<T>>(g);
}
template Made<float> global_average_pool<float>(const Geometry&);
template Made<double> global_average_pool<double>(const Geometry&);

}  // namespace reckon::run
