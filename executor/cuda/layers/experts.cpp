#include <algorithm>

#include "executor/cuda/layers/expert_route.h"
#include "executor/cuda/layers/runner.h"
#include "kernels/elementwise.h"

// A mixture of experts, as executor/train/layers/expert_parallel.cpp has it for CPUs, on one rank
// too: rows in the order of experts over the whole batch, so that an expert's are one product.
// Where ranks share experts out, tensors of rows have room for those of all ranks; what is behind
// the arrived ones is zero.
namespace reckon::cuda::run {
namespace {

template <class E>
class RoutedRunner : public DeviceRunner<E> {
 protected:
  RoutedRunner(std::int64_t experts, std::int64_t top_k, const LayerGeometry& g, ExpertRoute* route)
      : shape_{.batch = g.batch, .tokens = g.inputs[1][0], .experts = experts, .top_k = top_k},
        shared_(g.part.experts.total > 0),
        route_(route != nullptr ? *route : own_),
        plans_(route == nullptr) {}

  /// The dispatch's is that of all layers that share a route.
  void plan(const DeviceLayerMemory<E>& m, const DevicePass& pass) {
    route_.plan(shape_, m.inputs[1], pass);
  }
  void plan_by_itself(const DeviceLayerMemory<E>& m, const DevicePass& pass) {
    if (plans_) plan(m, pass);
  }
  void clear_scores(const DeviceLayerMemory<E>& m, const DevicePass& pass) const {
    if (m.input_gradients[1] != nullptr && m.accumulate[1] == 0)
      clear(m.input_gradients[1], shape_.batch * shape_.tokens * shape_.experts, pass);
  }
  static void clear(E* from, std::int64_t count, const DevicePass& pass) {
    if (count == 0) return;
    check(cudaMemsetAsync(from, 0, static_cast<std::size_t>(count) * sizeof(E), pass.stream),
          "rows of experts");
  }
  /// Of `room` rows those behind the arrived ones.
  void clear_rest(E* rows, std::int64_t room, std::int64_t width, const DevicePass& pass) const {
    const std::int64_t filled = route_.traffic().arrived_rows();
    clear(rows + filled * width, (room - filled) * width, pass);
  }
  std::int64_t own_rows() const { return shape_.batch * shape_.tokens * shape_.top_k; }
  /// Elements of `rows` rows, to a multiple of 256 bytes.
  static std::int64_t whole_lines(std::int64_t rows, std::int64_t width) {
    return (rows * width + kLineElements - 1) / kLineElements * kLineElements;
  }

  const MixtureShape shape_;
  const bool shared_;  // by several ranks
  ExpertRoute own_;
  ExpertRoute& route_;
  const bool plans_;  // for itself
};

template <class E>
class DispatchRunner : public RoutedRunner<E> {
 public:
  DispatchRunner(const ExpertDispatch& op, const LayerGeometry& g, ExpertRoute* route)
      : RoutedRunner<E>(op.experts, op.top_k, g, route),
        room_(g.batch * g.output[0]),
        width_(g.output[1]),
        own_size_(this->whole_lines(this->own_rows(), width_)) {}
  /// Own rows, and those of others as they come.
  std::int64_t scratch_bytes() const override {
    return this->shared_ ? (own_size_ + room_ * width_) * static_cast<std::int64_t>(sizeof(E)) : 0;
  }

  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    this->plan(m, pass);
    const ExpertRoute& route = this->route_;
    E *own = reinterpret_cast<E*>(m.scratch), *moved = own + own_size_;
    check(gpu::dispatch_rows(route.rows(width_), m.inputs[0], this->shared_ ? own : m.output,
                             pass.stream),
          "rows of experts");
    if (!this->shared_) return;
    route.to_experts(width_, own, moved, m.output, pass);
    this->clear_rest(m.output, room_, width_, pass);
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    this->clear_scores(m, pass);
    if (m.input_gradients[0] == nullptr) return;
    const ExpertRoute& route = this->route_;
    const E* slopes = m.output_gradient;
    if (this->shared_) {
      E *own = reinterpret_cast<E*>(m.scratch), *moved = own + own_size_;
      route.from_experts(width_, slopes, moved, own, pass);
      slopes = own;
    }
    check(gpu::dispatch_rows_gradient(route.rows(width_), slopes, m.input_gradients[0],
                                      m.accumulate[0] != 0, pass.stream),
          "gradient of experts' rows");
  }

