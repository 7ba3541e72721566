#include <algorithm>

#include "executor/train/layers/factories.h"
#include "executor/train/products/matrix.h"

// y = x W^T + b along the last axis.
namespace reckon::run {
namespace {

template <class T>
class LinearRunner : public LayerRunner<T> {
 public:
  LinearRunner(const Linear& op, const Geometry& g)
      : in_(op.in),
        out_(op.out),
        rows_each_(rows_of(g.output)),
        rows_(g.batch * rows_each_),
        adds_bias_(g.part.adds_bias) {}

  void set_batch(std::int64_t samples) override { rows_ = samples * rows_each_; }
  void forward(const LayerMemory<T>& m, const PassState& pass) override {
    reckon::multiply<T>(*pass.workers, {rows_, out_, in_}, {m.inputs[0], in_},
                        {m.weight, in_, true}, m.output, out_, false);
    if (m.bias == nullptr || !adds_bias_) return;
    pass.workers->run_pieces(rows_, piece_rows(), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        T* y = m.output + r * out_;
        for (std::int64_t j = 0; j < out_; ++j) y[j] += m.bias[j];
      }
    });
  }

  void backward(const LayerMemory<T>& m, const PassState& pass) override {
    Workers& workers = *pass.workers;
    const MatrixView<T> dy{m.output_gradient, out_};
    if (m.weight_gradient != nullptr)
      reckon::multiply<T>(workers, {out_, in_, rows_}, {dy.data, out_, true}, {m.inputs[0], in_},
                          m.weight_gradient, in_, true);
    if (m.bias_gradient != nullptr)
      add_column_sums(workers, m.output_gradient, rows_, out_, m.bias_gradient);
    if (m.input_gradients[0] != nullptr)
      reckon::multiply<T>(workers, {rows_, in_, out_}, dy, {m.weight, in_}, m.input_gradients[0],
                          in_, m.accumulate[0] != 0);
  }

 private:
  std::int64_t piece_rows() const { return std::max<std::int64_t>(1, 4 * kPiece / out_); }
  std::int64_t in_, out_, rows_each_, rows_;  // rows of a sample, of the batch
  bool adds_bias_;
};

}  // namespace

template <class T>
Made<T> linear(const Linear& op, const Geometry& g) {
  return std::make_unique<LinearRunner<T>>(op, g);
}
template Made<float> linear<float>(const Linear&, const Geometry&);
template Made<double> linear<double>(const Linear&, const Geometry&);

}  // namespace reckon::run
