#include <algorithm>
#include <cstring>

#include "executor/train/layers/factories.h"
#include "executor/train/products/aligned_buffer.h"
#include "executor/train/products/matrix.h"

// Convolution as a matrix product [Chellapilla 2006, "High performance convolutional neural
// networks for document processing"]: a row of columns holds the patch under one output point, in
// the order (kernel_h, kernel_w, channel). Only some rows exist at a time.
namespace reckon::run {
namespace {

template <class T>
class ConvolutionRunner : public LayerRunner<T> {
 public:
  ConvolutionRunner(const Conv2d& op, const Geometry& g)
      : op_(op),
        batch_(g.batch),
        in_h_(g.inputs[0][1]),
        in_w_(g.inputs[0][2]),
        out_h_(g.output[1]),
        out_w_(g.output[2]),
        group_in_(op.in / op.groups),
        group_out_(op.out / op.groups),
        patch_(op.kernel_h * op.kernel_w * group_in_) {
    if (!permuted()) return;
    weight_ = AlignedBuffer<T>(static_cast<std::size_t>(op.out * patch_));
    weight_gradient_ = AlignedBuffer<T>(static_cast<std::size_t>(op.out * patch_));
  }

  std::int64_t scratch_elements(int workers) const override {
    if (pointwise()) return 0;
    return std::max(workers * aligned_count<T>(task_rows() * patch_), shared_rows() * patch_);
  }

  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    Workers& workers = *pass.workers;
    const T* weight = prepare_weight(m.weight, workers);
    if (pointwise()) {
      reckon::multiply<T>(workers, {rows(), op_.out, op_.in}, {m.inputs[0], op_.in},
                          {weight, op_.in, true}, m.output, op_.out, false);
    } else {
      const std::int64_t piece = task_rows();
      const std::int64_t own = aligned_count<T>(piece * patch_);
      workers.run((rows() + piece - 1) / piece, [&](std::int64_t task, int worker) {
        const std::int64_t begin = task * piece, end = std::min(begin + piece, rows());
        T* columns = m.scratch + worker * own;
        for (std::int64_t group = 0; group < op_.groups; ++group) {
          gather(m.inputs[0], group, begin, end, columns);
          multiply_here<T>({end - begin, group_out_, patch_}, {columns, patch_},
                           {weight + group * group_out_ * patch_, patch_, true},
                           m.output + begin * op_.out + group * group_out_, op_.out, false);
        }
      });
    }
    if (m.bias != nullptr) add_bias(m, workers);
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    Workers& workers = *pass.workers;
    if (m.weight_gradient != nullptr) weight_backward(m, workers);
    if (m.bias_gradient != nullptr)
      add_column_sums(workers, m.output_gradient, rows(), op_.out, m.bias_gradient);
    if (m.input_gradients[0] != nullptr) input_backward(m, workers);
  }

 private:
  bool pointwise() const {
    return op_.kernel_h == 1 && op_.kernel_w == 1 && op_.stride == 1 && op_.padding == 0 &&
           op_.columns_padded() == 0 && op_.groups == 1;
  }
  bool permuted() const { return op_.kernel_h * op_.kernel_w > 1; }
  std::int64_t rows() const { return batch_ * out_h_ * out_w_; }
  /// Of one task: its columns should stay in the second-level cache.
  std::int64_t task_rows() const {
    constexpr std::int64_t kElements = 256 * 1024;
    const std::int64_t fitting = kElements / patch_ / 16 * 16;
    return std::min(rows(), std::clamp<std::int64_t>(fitting, 96, 1024));
  }
  /// Of all workers together, where they share columns: the product over them should be long.
  std::int64_t shared_rows() const {
    constexpr std::int64_t kElements = 2 * 1024 * 1024;
    return std::min(rows(), std::clamp<std::int64_t>(kElements / patch_ / 16 * 16, 256, 8192));
  }

  /// (out, group_in, kh, kw) -> (out, kh, kw, group_in)
  const T* prepare_weight(const T* weight, Workers& workers) {
    if (!permuted()) return weight;
    const std::int64_t points = op_.kernel_h * op_.kernel_w;
    workers.run(op_.out, [&](std::int64_t o, int) {
      const T* from = weight + o * patch_;
      T* to = weight_.data() + o * patch_;
      for (std::int64_t p = 0; p < points; ++p)
        for (std::int64_t c = 0; c < group_in_; ++c) to[p * group_in_ + c] = from[c * points + p];
    });
    return weight_.data();
  }

