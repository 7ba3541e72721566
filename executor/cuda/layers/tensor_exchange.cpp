#include <algorithm>

#include "executor/cuda/layers/runner.h"
#include "kernels/elementwise.h"
#include "sim/base/check.h"

// What tensor ranks exchange between two layers (executor/train/layers/layer_part.h), as
// executor/train/layers/tensor_exchange.cpp has it for CPUs. Sums are of floats: of 16 bits, too,
// each rank's summand is made a float and the sum is rounded.
namespace reckon::cuda::run {
namespace {

template <class E>
class TensorExchangeRunner : public DeviceRunner<E> {
 public:
  explicit TensorExchangeRunner(const LayerGeometry& g)
      : kind_(g.part.exchange),
        batch_(g.batch),
        in_(elements(g.inputs[0])),
        out_(elements(g.output)),
        most_((batch_ * std::max(in_, out_) + 63) / 64 * 64) {}

  /// Three whole tensors: in the order of the ranks, what goes, what comes.
  std::int64_t scratch_bytes() const override {
    return 3 * most_ * static_cast<std::int64_t>(sizeof(float));
  }

  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    const Work w{m, pass};
    switch (kind_) {
      case TensorExchange::copy:
        return copy(w, m.inputs[0], m.output, in_);
      case TensorExchange::sum:
        return sum(w, m.inputs[0], m.output, in_);
      case TensorExchange::gather:
      case TensorExchange::collect:
        return gather(w, m.inputs[0], m.output, in_);
      case TensorExchange::scatter:
        return scatter(w, m.inputs[0], m.output, out_);
      case TensorExchange::share:
        return own(w, m.inputs[0], m.output, out_);
      case TensorExchange::none:
        break;
    }
    RECKON_CHECK(false);
  }

  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    if (m.input_gradients[0] == nullptr) return;
    const Work w{m, pass};
    const bool adds = m.accumulate[0] != 0;
    E* to = adds ? reinterpret_cast<E*>(floats(m, 2)) : m.input_gradients[0];
    const E* dy = m.output_gradient;
    switch (kind_) {
      case TensorExchange::sum:
        copy(w, dy, to, out_);
        break;
      case TensorExchange::copy:
        sum(w, dy, to, in_);
        break;
      case TensorExchange::gather:
        scatter(w, dy, to, in_);
        break;
      case TensorExchange::scatter:
      case TensorExchange::share:
        gather(w, dy, to, out_);
        break;
      case TensorExchange::collect:
        own(w, dy, to, in_);
        break;
      case TensorExchange::none:
        RECKON_CHECK(false);
    }
    if (adds)
      check(gpu::add(m.input_gradients[0], to, m.input_gradients[0], batch_ * in_, pass.stream),
            "sum gradient");
  }

 private:
  struct Work {
    const DeviceLayerMemory<E>& m;
    const DevicePass& pass;
    int ranks() const { return pass.tensor->size(); }
  };
  /// The `k`-th of three.
  float* floats(const DeviceLayerMemory<E>& m, std::int64_t k) const {
    return reinterpret_cast<float*>(m.scratch) + k * most_;
  }
  void copy(const Work& w, const E* from, E* to, std::int64_t size) const {
    move(w, from, to, batch_ * size);
  }
  template <class T>
  static void move(const Work& w, const T* from, T* to, std::int64_t count) {
    check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(count) * sizeof(T),
                          cudaMemcpyDeviceToDevice, w.pass.stream),
          "tensor exchange");
  }
  static void widen(const Work& w, const E* from, float* to, std::int64_t count) {
    check(gpu::widen(from, to, count, w.pass.stream), "tensor exchange");
  }
  static void round(const Work& w, const float* from, E* to, std::int64_t count) {
    check(gpu::round_to(from, to, count, w.pass.stream), "tensor exchange");
  }
  static std::span<float> span(float* values, std::int64_t count) {
    return {values, static_cast<std::size_t>(count)};
  }
  void sum(const Work& w, const E* from, E* to, std::int64_t size) const {
    const std::int64_t count = batch_ * size;
    float* all = floats(w.m, 0);
    widen(w, from, all, count);
    timed_exchange(w.pass, 2 * count / w.ranks(),
                   [&](DeviceGroup& g) { g.queue_all_reduce(span(all, count), w.pass.stream); });
    round(w, all, to, count);
  }
  /// (B, size) of each rank -> (B, ranks, size): each sample's tokens in the order of the ranks.
  void gather(const Work& w, const E* mine, E* all, std::int64_t size) const {
    const std::int64_t count = batch_ * size, ranks = w.ranks();
    float *part = floats(w.m, 0), *by_rank = floats(w.m, 1);
    widen(w, mine, part, count);
    timed_exchange(w.pass, count, [&](DeviceGroup& g) {
      g.queue_all_gather(span(part, count), span(by_rank, ranks * count), w.pass.stream);
    });
    if (batch_ == 1) return round(w, by_rank, all, ranks * count);
    float* turned = floats(w.m, 0);
    turn(w, by_rank, turned, ranks, batch_, size);
    round(w, turned, all, ranks * count);
  }
  /// The sum over ranks of (B, ranks, size): (B, size) of this rank's tokens.
  void scatter(const Work& w, const E* all, E* mine, std::int64_t size) const {
    const std::int64_t count = batch_ * size, ranks = w.ranks();
    float *whole = floats(w.m, 0), *turned = floats(w.m, 1);
    widen(w, all, whole, ranks * count);
    turn(w, whole, turned, batch_, ranks, size);
    timed_exchange(w.pass, count, [&](DeviceGroup& g) {
      g.queue_reduce_scatter(span(turned, ranks * count), span(whole, count), w.pass.stream);
    });
    round(w, whole, mine, count);
  }
  void own(const Work& w, const E* all, E* mine, std::int64_t size) const {
    for (std::int64_t b = 0; b < batch_; ++b)
      move(w, all + (b * w.ranks() + w.pass.tensor->rank()) * size, mine + b * size, size);
  }
  /// (outer, inner, size) -> (inner, outer, size)
  static void turn(const Work& w, const float* from, float* to, std::int64_t outer,
                   std::int64_t inner, std::int64_t size) {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i)
        move(w, from + (o * inner + i) * size, to + (i * outer + o) * size, size);
  }

  TensorExchange kind_;
  std::int64_t batch_, in_, out_;  // elements of a sample
  std::int64_t most_;              // of a batch, to a multiple of 256 bytes
};

}  // namespace

template <class E>
DeviceRunnerPtr<E> tensor_exchange(const LayerGeometry& g) {
  return std::make_unique<TensorExchangeRunner<E>>(g);
}
template DeviceRunnerPtr<float> tensor_exchange<float>(const LayerGeometry&);
template DeviceRunnerPtr<Bf16> tensor_exchange<Bf16>(const LayerGeometry&);
template DeviceRunnerPtr<Half> tensor_exchange<Half>(const LayerGeometry&);

}  // namespace reckon::cuda::run
