#pragma once
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/comm/gradient_exchange.h"

namespace reckon {

/// A worker of several ranks as its parameter servers see it: one. Its ranks add up their
/// gradients, each range as soon as it is final, behind the backward pass; the first of them has
/// `servers`, an exchange with the servers, hands the sums to it and gives the others the new
/// values. The ranks of a worker take the same steps. `worker`: they alone, used by a thread of
/// this exchange; it and all ranks' exchanges are made and used alike. `servers`: null on all but
/// rank 0; it does not pull rows. Sums are in the order that `worker` has. `in_lockstep`: all ranks
/// of the job take the same steps, and then all ask for the optimizer's state together; else rank 0
/// alone does. Throws what both throw.
std::unique_ptr<GradientExchange> make_worker_exchange(Communicator& worker,
                                                       std::unique_ptr<GradientExchange> servers,
                                                       bool in_lockstep);

/// What the rank that talks to the servers alone learns of a step, for the others.
class StepOfWorker {
 public:
  /// Collective over the ranks of a worker; `servers`: null on all but rank 0.
  void tell(Communicator& worker, const GradientExchange* servers, ExchangeTimes& times);
  std::optional<std::int64_t> stop_step() const { return stop_step_; }

 private:
  std::optional<std::int64_t> stop_step_;
};

/// Rank 0's buffers on all ranks, `own` where they are kept there. Collective.
std::vector<std::span<float>> share_buffers(Communicator& worker,
                                            const std::vector<std::span<float>>& of_first,
                                            std::vector<std::vector<float>>& own);

}  // namespace reckon
