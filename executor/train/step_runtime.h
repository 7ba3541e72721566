#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "executor/comm/gradient_exchange.h"
#include "executor/comm/metered_communicator.h"
#include "executor/train/graph_runtime.h"

// What the training loop needs of whatever computes: a CPU, or a device with memory of its own.
namespace reckon {

/// A step's passes of micro-batches, as the training loop asks for them.
struct StepPasses {
  std::int64_t count = 1;  // micro-batches
  double scale = 1;        // factor on each one's loss
  /// Behind them, of exchanges in every pass: so many more of the last micro-batch, of scale 0.
  std::int64_t idle = 0;
  bool exchanged_every_pass = false;
  std::function<BatchView()> load;  // the next micro-batch; until the next call
  std::function<StepPosition(std::int64_t micro_batch)> position;
  std::function<void()> begin_backward;  // before each backward pass
  /// Of the gradients of the last micro-batch, or of every one's.
  std::function<void(ParameterRange)> ready;
  std::function<ExchangeWaits()> take_waited;  // for the exchange, within passes
  std::function<void(double loss)> check;      // of a micro-batch; throws where it is no number
};

/// What they took. None of the times is in another.
struct PassTimes {
  /// Mean of the micro-batches'. Of a pipeline its last stage has it, times the stages, the others
  /// have 0: so the mean over all ranks is that of all samples.
  double loss = 0;
  Seconds data_wait{}, forward{}, backward{};
  ExchangeWaits waited;       // for the exchange
  ModelExchanges exchanging;  // with ranks that share the model
  Seconds sending{};          // to other stages of the pipeline: what this thread does
  Seconds bubble{};           // for messages of other stages, their way among it
  Bytes sent{};               // in `exchanging` and `sending`

  /// Adds what passes exchanged; its time.
  Seconds add(const ModelExchanges& more) {
    const auto both = [](CommunicationTaken& to, const CommunicationTaken& from) {
      to.time += from.time;
      to.sent += from.sent;
    };
    both(exchanging.tensor, more.tensor);
    both(exchanging.context, more.context);
    both(exchanging.expert, more.expert);
    sent += more.all().sent;
    return more.all().time;
  }
};

class StepRuntime {
 public:
  virtual ~StepRuntime() = default;
  /// Of values(), and of checkpoints.
  virtual const ParameterLayout& layout() const = 0;

  /// Parameters and gradients where they are computed with, in the order that the exchange sees;
  /// on a device they are its memory, and padding may lie between them. For the exchange alone.
  virtual ParameterView exchanged() = 0;

  /// Before the first pass of a step: the parameters are those of the exchange, gradients zero.
  virtual void begin_step() = 0;
  /// As GraphRuntime's.
  /// The loss; mean over the samples.
  virtual double forward(const BatchView& batch, StepPosition position, bool training) = 0;
  /// `scale`: factor on the loss.
  virtual void backward(double scale, const std::function<void(ParameterRange)>& ready) = 0;

  /// What passes since the last call took of exchanges with ranks that share the model; the times
  /// of forward() and backward() have it in them.
  virtual ModelExchanges take_exchanged() { return {}; }

  /// begin_step(), and then a step's passes: here a forward and a backward pass of each
  /// micro-batch.
  virtual PassTimes run_passes(const StepPasses& passes);

  /// Passes without a gradient, of micro-batches that nothing is learned from: PassTimes::loss.
  /// Of a pipeline their count is a multiple of passes_together().
  virtual double evaluate(const StepPasses& passes);
  virtual std::int64_t passes_together() const { return 1; }

  /// The parameters, layout().count, and the statistics, on the host. Between to_host() and the
  /// next step they are the current ones; to_device() makes what was written there current.
  virtual std::span<float> values() = 0;
  virtual std::vector<RunningStatistics<float>> running_statistics() = 0;
  virtual void to_host() = 0;
  virtual void to_device() = 0;

  virtual Bytes activation_memory() const = 0;

  /// Batches will come from this memory for as long as the answer lives: what copies them
  /// elsewhere may pin it.
  virtual std::shared_ptr<void> keep_in_place(std::vector<std::span<float>> /*memory*/) {
    return nullptr;
  }
};

/// GraphRuntime<float> and its buffers. `model` and `workers` must outlive it.
std::unique_ptr<StepRuntime> make_cpu_runtime(const ModelGraph& model, RuntimeOptions options,
                                              Workers& workers);

}  // namespace reckon
