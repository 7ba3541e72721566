#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kernels/optimizer/optimizer.h"
#include "sim/model/graph.h"
#include "sim/scenario/layout.h"

// A small training under any layout without a pipeline, each rank a thread, and what all ranks hold
// together afterwards.
namespace reckon::test {

/// Whole tensors by name.
template <class T>
using Tensors = std::map<std::string, std::vector<T>>;

struct ParallelTask {
  const ModelGraph* model = nullptr;
  std::int64_t batch = 8;  // samples of a step, of all copies
  Recompute recompute = Recompute::none;
  std::uint64_t seed = 4;
};

/// Loss and gradients of one pass in double, of parameters far from zero.
struct ParallelPass {
  double loss = 0;
  Tensors<double> gradients;
};
/// A parameter that is moved before the pass, on all ranks that have it.
struct MovedParameter {
  std::string tensor;
  std::size_t element = 0;
  double by = 0;
};
ParallelPass pass_of(const ParallelTask& task, const Layout& layout,
                     const MovedParameter& moved = {});

struct ParallelTraining {
  std::vector<double> losses;
  Tensors<float> parameters;
  friend bool operator==(const ParallelTraining&, const ParallelTraining&) = default;
};
struct StepSettings {
  OptimizerRule rule = SgdMomentum{.momentum = 0.9F, .weight_decay = 0.01F};
  double learning_rate = 0.05, clip_norm = 0;
  std::int64_t steps = 10, micro_batches = 1;
};
/// From the first weights that one rank draws. Ranks that hold the same element of a parameter must
/// have the same bits of it: else std::runtime_error.
ParallelTraining train_under(const ParallelTask& task, const Layout& layout,
                             const StepSettings& optimizer);

/// "tensor 2, tokens shared": the degrees that are not one.
std::string text_of(const Layout& layout);

/// Largest difference of two tensors' elements, relative to the largest element of `exact`'s tensor
/// or `least`, whichever is more, over all tensors; they have the same names and sizes.
template <class T>
double largest_error(const Tensors<T>& got, const Tensors<T>& exact, double least);

/// One pass in double, against one rank's: what is wrong cannot hide behind rounding. The longest
/// sums (a loss over tokens and classes, a matrix' gradient over the tokens of the batch) have less
/// than 4 * 16 * 61 terms, each rounded to 1.1e-16, and pass through two blocks: an order of the
/// sums changes less than 1e-11 of a tensor's largest gradient. Some are zero but for rounding (a
/// bias of keys), so at least 1e-3, which others reach.
void check_pass(const ModelGraph& model, const Layout& layout,
                Recompute recompute = Recompute::none);

/// The gradients of a pass against central differences of the loss that its ranks have together, a
/// few elements of each tensor.
void check_slopes(const ModelGraph& model, const Layout& layout);

/// Ten steps in float, against one rank's, and twice the same bits. A step adds its rounding, 6e-8
/// of sums of at most 4 * 16 terms a sample and of eight ranks' parts, to the parameters' through
/// the gradient: 1e-5 of the loss is 16 times what ten steps of a hundred roundings that all point
/// the same way make. `parameters`: of a tensor's largest number.
void check_training(const ModelGraph& model, const Layout& layout, const StepSettings& settings,
                    double parameters);
inline const StepSettings kSgd{.learning_rate = 0.1, .clip_norm = 0.5};
/// AdamW divides by a gradient's own size: where one is all rounding it moves by the learning rate
/// whatever its sign, ten times 1e-3 at most, which is kAdamWBound of the 0.5 or so that tensors
/// reach.
inline const StepSettings kAdamW{
    .rule = AdamW{.beta1 = 0.9F, .beta2 = 0.999F, .epsilon = 1e-8F, .weight_decay = 0.01F},
    .learning_rate = 1e-3,
    .clip_norm = 1};
inline constexpr double kSgdBound = 1e-4, kAdamWBound = 2e-2;

}  // namespace reckon::test
