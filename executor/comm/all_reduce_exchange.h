#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/comm/gradient_exchange.h"
#include "kernels/optimizer/optimizer.h"

namespace reckon {

struct AllReduceOptions {
  OptimizerRule optimizer;
  std::vector<TrainedRange> trained;  // of the flat buffer; others keep their values
  double clip_norm = 0;               // L2 norm of the global gradient at most; 0: no clipping
  bool overlap = true;                // with the backward pass; else all of it after
  /// Sum of squares of the gradients of this rank's part of the network -> of all of it; empty: it
  /// is all.
  std::function<double(double)> squares_of_all = {};
  /// Whose squares are this rank's, where others have the same gradients; nothing: all `trained`.
  std::optional<std::vector<TrainedRange>> counted = std::nullopt;
  /// Parameters of experts that ranks share out, whose replicas are fewer: the ranks of
  /// `expert_replicas`, which must outlive the exchange and is used as the communicator is.
  std::vector<ParameterRange> of_experts = {};
  Communicator* expert_replicas = nullptr;
  /// Of a job that goes on from the memory of its ranks, which hold different parts: called when
  /// this rank has its sums and before it updates anything, it returns when all ranks have called
  /// it, or throws CommError. Empty: each rank holds everything, or a loss is answered otherwise.
  std::function<void()> before_update = {};
};

/// Data parallelism: gradients are summed over all ranks in buckets (BucketRule), each as soon as
/// it is full, by a thread of its own; then every rank takes the same optimizer step. For one world
/// size the parameters after any number of steps are the same bits on every rank, every time, with
/// and without overlap. One rank: the optimizer step alone (`single`).
std::unique_ptr<GradientExchange> make_all_reduce_exchange(Communicator& communicator,
                                                           AllReduceOptions options);

}  // namespace reckon
