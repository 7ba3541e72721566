#pragma once
#include "sim/model/graph.h"
#include "sim/scenario/plan.h"

namespace reckon {

/// What the rules below need of a network's trainable weights; counts of numbers.
struct TrainableShapes {
  double parameters = 0;     // of the whole network
  double factored = 0;       // rows and columns of each matrix, and all of vectors (Adafactor)
  double in_matrices = 0;    // in matrices inside the network: no tables, not the output's
  double newton_schulz = 0;  // FLOPs of five iterations over each of these
  double newton_schulz_moved = 0;  // numbers that they read and write
};
TrainableShapes trainable_shapes(const ModelGraph& model);

/// For one trainable parameter, on average.
struct OptimizerCost {
  Bytes state{};              // kept beside the weights
  double gradient_reads = 0;  // a count, beyond the one of every update
  Bytes traffic{};            // besides
  Flops flops{};              // of products
};
/// n x m a matrix, n <= m.
///  - sgd: a momentum in fp32, 4 bytes. adamw: two moments, 8.
///  - adamw_8bit: two moments of a byte, each with a constant of 4 bytes for each block of 2,048
///    [Dettmers 2022, "8-bit Optimizers via Block-wise Quantization", arXiv:2110.02861, section
///    2.1]. The small tensors that implementations keep in 32 bits are not told apart.
///  - lion: one momentum in fp32 [Chen 2023, "Symbolic Discovery of Optimization Algorithms",
///    arXiv:2302.06675, algorithm 2].
///  - adafactor: row and column sums of the squared gradient, no first moment [Shazeer & Stern
///  2018,
///    arXiv:1804.04235, algorithm 4]: 4 (n + m) bytes a matrix; reads the gradient twice more, for
///    the sums and for the update's size.
///  - muon: a momentum in fp32 for matrices inside the network, AdamW for all else [Jordan 2024,
///    kellerjordan.github.io/posts/muon; Liu 2025, "Muon is Scalable for LLM Training",
///    arXiv:2502.16982, section 2]. Five Newton-Schulz iterations, each X X^T, its square, and
///    their sum times X: 4 n n m + 2 n n n FLOPs, in 16 bits. Each rank makes those of the
///    parameters that it updates: where the optimizer's state is sharded, a share of them.
OptimizerCost optimizer_cost(const TrainableShapes& shapes, Optimizer optimizer);
OptimizerCost optimizer_cost(const ModelGraph& model, Optimizer optimizer);

}  // namespace reckon