 private:
  std::int64_t room_, width_, own_size_;
};

template <class E>
class ExpertLinearRunner : public RoutedRunner<E> {
 public:
  ExpertLinearRunner(const ExpertLinear& op, const LayerGeometry& g, ExpertRoute* route)
      : RoutedRunner<E>(op.experts, op.top_k, g, route),
        in_(op.in),
        out_(op.out),
        room_(g.batch * g.output[0]),
        adds_bias_(g.part.adds_bias) {}
  std::int64_t scratch_bytes() const override {
    return gpu::bias_gradient_scratch(room_, out_) * static_cast<std::int64_t>(sizeof(float));
  }

  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    this->plan_by_itself(m, pass);
    for_experts([&](std::int64_t expert, std::int64_t first, std::int64_t count) {
      const E* bias = m.bias != nullptr && adds_bias_ ? m.bias + expert * out_ : nullptr;
      pass.products->multiply<E, E>({count, out_, in_}, {m.inputs[0] + first * in_, in_},
                                    {m.weight + expert * out_ * in_, in_, true},
                                    m.output + first * out_, out_, false, bias);
    });
    this->clear_rest(m.output, room_, out_, pass);
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    this->clear_scores(m, pass);
    E* dx = m.input_gradients[0];
    for_experts([&](std::int64_t expert, std::int64_t first, std::int64_t count) {
      const E *dy = m.output_gradient + first * out_, *x = m.inputs[0] + first * in_;
      const std::int64_t weights = expert * out_ * in_;
      if (m.weight_gradient != nullptr)
        pass.products->multiply<E, float>({out_, in_, count}, {dy, out_, true}, {x, in_},
                                          m.weight_gradient + weights, in_, true);
      if (m.bias_gradient != nullptr)
        check(gpu::bias_gradient(dy, count, out_, m.bias_gradient + expert * out_,
                                 reinterpret_cast<float*>(m.scratch), pass.stream),
              "bias gradient");
      if (dx != nullptr)
        pass.products->multiply<E, E>({count, in_, out_}, {dy, out_}, {m.weight + weights, in_},
                                      dx + first * in_, in_, m.accumulate[0] != 0);
    });
    if (dx != nullptr && m.accumulate[0] == 0) this->clear_rest(dx, room_, in_, pass);
  }

 private:
  /// body(one of this rank's experts, first of its rows, how many)
  template <class Body>
  void for_experts(Body body) const {
    const ExpertTraffic& traffic = this->route_.traffic();
    std::int64_t first = 0;
    for (std::int64_t e = 0; e < traffic.own_experts(); ++e) {
      const std::int64_t count = traffic.arrived_rows(e);
      if (count > 0) body(e, first, count);
      first += count;
    }
  }
  std::int64_t in_, out_, room_;
  bool adds_bias_;  // of a sum over ranks one adds it
};

