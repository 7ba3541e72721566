#include <algorithm>

#include "executor/train/layers/factories.h"
#include "executor/train/parallel/group_exchange.h"
#include "sim/base/check.h"

// What tensor ranks exchange between two layers (layer_part.h).
namespace reckon::run {
namespace {

/// Whole tensors are the same bits on every rank, because sums are.
template <class T>
class TensorExchangeRunner : public LayerRunner<T> {
 public:
  explicit TensorExchangeRunner(const Geometry& g)
      : kind_(g.part.exchange),
        batch_(g.batch),
        in_(elements(g.inputs[0])),
        out_(elements(g.output)) {}

  void set_batch(std::int64_t samples) override { batch_ = samples; }
  /// Two whole tensors: one in the order of the ranks, and what is received of one.
  std::int64_t scratch_elements(int /*workers*/) const override {
    return 2 * batch_ * std::max(in_, out_);
  }

  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    Communicator& group = *pass.groups.tensor;
    switch (kind_) {
      case TensorExchange::copy:
        return copy(m.inputs[0], m.output, in_);
      case TensorExchange::sum:
        copy(m.inputs[0], m.output, in_);
        return group.all_reduce(std::span<T>(m.output, count(out_)));
      case TensorExchange::gather:
      case TensorExchange::collect:
        return gather(group, m.inputs[0], m.output, in_, m.scratch);
      case TensorExchange::scatter:
        return scatter(group, m.inputs[0], m.output, out_, m.scratch);
      case TensorExchange::share:
        return own(group, m.inputs[0], m.output, out_);
      case TensorExchange::none:
        break;
    }
    RECKON_CHECK(false);
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    if (m.input_gradients[0] == nullptr) return;
    Communicator& group = *pass.groups.tensor;
    const bool adds = m.accumulate[0] != 0;
    T* to = adds ? m.scratch + batch_ * std::max(in_, out_) : m.input_gradients[0];
    const T* dy = m.output_gradient;
    switch (kind_) {
      case TensorExchange::sum:
        copy(dy, to, out_);
        break;
      case TensorExchange::copy:
        copy(dy, to, in_);
        group.all_reduce(std::span<T>(to, count(in_)));
        break;
      case TensorExchange::gather:
        scatter(group, dy, to, in_, m.scratch);
        break;
      case TensorExchange::scatter:
      case TensorExchange::share:
        gather(group, dy, to, out_, m.scratch);
        break;
      case TensorExchange::collect:
        own(group, dy, to, in_);
        break;
      case TensorExchange::none:
        RECKON_CHECK(false);
    }
    if (!adds) return;
    for (std::int64_t i = 0; i < batch_ * in_; ++i) m.input_gradients[0][i] += to[i];
  }

 private:
  std::size_t count(std::int64_t size) const { return static_cast<std::size_t>(batch_ * size); }
  void copy(const T* from, T* to, std::int64_t size) const { std::copy_n(from, batch_ * size, to); }

  /// (B, size) of each rank -> (B, ranks, size): each sample's tokens in the order of the ranks.
  void gather(Communicator& group, const T* mine, T* all, std::int64_t size, T* scratch) const {
    T* by_rank = batch_ == 1 ? all : scratch;
    all_gather_in<T>(group, {mine, count(size)},
                     {by_rank, count(size) * static_cast<std::size_t>(group.size())});
    if (batch_ > 1) turn(by_rank, all, group.size(), batch_, size);
  }
  /// The sum over ranks of (B, ranks, size): (B, size) of this rank's tokens.
  void scatter(Communicator& group, const T* all, T* mine, std::int64_t size, T* scratch) const {
    turn(all, scratch, batch_, group.size(), size);
    reduce_scatter_in(group,
                      std::span<T>(scratch, count(size) * static_cast<std::size_t>(group.size())),
                      std::span<T>(mine, count(size)));
  }
  void own(const Communicator& group, const T* all, T* mine, std::int64_t size) const {
    for (std::int64_t b = 0; b < batch_; ++b)
      std::copy_n(all + (b * group.size() + group.rank()) * size, size, mine + b * size);
  }
  /// (outer, inner, size) -> (inner, outer, size)
  static void turn(const T* from, T* to, std::int64_t outer, std::int64_t inner,
                   std::int64_t size) {
    for (std::int64_t o = 0; o < outer; ++o)
      for (std::int64_t i = 0; i < inner; ++i)
        std::copy_n(from + (o * inner + i) * size, size, to + (i * outer + o) * size);
  }

  TensorExchange kind_;
  std::int64_t batch_, in_, out_;  // elements of a sample
};

}  // namespace

template <class T>
Made<T> tensor_exchange(const Geometry& g) {
  return std::make_unique<TensorExchangeRunner<T>>(g);
}
template Made<float> tensor_exchange<float>(const Geometry&);
template Made<double> tensor_exchange<double>(const Geometry&);

}  // namespace reckon::run