  void add_bias(const LayerMemory<T>& m, Workers& workers) {
    const std::int64_t piece = std::max<std::int64_t>(1, 4 * kPiece / op_.out);
    workers.run_pieces(rows(), piece, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r)
        for (std::int64_t o = 0; o < op_.out; ++o) m.output[r * op_.out + o] += m.bias[o];
    });
  }

  /// Where the patch of output row r begins in the image, and which of its columns lie inside.
  struct Window {
    std::int64_t sample, top, left, first_w, last_w;
  };
  Window window(std::int64_t r) const {
    const std::int64_t x = r % out_w_, y = r / out_w_ % out_h_;
    const std::int64_t left = x * op_.stride - op_.columns_padded();
    return {.sample = r / (out_w_ * out_h_),
            .top = y * op_.stride - op_.padding,
            .left = left,
            .first_w = std::max<std::int64_t>(0, -left),
            .last_w = std::min(op_.kernel_w, in_w_ - left)};
  }

  void gather(const T* image, std::int64_t group, std::int64_t begin, std::int64_t end,
              T* columns) const {
    const auto size = static_cast<std::size_t>(group_in_);
    for (std::int64_t r = begin; r < end; ++r) {
      const Window w = window(r);
      for (std::int64_t i = 0; i < op_.kernel_h; ++i) {
        T* to = columns + (r - begin) * patch_ + i * op_.kernel_w * group_in_;
        const std::int64_t y = w.top + i;
        const bool inside = y >= 0 && y < in_h_ && w.first_w < w.last_w;
        const std::int64_t first = inside ? w.first_w : op_.kernel_w;
        const std::int64_t last = inside ? w.last_w : op_.kernel_w;
        std::fill(to, to + first * group_in_, T{});
        std::fill(to + last * group_in_, to + op_.kernel_w * group_in_, T{});
        if (!inside) continue;
        const T* from =
            image + ((w.sample * in_h_ + y) * in_w_ + w.left + first) * op_.in + group * group_in_;
        if (op_.groups == 1) {
          std::memcpy(to + first * group_in_, from,
                      static_cast<std::size_t>(last - first) * size * sizeof(T));
          continue;
        }
        for (std::int64_t j = first; j < last; ++j, from += op_.in)
          std::memcpy(to + j * group_in_, from, size * sizeof(T));
      }
    }
  }

  /// The reverse: adds patches to the image.
  void scatter(const T* columns, std::int64_t group, std::int64_t begin, std::int64_t end,
               T* image) const {
    for (std::int64_t r = begin; r < end; ++r) {
      const Window w = window(r);
      for (std::int64_t i = 0; i < op_.kernel_h; ++i) {
        const std::int64_t y = w.top + i;
        if (y < 0 || y >= in_h_) continue;
        const T* from = columns + (r - begin) * patch_ + i * op_.kernel_w * group_in_;
        T* row = image + (w.sample * in_h_ + y) * in_w_ * op_.in + group * group_in_;
        for (std::int64_t j = w.first_w; j < w.last_w; ++j) {
          T* to = row + (w.left + j) * op_.in;
          for (std::int64_t c = 0; c < group_in_; ++c) to[c] += from[j * group_in_ + c];
        }
      }
    }
  }

  void weight_backward(const LayerMemory<T>& m, Workers& workers) {
    if (pointwise()) {
      reckon::multiply<T>(workers, {op_.out, op_.in, rows()}, {m.output_gradient, op_.out, true},
                          {m.inputs[0], op_.in}, m.weight_gradient, op_.in, true);
      return;
    }
    T* gradient = permuted() ? weight_gradient_.data() : m.weight_gradient;
    if (permuted()) std::fill_n(gradient, op_.out * patch_, T{});
    const std::int64_t shared = shared_rows();
    for (std::int64_t group = 0; group < op_.groups; ++group) {
      for (std::int64_t begin = 0; begin < rows(); begin += shared) {
        const std::int64_t end = std::min(begin + shared, rows());
        workers.run_pieces(end - begin, 64, [&](std::int64_t from, std::int64_t to) {
          gather(m.inputs[0], group, begin + from, begin + to, m.scratch + from * patch_);
        });
        reckon::multiply<T>(
            workers, {group_out_, patch_, end - begin},
            {m.output_gradient + begin * op_.out + group * group_out_, op_.out, true},
            {m.scratch, patch_}, gradient + group * group_out_ * patch_, patch_, true);
      }
    }
    if (permuted()) add_permuted(m.weight_gradient, workers);
  }

  void add_permuted(T* gradient, Workers& workers) {
    const std::int64_t points = op_.kernel_h * op_.kernel_w;
    workers.run(op_.out, [&](std::int64_t o, int) {
      const T* from = weight_gradient_.data() + o * patch_;
      T* to = gradient + o * patch_;
      for (std::int64_t c = 0; c < group_in_; ++c)
        for (std::int64_t p = 0; p < points; ++p) to[c * points + p] += from[p * group_in_ + c];
    });
  }

  void input_backward(const LayerMemory<T>& m, Workers& workers) {
    const T* weight = permuted() ? weight_.data() : m.weight;
    T* image = m.input_gradients[0];
    if (pointwise()) {
      reckon::multiply<T>(workers, {rows(), op_.in, op_.out}, {m.output_gradient, op_.out},
                          {weight, op_.in}, image, op_.in, m.accumulate[0] != 0);
      return;
    }
    // Patches overlap inside a sample: one task a sample.
    const std::int64_t points = out_h_ * out_w_, size = in_h_ * in_w_ * op_.in;
    const std::int64_t piece = task_rows(), own = aligned_count<T>(piece * patch_);
    workers.run(batch_, [&](std::int64_t sample, int worker) {
      if (m.accumulate[0] == 0) std::fill_n(image + sample * size, size, T{});
      T* columns = m.scratch + worker * own;
      const std::int64_t last = (sample + 1) * points;
      for (std::int64_t group = 0; group < op_.groups; ++group) {
        for (std::int64_t begin = sample * points; begin < last; begin += piece) {
          const std::int64_t end = std::min(begin + piece, last);
          multiply_here<T>({end - begin, patch_, group_out_},
                           {m.output_gradient + begin * op_.out + group * group_out_, op_.out},
                           {weight + group * group_out_ * patch_, patch_}, columns, patch_, false);
          scatter(columns, group, begin, end, image);
        }
      }
    });
  }

  Conv2d op_;
  std::int64_t batch_, in_h_, in_w_, out_h_, out_w_, group_in_, group_out_, patch_;
  AlignedBuffer<T> weight_, weight_gradient_;  // (out, kh, kw, group_in)
};

}  // namespace

template <class T>
Made<T> convolution(const Conv2d& op, const Geometry& g) {
  return std::make_unique<ConvolutionRunner<T>>(op, g);
}
template Made<float> convolution<float>(const Conv2d&, const Geometry&);
template Made<double> convolution<double>(const Conv2d&, const Geometry&);

}  // namespace reckon::run
