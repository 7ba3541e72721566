#pragma once
#include <optional>
#include <vector>

#include "executor/comm/gradient_scaling.h"
#include "executor/comm/work_queue.h"
#include "executor/comm/zero_exchange.h"

namespace reckon {

/// The parts of blocks that a rank has, wherever their memory is: what ZeroSteps asks of them.
class ZeroParts {
 public:
  virtual ~ZeroParts() = default;

  // By the thread of ZeroSteps, one after the other; done when they return.
  /// Stage 1: the sum of the block's gradients into this rank's part of the whole ones; 2 and 3:
  /// onto its part of the step's.
  virtual void reduce(std::size_t block) = 0;
  /// Stage 3: everybody's parts of all of the block's parameters, into the whole values.
  virtual void gather_whole(std::size_t block) = 0;

  // By the caller of ZeroSteps, while that thread rests; done when they return.
  /// Sum of squares of the gradients whose norm this rank has to count.
  virtual double own_squares() = 0;
  /// This rank's part; `updates`: before this one.
  virtual void update(std::size_t block, std::int64_t updates, double learning_rate,
                      double gradient_scale) = 0;
  /// Stages 2 and 3: of this rank's part of the step's.
  virtual void clear_gradients(std::size_t block) = 0;
  /// Stages 1 and 2, behind update() of the same block: everybody's parts into the whole values.
  virtual void gather_updated(std::size_t block) = 0;
};

/// The order in which ZeRO's stages do things, ZeroExchange says which, for parts in the memory of
/// a CPU or of a device.
class ZeroSteps {
 public:
  /// `trained`: by block, its trained elements as gradient_ready() counts them. `ranks`: all that
  /// share blocks, for the norm. All arguments must outlive it, and it goes before `parts` do.
  ZeroSteps(ZeroParts& parts, const ZeroOptions& options, Communicator& ranks,
            std::vector<std::size_t> trained);

  void scaled_by(double scale, std::int64_t skipped) { scaling_ = {scale, skipped}; }
  void begin_backward();
  ExchangeWaits take_waited() { return std::exchange(waited_, {}); }
  /// Gradients of so many of the block's elements are final, in this pass. True: of all of them,
  /// and all_ready() is to be called.
  bool gradients_ready(std::size_t block, std::size_t count);
  void all_ready(std::size_t block);
  ExchangeTimes finish_step(std::int64_t step, double learning_rate);
  /// What was gathered since the last step is none's.
  void forget_passes();

  void prefetch(std::size_t block);
  void wait_for(std::size_t block) { waited_.parameters += queue_.wait(blocks_[block].gather); }
  /// Until the thread rests.
  Seconds wait_for_all() { return queue_.wait_for_all(); }
  /// By that thread, before what it is asked for later.
  void run(std::function<void()> work) { queue_.push(std::move(work)); }
  /// By whoever sends.
  void note_sent(Bytes sent) { sent_ += sent; }

 private:
  struct Block {
    std::size_t trained = 0;
    std::size_t ready = 0;    // of its gradients, in this pass
    std::int64_t gather = 0;  // the work queue's ticket
  };
  std::optional<double> clip() const;

  ZeroParts& parts_;
  const ZeroOptions& options_;
  Communicator& ranks_;
  GradientScaling scaling_;
  std::vector<Block> blocks_;
  std::vector<std::size_t> waiting_;  // without overlap: for the end of the backward pass
  std::int64_t reduction_ = 0;        // the last one's ticket
  ExchangeWaits waited_;
  Bytes sent_{};     // the work queue's, until it is waited for
  WorkQueue queue_;  // last: it uses all others
};

}  // namespace reckon
