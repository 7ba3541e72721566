#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/train/checkpoint/checkpoint.h"
#include "executor/train/checkpoint/node_checkpoints.h"
#include "executor/train/held_state.h"
#include "executor/train/records/measurement_log.h"
#include "executor/train/records/orders.h"
#include "executor/train/records/progress.h"
#include "executor/train/records/run_directory.h"
#include "executor/train/trainer.h"
#include "executor/worker/compute.h"
#include "executor/worker/job_options.h"
#include "sim/scenario/artifact/artifact.h"

// What surrounds the training loop in a process: what it measures, when it saves, when it ends.
namespace reckon::worker {

class Session {
 public:
  /// All must outlive it. `attempt`: which start of the job this is, as far as its environment
  /// knows. `of_worker`: where parameter servers see several ranks as one worker, those; else null.
  Session(const JobOptions& options, const Plan& plan, const PlanDigests& digests, int attempt,
          Communicator& communicator, Communicator* of_worker, GradientExchange& exchange,
          Trainer& trainer, std::int64_t steps, ComputeName compute);

  /// Orders may tell the ranks to regroup: they leave behind a step. `saves`: which is saved then,
  /// as nobody keeps its state.
  void obeys(Orders& orders, bool saves) { orders_ = &orders, saves_to_regroup_ = saves; }
  /// Goes on from the state that ranks of an earlier start hold (`held`: this rank's, nullptr:
  /// none; collective where `shared`), from the newest checkpoint that all ranks have, on the nodes
  /// or in the storage, or from the beginning. Starts the trainer.
  void start(bool shared = false, const HeldState* held = nullptr);
  TrainerHooks hooks();
  /// Behind the last step: what was saved is on the device, rank 0 writes the parameters.
  void finish();
  /// All ranks stopped on request, before the last step.
  bool stopped() const { return stopped_; }
  /// All ranks left as they were told to regroup, before the last step.
  bool regroups() const { return regroups_; }
  /// A rank is lost: nobody waits for what it was to save.
  void abandon() {
    if (checkpoints_) checkpoints_->abandon();
  }

 private:
  void take_up_log(int attempt);
  void keep(const MeasurementRecord& record);
  void restore();
  void open_nodes();
  bool restore_from_nodes();
  void leave_nodes();
  Counters counters_of_step() const;
  void count_updates(const Counters& restored);
  void record_restore(std::int64_t step, std::span<const RestoreTensor> targets,
                      std::chrono::steady_clock::time_point begin);
  void record_run();
  bool is_due(std::int64_t done) const;
  bool is_due_on_nodes() const;
  void save_on_nodes();
  void agree(double& loss);  // the mean of all ranks' in its place
  std::int64_t newest_in_storage() const;
  void decide_alone(std::int64_t done);
  void save(bool emergency);
  void report_saving();
  void wait_for_others();
  void write_weights();
  void record_saves();
  void record(const StepMeasurement& m);
  void tell(const StepMeasurement& m);
  void take(EvaluationMeasurement m);
  EvaluationWord between_parts(Seconds part);
  bool is_saved() const;
  void report_skipped(const InputWork& input);
  void amend_interval(const SaveReport& save);
  bool keeps_records() const { return log_ || options_.log_records; }
  /// Somebody watches, who counts starts and records how the run ends.
  bool supervised() const { return environment_.supervisor || options_.log_records; }
  bool with_servers() const { return job_.strategy.servers.has_value(); }
  /// Asynchronous: ranks take steps of their own.
  bool waits_for_nobody() const { return with_servers() && !job_.strategy.synchronous(); }
  /// All ranks take the same steps, and agree in each.
  bool in_lockstep() const {
    return job_.strategy.synchronous() && job_.strategy.backup_workers() == 0;
  }

  const JobOptions& options_;
  const Plan& plan_;
  const PlanDigests& digests_;
  const PlannedWorkload& job_;
  Communicator& communicator_;
  Communicator* of_worker_;
  GradientExchange& exchange_;
  Trainer& trainer_;
  std::int64_t steps_;
  ComputeName compute_;
  RunEnvironment environment_ = RunEnvironment::read();
  RunClock clock_;
  Seconds began_ = clock_.at(options_.began);  // this process
  RunDirectory directory_;
  std::optional<MeasurementLog> log_;  // nullopt: records are printed, or not kept
  std::optional<CheckpointStore> checkpoints_;
  std::optional<NodeCheckpoints> nodes_;  // nullopt: the job has one tier
  std::vector<SettingChange> changes_;    // accepted in this start; rank 0's
  ProgressPipe progress_;
  std::chrono::steady_clock::time_point saved_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point saved_on_nodes_ = saved_;
  Seconds interval_;              // of useful work between two saves
  std::int64_t saved_steps_ = 0;  // done at the last save, or at the start
  bool saved_here_ = false;       // something, in this start
  bool save_due_ = false, nodes_due_ = false, stopped_ = false;
  Orders* orders_ = nullptr;  // nobody gives any
  bool saves_to_regroup_ = true, regroups_ = false;
  bool skipped_said_ = false;
  bool planned_save_ = false;   // made behind the step that is to be reported
  std::optional<Seconds> own_;  // of that step: the rank's own part
};

}  // namespace reckon::worker