template <class E>
class CombineRunner : public RoutedRunner<E> {
 public:
  CombineRunner(const ExpertCombine& op, const LayerGeometry& g, ExpertRoute* route)
      : RoutedRunner<E>(op.experts, op.top_k, g, route),
        normalize_(op.normalize),
        room_(g.batch * g.inputs[0][0]),
        width_(g.output[1]),
        own_size_(this->whole_lines(this->own_rows(), width_)),
        room_size_(this->whole_lines(room_, width_)),
        weights_(this->own_rows()),
        slopes_(this->own_rows()) {
    if (this->shared_) returned_ = DeviceBuffer<E>(this->own_rows() * width_);
  }
  /// Own rows, those of others as they come, and what is added.
  std::int64_t scratch_bytes() const override {
    const std::int64_t size = own_size_ + 2 * room_size_;
    return this->shared_ ? size * static_cast<std::int64_t>(sizeof(E)) : 0;
  }

  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    this->plan_by_itself(m, pass);
    const ExpertRoute& route = this->route_;
    if (this->shared_)
      route.from_experts(width_, m.inputs[0], reinterpret_cast<E*>(m.scratch), returned_.data(),
                         pass);
    const gpu::ExpertRows rows = route.rows(width_);
    check(gpu::expert_weights(rows, normalize_, m.inputs[1], weights_.data(), pass.stream),
          "weights of experts");
    check(gpu::combine_rows(rows, weights_.data(), rows_of(m), m.output, pass.stream),
          "sum of experts");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    const gpu::ExpertRows rows = this->route_.rows(width_);
    E* dx = m.input_gradients[0];
    E* slopes = this->shared_ && dx != nullptr ? reinterpret_cast<E*>(m.scratch) : dx;
    const bool adds = dx != nullptr && m.accumulate[0] != 0;
    check(gpu::combine_rows_gradient(rows, weights_.data(), rows_of(m), m.output_gradient, slopes,
                                     adds && !this->shared_, slopes_.data(), pass.stream),
          "gradient of the sum of experts");
    if (m.input_gradients[1] != nullptr)
      check(gpu::expert_weights_gradient(rows, normalize_, m.inputs[1], slopes_.data(),
                                         m.input_gradients[1], m.accumulate[1] != 0, pass.stream),
            "gradient of experts' weights");
    if (this->shared_ && dx != nullptr) return_slopes(slopes, dx, adds, pass);
  }

 private:
  const E* rows_of(const DeviceLayerMemory<E>& m) const {
    return this->shared_ ? returned_.data() : m.inputs[0];
  }
  /// The rows' gradients to where their experts are.
  void return_slopes(E* slopes, E* dx, bool adds, const DevicePass& pass) {
    E *moved = slopes + own_size_, *to = adds ? moved + room_size_ : dx;
    this->route_.to_experts(width_, slopes, moved, to, pass);
    if (!adds) return this->clear_rest(dx, room_, width_, pass);
    const std::int64_t filled = this->route_.traffic().arrived_rows() * width_;
    check(gpu::add<E>(dx, to, dx, filled, pass.stream), "gradient of experts' rows");
  }

  bool normalize_;
  std::int64_t room_, width_, own_size_, room_size_;
  DeviceBuffer<float> weights_, slopes_;  // by slot
  DeviceBuffer<E> returned_;              // own rows, as the experts made them
};

}  // namespace

template <class E>
DeviceRunnerPtr<E> expert_dispatch(const ExpertDispatch& op, const LayerGeometry& g,
                                   ExpertRoute* route) {
  return std::make_unique<DispatchRunner<E>>(op, g, route);
}
template <class E>
DeviceRunnerPtr<E> expert_linear(const ExpertLinear& op, const LayerGeometry& g,
                                 ExpertRoute* route) {
  return std::make_unique<ExpertLinearRunner<E>>(op, g, route);
}
template <class E>
DeviceRunnerPtr<E> expert_combine(const ExpertCombine& op, const LayerGeometry& g,
                                  ExpertRoute* route) {
  return std::make_unique<CombineRunner<E>>(op, g, route);
}

#define RECKON_RUN_EXPERTS_FOR(E)                                                             \
  template DeviceRunnerPtr<E> expert_dispatch<E>(const ExpertDispatch&, const LayerGeometry&, \
                                                 ExpertRoute*);                               \
  template DeviceRunnerPtr<E> expert_linear<E>(const ExpertLinear&, const LayerGeometry&,     \
                                               ExpertRoute*);                                 \
  template DeviceRunnerPtr<E> expert_combine<E>(const ExpertCombine&, const LayerGeometry&,   \
                                                ExpertRoute*)
RECKON_RUN_EXPERTS_FOR(float);
RECKON_RUN_EXPERTS_FOR(Bf16);
RECKON_RUN_EXPERTS_FOR(Half);

}  // namespace reckon::cuda::run
