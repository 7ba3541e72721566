#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "executor/comm/gradient_exchange.h"
#include "executor/train/checkpoint/checkpoint_shard.h"
#include "executor/train/data/source.h"
#include "executor/train/loss_scale.h"
#include "executor/train/pulled_tables.h"
#include "executor/train/records/progress.h"
#include "executor/train/step_runtime.h"
#include "sim/measurement/measurements.h"
#include "sim/scenario/plan.h"

// The training loop of one rank: data, forward, backward, exchange, measurement, checkpoint, stop.
namespace reckon {

/// The run cannot go on and another start would not help: the loss is not a number.
struct TrainingError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// This rank's share of each step: samples [first_of_step, first_of_step + own) of global_batch.
struct RankShare {
  std::int64_t global_batch = 1, first_of_step = 0, own = 1;
  /// Passes beside its own that count for nothing: where all ranks exchange in every pass, those
  /// with fewer passes take part in the rest.
  std::int64_t idle_passes = 0;
  /// Of its mean loss in the mean over all ranks': not 1 where shares are unequal.
  double weight = 1;  // factor
  /// Of validation data, which shares in equal parts: this rank's, and how many there are.
  int part = 0, parts = 1;
};
/// `rank` of `workers` ranks with equal shares. Backup workers have shares too, beside the plan's
/// global batch. Where an elastic job has lost some, the global batch does not come out even: then
/// whole passes of `pass` samples (passes_of_copy(), sim/scenario/restart.h), equally many for
/// those that share experts out.
RankShare share_of(const PlannedWorkload& job, int rank, int workers, std::int64_t pass = 1);

struct TrainerOptions {
  RankShare share;
  std::int64_t micro_batch = 1;  // divides share.own; smaller: gradients are accumulated
  std::int64_t steps = 1;        // of the whole training
  std::uint64_t seed = 1;
  Recompute recompute = Recompute::none;
  PlannedOptimizer optimizer;           // its schedule
  std::size_t optimizer_buffers = 1;    // FlatOptimizer::state(): 2 of AdamW
  std::optional<LossScale> loss_scale;  // of fp16, as it begins
  int data_threads = 1;
  /// Where rows of embedding tables are pulled: this rank's state has the whole tables, too.
  bool keeps_tables = true;
  /// What evaluation passes read, and how many have been made after so many steps
  /// (evaluations_after() of the plan); nullptr: none are made. It must outlive the trainer.
  const DataSource* validation = nullptr;
  std::function<std::int64_t(std::int64_t steps_done)> evaluations;
};

/// One step as this rank saw it. Wall times; `seconds` is all of the step, the checkpoint included.
struct StepMeasurement {
  std::int64_t step = 0;
  std::int64_t samples = 0;  // of all ranks
  double loss = 0;           // mean over the samples of all ranks, before the update; of a pipeline
                             // see PassTimes::loss
  double learning_rate = 0;  // of this step, by the schedule
  double loss_scale = 1;     // of fp16: factor of this step; exchange.skipped: it was too large
  Seconds seconds{};         // since the end of the step before, less the save behind that
  Seconds data_wait{}, forward{}, backward{};
  Seconds checkpoint{};    // of the save behind this one; not known in TrainerHooks::record
  ExchangeTimes exchange;  // its `apply` is the optimizer
  StepWaits waits;         // of its exposed communication, and the bubble
  /// Of reading ahead, since the step before was measured; nullopt: the source does not say.
  std::optional<InputWork> input;
};

/// An evaluation pass: all validation samples, in whole batches of all ranks, so that the last
/// ones are filled up with samples that were there already.
struct EvaluationMeasurement {
  std::int64_t steps_done = 0;
  std::int64_t samples = 0, samples_of_all = 0;  // of this rank, of all ranks
  double loss = 0;                 // mean over this rank's; of a pipeline see PassTimes::loss
  std::optional<InputWork> input;  // of all passes; nullopt: the source does not say
  Seconds seconds{};
};

/// leave: an evaluation ends without a result. longer: as `goes_on`, and the next part has twice
/// the passes.
enum class EvaluationWord { goes_on, longer, leave };

/// All may be empty.
struct TrainerHooks {
  /// Loss of this rank's samples -> of all ranks'. Called by every rank, every step; its time is
  /// communication's.
  std::function<double(double)> mean_loss;
  /// Before `checkpoint`: a step that is saved has its record, whenever the process is killed.
  std::function<void(const StepMeasurement&)> record;
  std::function<void(const StepMeasurement&)> measured;  // behind it
  std::function<void(std::int64_t step, ProgressPhase)> progress;
  /// After each step, with the number of steps done: saves when it is time to.
  std::function<void(std::int64_t steps_done)> checkpoint;
  std::function<void(const EvaluationMeasurement&)> evaluated;
  /// Between parts of an evaluation, the last of which took so long on this rank: as all ranks that
  /// evaluate together must decide. Empty: it goes on.
  std::function<EvaluationWord(Seconds)> between_parts;
  /// Whether to end after `steps_done`: all ranks must decide the same.
  std::function<bool(std::int64_t steps_done)> stop;
};

class Trainer {
 public:
  /// Draws the first weights. All arguments must outlive it. cannot_run(model) must be empty.
  Trainer(const ModelGraph& model, TrainerOptions options, const DataSource& data,
          GradientExchange& exchange, Workers& workers);
  /// The same on any runtime, whose batch is options.micro_batch, and whose layout pulled_layout()
  /// of options.share.own where the exchange pulls rows. The exchange works on
  /// runtime->exchanged().
  Trainer(const ModelGraph& model, TrainerOptions options, const DataSource& data,
          GradientExchange& exchange, Workers& workers, std::unique_ptr<StepRuntime> runtime);

