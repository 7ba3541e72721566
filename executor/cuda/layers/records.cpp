#include "executor/cuda/layers/runner.h"
#include "kernels/copy_columns.h"
#include "kernels/pairwise_dots.h"
#include "sim/base/check.h"

// Layers of records: some of their fields, vectors beside each other, products of all pairs.
namespace reckon::cuda::run {
namespace {

template <class E>
class SelectFeaturesRunner : public DeviceRunner<E> {
 public:
  SelectFeaturesRunner(const SelectFeatures& op, const LayerGeometry& g)
      : op_(op), batch_(g.batch), width_(g.inputs[0][0]) {}
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::copy_columns<E>(batch_, op_.count, {m.inputs[0], op_.first, width_},
                               {m.output, 0, op_.count}, false, pass.stream),
          "fields");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    E* dx = m.input_gradients[0];
    if (dx == nullptr) return;
    if (m.accumulate[0] == 0)
      check(cudaMemsetAsync(dx, 0, static_cast<std::size_t>(batch_ * width_) * sizeof(E),
                            pass.stream),
            "gradient of fields");
    check(gpu::copy_columns<E>(batch_, op_.count, {m.output_gradient, 0, op_.count},
                               {dx, op_.first, width_}, true, pass.stream),
          "gradient of fields");
  }

 private:
  SelectFeatures op_;
  std::int64_t batch_, width_;
};

template <class E>
class ConcatRunner : public DeviceRunner<E> {
 public:
  explicit ConcatRunner(const LayerGeometry& g)
      : rows_(g.batch * rows_of(g.output)), width_(features_of(g.output)) {
    for (const Shape& shape : g.inputs) widths_.push_back(features_of(shape));
  }
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    std::int64_t first = 0;
    for (std::size_t k = 0; k < widths_.size(); first += widths_[k++])
      check(gpu::copy_columns<E>(rows_, widths_[k], {m.inputs[k], 0, widths_[k]},
                                 {m.output, first, width_}, false, pass.stream),
            "features beside each other");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    std::int64_t first = 0;
    for (std::size_t k = 0; k < widths_.size(); first += widths_[k++])
      if (E* dx = m.input_gradients[k])
        check(gpu::copy_columns<E>(rows_, widths_[k], {m.output_gradient, first, width_},
                                   {dx, 0, widths_[k]}, m.accumulate[k] != 0, pass.stream),
              "gradient of features beside each other");
  }

 private:
  std::int64_t rows_, width_;
  std::vector<std::int64_t> widths_;
};

template <class E>
class PairwiseDotsRunner : public DeviceRunner<E> {
 public:
  PairwiseDotsRunner(const PairwiseDots& op, const LayerGeometry& g)
      : shape_{.batch = g.batch, .vectors = op.vectors, .width = op.width} {
    RECKON_CHECK(op.vectors <= gpu::kMostVectors);
  }
  void forward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    check(gpu::pairwise_dots(shape_, inputs(m), m.output, pass.stream), "dot products");
  }
  void backward(const DeviceLayerMemory<E>& m, const DevicePass& pass) override {
    gpu::VectorsOfPairs<E> gradients;
    std::uint64_t accumulate = 0;
    for (std::size_t k = 0; k < m.input_gradients.size(); ++k) {
      gradients.at[k] = m.input_gradients[k];
      if (m.accumulate[k] != 0) accumulate |= std::uint64_t{1} << k;
    }
    check(gpu::pairwise_dots_gradient(shape_, inputs(m), m.output_gradient, gradients, accumulate,
                                      pass.stream),
          "gradient of dot products");
  }

 private:
  static gpu::VectorsOfPairs<const E> inputs(const DeviceLayerMemory<E>& m) {
    gpu::VectorsOfPairs<const E> vectors;
    for (std::size_t k = 0; k < m.inputs.size(); ++k) vectors.at[k] = m.inputs[k];
    return vectors;
  }
  gpu::PairShape shape_;
};

}  // namespace

template <class E>
DeviceRunnerPtr<E> select_features(const SelectFeatures& op, const LayerGeometry& g) {
  return std::make_unique<SelectFeaturesRunner<E>>(op, g);
}
template <class E>
DeviceRunnerPtr<E> concat(const LayerGeometry& g) {
  return std::make_unique<ConcatRunner<E>>(g);
}
template <class E>
DeviceRunnerPtr<E> pairwise_dots(const PairwiseDots& op, const LayerGeometry& g) {
  return std::make_unique<PairwiseDotsRunner<E>>(op, g);
}

#define RECKON_RUN_RECORDS_FOR(E)                                                              \
  template DeviceRunnerPtr<E> select_features<E>(const SelectFeatures&, const LayerGeometry&); \
  template DeviceRunnerPtr<E> concat<E>(const LayerGeometry&);                                 \
  template DeviceRunnerPtr<E> pairwise_dots<E>(const PairwiseDots&, const LayerGeometry&)
RECKON_RUN_RECORDS_FOR(float);
RECKON_RUN_RECORDS_FOR(Bf16);
RECKON_RUN_RECORDS_FOR(Half);

}  // namespace reckon::cuda::run
