#include "kernels/cross_entropy.h"

#include "executor/cuda/layers/runner.h"
#include "kernels/class_parts.h"
#include "kernels/elementwise.h"

// The loss of classes, one number a sample: the mean over its rows. Where context ranks share the
// tokens each has the loss of all.
namespace reckon::cuda::run {
namespace {

template <class E>
class CrossEntropyRunner : public DeviceRunner<E> {
 public:
  CrossEntropyRunner(const SoftmaxCrossEntropy& op, const LayerGeometry& g)
      : classes_(op.classes),
        batch_(g.batch),
        rows_(rows_of(g.inputs[0])),
        splits_classes_(g.part.split_classes),
        splits_tokens_(!g.part.tokens.all()),
        share_(splits_tokens_ ? static_cast<float>(rows_) / static_cast<float>(g.part.tokens.total)
                              : 1.0f),
        log_sums_(batch_ * rows_),
        losses_(batch_ * rows_),
        slopes_(splits_tokens_ ? batch_ : 0) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::cross_entropy_forward(batch_ * rows_, classes_, stride_of(m), m.inputs[0],
                                     pass.target, log_sums_.data(), losses_.data(), pass.stream),
          "cross entropy");
    if (splits_classes_) add_up_classes(pass);
    check(gpu::mean_losses(batch_, rows_, losses_.data(), m.losses, pass.stream), "losses");
    if (splits_tokens_) add_up_tokens(m.losses, pass);
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (m.input_gradients[0] == nullptr) return;
    const float* slopes = pass.slopes;
    if (splits_tokens_) {
      check(gpu::scale<float>(slopes, share_, slopes_.data(), false, batch_, pass.stream),
            "slopes of own tokens");
      slopes = slopes_.data();
    }
    check(gpu::cross_entropy_backward(batch_ * rows_, classes_, stride_of(m), m.inputs[0],
                                      pass.target, log_sums_.data(), slopes, rows_,
                                      m.input_gradients[0], m.accumulate[0] != 0, pass.stream),
          "cross entropy gradient");
  }

 private:
  std::int64_t stride_of(const DeviceLayerMemory<E>& m) const {
    return m.input_stride > 0 ? m.input_stride : classes_;
  }
  /// Means of own tokens become those of all.
  void add_up_tokens(float* means, const DevicePass& pass) const {
    check(gpu::scale<float>(means, share_, means, false, batch_, pass.stream), "losses");
    const int ranks = pass.context->size();
    timed(pass.taken->context, Bytes{2.0 * double(batch_) * sizeof(float) * (ranks - 1) / ranks},
          [&] {
            pass.context->queue_all_reduce({means, static_cast<std::size_t>(batch_)}, pass.stream);
          });
  }
  void add_up_classes(const DevicePass& pass) {
    const std::int64_t rows = batch_ * rows_, ranks = pass.tensor->size();
    if (found_.size() == 0) {
      found_ = DeviceBuffer<float>(2 * rows);
      all_ = DeviceBuffer<float>(2 * rows * ranks);
    }
    check(gpu::class_parts(rows, classes_, pass.target, log_sums_.data(), losses_.data(),
                           found_.data(), pass.stream),
          "classes of all ranks");
    timed_exchange(pass, 2 * rows, [&](DeviceGroup& group) {
      group.queue_all_gather(found_.span(), all_.span(), pass.stream);
    });
    check(gpu::join_class_parts(rows, ranks, all_.data(), log_sums_.data(), losses_.data(),
                                pass.stream),
          "classes of all ranks");
  }

  std::int64_t classes_, batch_, rows_;
  bool splits_classes_;  // among tensor ranks; targets count from this one's first
  bool splits_tokens_;   // among context ranks
  float share_;          // of the tokens that is here
  DeviceBuffer<float> log_sums_, losses_, slopes_, found_, all_;
};

}  // namespace

template <class E>
DeviceRunnerPtr<E> softmax_cross_entropy(const SoftmaxCrossEntropy& op, const LayerGeometry& g) {
  return std::make_unique<CrossEntropyRunner<E>>(op, g);
}
template DeviceRunnerPtr<float> softmax_cross_entropy<float>(const SoftmaxCrossEntropy&,
                                                             const LayerGeometry&);
template DeviceRunnerPtr<Bf16> softmax_cross_entropy<Bf16>(const SoftmaxCrossEntropy&,
                                                           const LayerGeometry&);
template DeviceRunnerPtr<Half> softmax_cross_entropy<Half>(const SoftmaxCrossEntropy&,
                                                           const LayerGeometry&);

}  // namespace reckon::cuda::run
