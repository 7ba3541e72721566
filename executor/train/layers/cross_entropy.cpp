#include <algorithm>
#include <cmath>

#include "executor/train/layers/factories.h"
#include "executor/train/parallel/group_exchange.h"
#include "executor/train/products/aligned_buffer.h"
#include "executor/train/products/vector_math.h"
#include "sim/base/check.h"

// -log softmax(logits)[class], in natural logarithms: one number a sample, the mean over its rows
// (tokens). Where tensor ranks share the classes [Shoeybi et al. 2019, arXiv:1909.08053, Sec. 3]
// each tells the others of each row its largest logit, the sum of its exponentials and the logit of
// the target, so that no logits travel. Where context ranks share the tokens each has the loss of
// all.
namespace reckon::run {
namespace {

template <class T>
class SoftmaxCrossEntropyRunner : public LayerRunner<T> {
 public:
  SoftmaxCrossEntropyRunner(const SoftmaxCrossEntropy& op, const Geometry& g)
      : classes_(op.classes),
        part_(g.part.rows),
        splits_classes_(g.part.split_classes),
        tokens_(g.part.tokens),
        batch_(g.batch),
        rows_(rows_of(g.inputs[0])),
        all_rows_(tokens_.all() ? rows_ : tokens_.total),
        log_sums_(static_cast<std::size_t>(batch_ * rows_)),
        losses_(static_cast<std::size_t>(batch_ * rows_)),
        found_(static_cast<std::size_t>(splits_classes_ ? kFound * batch_ * rows_ : 0)) {}

  void set_batch(std::int64_t samples) override { batch_ = samples; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    RECKON_CHECK(static_cast<std::int64_t>(pass.target.size()) == batch_ * all_rows_);
    pass.workers->run_pieces(batch_ * rows_, kRowsOfTask,
                             [&](std::int64_t begin, std::int64_t end) {
                               for (std::int64_t r = begin; r < end; ++r) look_at(m, pass, r);
                             });
    if (splits_classes_) add_up_classes(*pass.groups.tensor);
    for (std::int64_t b = 0; b < batch_; ++b) {
      T sum{};
      for (std::int64_t r = b * rows_; r < (b + 1) * rows_; ++r) sum += losses_.data()[r];
      m.output[b] = sum / static_cast<T>(all_rows_);
    }
    if (!tokens_.all())
      pass.groups.context->all_reduce(std::span<T>(m.output, static_cast<std::size_t>(batch_)));
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    T* gradient = m.input_gradients[0];
    if (gradient == nullptr) return;
    const bool accumulate = m.accumulate[0] != 0;
    pass.workers->run_pieces(
        batch_ * rows_, kRowsOfTask, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t r = begin; r < end; ++r) {
            const T *x = m.inputs[0] + r * classes_, log_sum = log_sums_.data()[r];
            T* dx = gradient + r * classes_;
            const T dy = m.output_gradient[r / rows_] / static_cast<T>(all_rows_);
            const std::int64_t target = class_of(pass, r);
            T of_target{};
            if (target >= 0) {
              of_target = dx[target];
              put(of_target, accumulate, dy * (exp_of(x[target] - log_sum) - T{1}));
            }
            for (std::int64_t j = 0; j < classes_; ++j)
              put(dx[j], accumulate, dy * exp_of(x[j] - log_sum));
            // Not by -= dy: infinity less infinity would be NaN.
            if (target >= 0) dx[target] = of_target;
          }
        });
  }

 private:
  static constexpr std::int64_t kRowsOfTask = 8, kLanes = 16;
  static constexpr std::int64_t kFound =
      3;  // largest, sum, of_target of a row, of this rank's classes

  void look_at(const LayerMemory<T>& m, const PassState& pass, std::int64_t r) {
    const T* x = m.inputs[0] + r * classes_;
    T largest = x[0];
    for (std::int64_t j = 1; j < classes_; ++j) largest = std::max(largest, x[j]);
    T lanes[kLanes] = {};  // several sums, so that the compiler may use vectors
    std::int64_t j = 0;
    for (; j + kLanes <= classes_; j += kLanes)
      for (std::int64_t l = 0; l < kLanes; ++l) lanes[l] += exp_of(x[j + l] - largest);
    for (; j < classes_; ++j) lanes[0] += exp_of(x[j] - largest);
    T sum{};
    for (const T lane : lanes) sum += lane;
    const std::int64_t target = class_of(pass, r);
    const T of_target = target < 0 ? T{} : x[target];
    if (!splits_classes_) return finish(r, largest + std::log(sum), of_target);
    T* found = found_.data() + kFound * r;
    found[0] = largest;
    found[1] = sum;
    found[2] = of_target;
  }
  void finish(std::int64_t r, T log_sum, T of_target) {
    log_sums_.data()[r] = log_sum;
    losses_.data()[r] = log_sum - of_target;
  }

  void add_up_classes(Communicator& group) {
    const std::int64_t rows = batch_ * rows_, ranks = group.size();
    std::vector<T> all(static_cast<std::size_t>(kFound * rows * ranks));
    all_gather_in<T>(group, {found_.data(), static_cast<std::size_t>(kFound * rows)}, all);
    const auto found = [&](std::int64_t rank, std::int64_t r) {
      return all.data() + kFound * (rank * rows + r);
    };
    for (std::int64_t r = 0; r < rows; ++r) {
      T largest = found(0, r)[0];
      for (std::int64_t k = 1; k < ranks; ++k) largest = std::max(largest, found(k, r)[0]);
      T sum{}, of_target{};
      for (std::int64_t k = 0; k < ranks; ++k) {
        sum += found(k, r)[1] * exp_of(found(k, r)[0] - largest);
        of_target += found(k, r)[2];
      }
      finish(r, largest + std::log(sum), of_target);
    }
  }

  /// Among this rank's classes; -1: it is another rank's.
  std::int64_t class_of(const PassState& pass, std::int64_t r) const {
    const std::int64_t row = r / rows_ * all_rows_ + tokens_.place_of(r % rows_);
    const auto c = static_cast<std::int64_t>(pass.target[static_cast<std::size_t>(row)]);
    RECKON_CHECK(c >= 0);  // the data has been checked against the model
    RECKON_CHECK(c < (splits_classes_ ? part_.total : classes_));
    const std::int64_t own = c - part_.first;
    return own >= 0 && own < classes_ ? own : -1;
  }

  std::int64_t classes_;
  RankRange part_;
  bool splits_classes_;
  TokenPart tokens_;
  std::int64_t batch_, rows_, all_rows_;
  AlignedBuffer<T> log_sums_, losses_, found_;
};

}  // namespace

template <class T>
Made<T> softmax_cross_entropy(const SoftmaxCrossEntropy& op, const Geometry& g) {
  return std::make_unique<SoftmaxCrossEntropyRunner<T>>(op, g);
}
template Made<float> softmax_cross_entropy<float>(const SoftmaxCrossEntropy&, const Geometry&);
template Made<double> softmax_cross_entropy<double>(const SoftmaxCrossEntropy&, const Geometry&);

}  // namespace reckon::run
