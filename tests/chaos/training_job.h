#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chaos/announced.h"
#include "chaos/job.h"
#include "cli/background_job.h"
#include "sim/measurement/measurements.h"

namespace reckon::test {

/// What is trained, and how.
struct TrainingKind {
  std::string name, scenario;
  int workers = 2;  // ranks
  int steps = 600;
  bool repeatable = true;      // bit for bit, whatever comes in between
  bool keeps_state = false;    // ranks that are left go on with what they have in memory
  int checkpoint_steps = 100;  // between saves in the storage
  std::optional<NodeTier> nodes = std::nullopt;  // saves on the nodes besides
  Seconds hang{2};  // `reckon run --hang`: faults that stop a process are found out soon
};
TrainingKind ring_of_workers();
TrainingKind synchronous_servers();
TrainingKind asynchronous_servers();

/// What a job ends with when nobody disturbs it.
struct TrainedResult {
  std::vector<float> parameters;
  std::map<std::int64_t, double> losses;  // by step, of rank 0
};

/// A file of measurements: a whole line that was there once is there for ever.
class RecordWatch {
 public:
  explicit RecordWatch(std::filesystem::path file) : file_(std::move(file)) {}
  /// Throws Lost where lines are gone.
  void look();
  /// The same, of every line from the first on.
  void look_at_all() const;

 private:
  std::filesystem::path file_;
  std::string seen_;  // whole lines
};

/// `reckon run`, started again with --resume whenever it ends before its job does.
class TrainingJob : public Job {
 public:
  /// Runs the job once, undisturbed, beside `disk`.
  static TrainedResult undisturbed(const Workspace& w, const TrainingKind& kind);

  TrainingJob(const Workspace& w, const TrainingKind& kind, const TrainedResult& expected,
              const FaultCount& faults);
  ~TrainingJob() override { leave_nodes(); }
  std::string name() const override { return kind_.name; }
  /// `reckon run`, then its workers; none where it has ended.
  std::vector<pid_t> processes() const override;
  std::filesystem::path disk() const override { return w_.path("disk"); }
  void tick() override;
  bool over() const override { return over_; }
  void check() override;
  int starts() const override { return int(attempts_); }
  std::string summary() const override;
  std::string said() const override { return said_; }

  const TrainingKind& kind() const { return kind_; }
  Announced& announced() { return announced_; }
  /// As they are now; none where it has not begun to write any.
  Measurements records() const;
  /// How often a start restored a checkpoint; after check().
  int restores() const { return restores_; }

 private:
  void start();
  void ended(int code);
  void leave_nodes() const;
  void check_records(const Measurements& m) const;

  const Workspace& w_;
  const TrainingKind kind_;
  const TrainedResult& expected_;
  const FaultCount& faults_;
  RecordWatch records_;
  Announced announced_;
  std::unique_ptr<BackgroundJob> run_;
  FaultCount::Moment began_;
  BackgroundJob::Clock::time_point looked_{}, start_again_{};
  int starts_ = 0;            // of `reckon run`
  std::size_t attempts_ = 0;  // of its processes
  int restores_ = 0;
  std::string said_;  // by the last `reckon run`
  bool over_ = false;
};

}  // namespace reckon::test