  /// Before start(): where a checkpoint of `steps_done` steps is to be read to, all of it, or this
  /// rank's slices. Data and dropout then go on at the exact sample.
  std::vector<RestoreTensor> restore(std::int64_t steps_done);
  /// After restore(), where ranks take steps of their own: this rank's.
  void go_on_from(std::int64_t steps_done) { steps_done_ = updates_done_ = steps_done; }
  /// After restore(), where the optimizer's state is not the checkpoint's but begins at zero: its
  /// updates are counted from here on (AdamW's bias correction). Not with parameter servers.
  void begin_optimizer();
  /// Steps before it began; of a checkpoint, after restore().
  std::int64_t optimizer_began() const { return optimizer_began_; }
  void set_optimizer_began(std::int64_t steps) { optimizer_began_ = steps; }
  /// Starts the exchange, so that every rank has the same values and goes on from the same step.
  /// `restores_optimizer`: this rank hands what it has restored to the exchange.
  void start(bool restores_optimizer = true);
  /// All that a resumed run needs beside steps_done(): what was trained, and of the optimizer what
  /// belongs to parameters that are; where state is cut over ranks, this rank's slices. Between
  /// steps, until the next. Throws TrainingError where a parameter is not finite.
  std::vector<StateTensor> state();
  /// Parameters and running statistics, by the same rules. Where state is cut over ranks: after
  /// GradientExchange::take_final_values().
  std::vector<StateTensor> trained();
  const DataSource& data() const { return data_; }
  bool evaluates() const { return options_.validation != nullptr; }
  std::int64_t steps_done() const { return steps_done_; }
  /// Optimizer steps that are in the parameters, also where a step failed: it is in them whole, or
  /// not at all, where their update takes no exchange (all-reduce).
  std::int64_t updates_done() const { return updates_done_; }
  /// Behind a step that failed: makes its update where other ranks may have made it. False: nobody
  /// has.
  bool make_up_update();
  /// Running statistics as they are, and as they were before the step that is under way (a failed
  /// one stays so; between steps: as they are). Valid until the next step.
  std::vector<StateTensor> statistics();
  std::vector<StateTensor> statistics_before_step();
  void set_statistic(const std::string& name, std::span<const std::byte> bytes);

  /// Trains until options.steps, or until `stop` says so. Evaluation passes come behind the save of
  /// the step that they follow; who goes on from that save makes the pass again. Who leaves one is
  /// asked to save, and whether to end, once more. Throws
  /// TrainingError, DataError, CommError, and what hooks throw.
  void train(const TrainerHooks& hooks) { train_until(options_.steps, hooks); }
  /// The beginning of that training: the schedule of the learning rate is that of all its steps.
  void train_until(std::int64_t steps_done, const TrainerHooks& hooks);

  /// Loss of a batch as it would be predicted now: no dropout, running statistics.
  /// Mean over its samples.
  double evaluate(const BatchView& batch);

  const ParameterLayout& layout() const { return runtime_->layout(); }
  /// Of the host; as they are now, until the next step.
  std::span<const float> parameters() {
    runtime_->to_host();
    return runtime_->values();
  }
  Bytes activation_memory() const { return runtime_->activation_memory(); }

 private:
  StepMeasurement run_step(class DataLoader& loader, const TrainerHooks& hooks);
  bool evaluate_where_due(const TrainerHooks& hooks, Seconds& taken);
  std::optional<EvaluationMeasurement> evaluate_all(const TrainerHooks& hooks);
  BatchView with_rows(const BatchView& batch);
  void draw_table(std::size_t table, std::span<float> values);
  const WholeTable* held(const ParameterSlot& slot) const;
  std::vector<StateTensor> values_of_slots();
  void start_exchange();
  void check_loss(double loss, const StepMeasurement& m) const;
  void check_parameters(std::span<const float> values) const;
  void add_statistics_to(std::vector<StateTensor>& tensors);
  void add_loss_scale_to(std::vector<StateTensor>& tensors);
  void scale_done(const StepMeasurement& m);
  template <class Take>
  void for_optimizer_tensors(std::size_t buffers, Take take) const;
  template <class Take>
  void for_kept_slices(const std::vector<KeptPart>& kept, Take take) const;

  const ModelGraph& model_;
  TrainerOptions options_;
  Workers& workers_;
  const DataSource& data_;
  InputWork input_done_;  // by the last step that was measured
  GradientExchange& exchange_;
  SampleFormat format_;
  std::unique_ptr<StepRuntime> runtime_;
  std::optional<TablePlaces> pulled_;
  std::vector<WholeTable> held_tables_;  // restored, until start(); fetched, until the next step
  std::vector<AlignedBuffer<float>> restored_optimizer_;  // until start()
  std::int64_t steps_done_ = 0, updates_done_ = 0;
  std::int64_t optimizer_began_ = 0;                   // steps, those that updated nothing left out
  std::optional<std::int64_t> evaluations_;            // made; nullopt: nothing was asked yet
  std::vector<std::vector<float>> statistics_before_;  // in the order of running_statistics()
  bool under_way_ = false;                             // a step, up to its update
  bool restored_parts_ = false;  // into the exchange's parts, which has started
};

}  // namespace reckon
