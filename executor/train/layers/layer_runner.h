#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "executor/train/layers/layer_part.h"
#include "executor/train/parallel/rank_model.h"
#include "executor/train/workers.h"
#include "sim/model/graph.h"

// How one layer of a graph is run on a CPU: one class for each kind, in run_*.cpp.
//
// Inside the runtime every tensor is a matrix of rows of features: a token is a row, and so is a
// point of an image, (B, H, W, C). A catalogue's (C, H, W) is turned at the input and where Flatten
// makes a row of an image; weights keep the shapes of sim/model/graph.h.
namespace reckon {

class ExpertTraffic;  // executor/train/layers/expert_traffic.h

/// Sizes of a layer for one batch.
struct LayerGeometry {
  std::int64_t batch = 1;
  std::vector<Shape> inputs;  // of one sample
  Shape output;               // of one sample
  LayerPart part = {};        // of several ranks' layer
  ExpertTraffic* traffic =
      nullptr;  // of the mixture of experts that it belongs to; null: one rank's
};
LayerGeometry geometry_of(const ModelGraph& model, const Layer& layer, std::int64_t batch);
LayerGeometry geometry_of(const RankModel& model, const RankLayer& layer, std::int64_t batch);
/// Features of a sample's tensor: C of (C, H, W), D of (T, D), n of (n).
inline std::int64_t features_of(const Shape& shape) {
  return shape.size() == 3 ? shape.front() : shape.back();
}
/// Rows of a sample's tensor: H * W, T, 1.
inline std::int64_t rows_of(const Shape& shape) { return elements(shape) / features_of(shape); }

/// What is the same for all layers of a pass.
struct PassState {
  Workers* workers = nullptr;
  ModelGroups groups = {};   // of ranks that share a model
  bool training = true;      // dropout and batch statistics
  bool recomputing = false;  // the second forward of a layer: running statistics stay
  std::uint64_t seed = 1;
  std::int64_t step = 0;          // of the optimizer
  std::int64_t first_sample = 0;  // of this batch in the whole step's: decides the dropout masks
  std::span<const std::int32_t> masked;  // SelectTokens: (B, count) positions, or empty
  std::span<const float> target;         // of the loss in work: (B, ...)
  std::span<const float> record;         // of the InputLayer in work: (B, shape)
};

/// The memory that a layer works on; all pointers are set before a pass and stay.
template <class T>
struct LayerMemory {
  std::vector<const T*> inputs;  // (B, rows, features) each
  T* output = nullptr;
  const T* weight = nullptr;  // tied: the owner's
  const T* bias = nullptr;
  // Backward.
  const T* output_gradient = nullptr;
  std::vector<T*> input_gradients;  // null: nothing before it is trained
  std::vector<char> accumulate;     // by input: add to what another consumer has written
  T* weight_gradient = nullptr;     // added to; null: frozen
  T* bias_gradient = nullptr;
  T* scratch = nullptr;  // scratch_elements()
};

template <class T>
class LayerRunner {
 public:
  virtual ~LayerRunner() = default;
  /// From now on passes are over so many samples: at least one, at most those of its geometry.
  virtual void set_batch(std::int64_t samples) = 0;
  virtual void forward(const LayerMemory<T>& memory, const PassState& pass) = 0;
  /// Called once for each forward, with the same inputs.
  virtual void backward(const LayerMemory<T>& memory, const PassState& pass) = 0;
  /// Memory that it wants during a pass, shared with all other layers.
  virtual std::int64_t scratch_elements(int /*workers*/) const { return 0; }
  /// What is neither a parameter nor made anew each step: running mean and variance.
  virtual std::span<T> running_statistics() { return {}; }
};

template <class T>
using RunnerPtr = std::unique_ptr<LayerRunner<T>>;

/// One function a kind; each in the run_*.cpp that names it.
template <class T>
RunnerPtr<T> make_runner(const Layer& layer, const LayerGeometry& geometry);

/// Elementwise work is cut into pieces of so many elements: four pages of floats.
inline constexpr std::int64_t kPiece = 4096;

template <class T>
void put(T& to, bool accumulate, T value) {
  to = accumulate ? to + value : value;
}

/// sums[j] += sum over rows of values[row][j]: the gradient of a bias. In the order of the rows.
template <class T>
void add_column_sums(Workers& workers, const T* values, std::int64_t rows, std::int64_t columns,
                     T* sums);

}  // namespace reckon
