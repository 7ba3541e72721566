#pragma once
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/train/records/measurement_log.h"
#include "executor/train/records/run_directory.h"

// The directory of a run as whoever watches it keeps it.
namespace reckon {

/// What an earlier part of the run left behind.
struct EarlierPart {
  RunClock clock = RunClock::starting_now();
  std::int64_t attempt = 0;  // of the next start
  std::vector<StepRecord> steps;
  std::vector<CheckpointRecord> checkpoints;
  std::vector<RunRecord> runs;
  std::vector<EndRecord> ends;
  std::int64_t of_this_plan = 0;  // its first attempt since which all ran RunFilesOptions::digest
  std::int64_t interruptions = 0;
  std::optional<std::int64_t> checkpoint;  // the newest that was saved
  /// It is the whole of RunFilesOptions::steps: how it ended. Nothing is left to be run.
  std::optional<EndRecord> finished;
  std::string damage;  // which lines of its records were set aside, to be told; empty: none
};

/// Whether the directory may hold a part of the run already.
enum class Earlier { refused, needed, taken_up };

struct RunFilesOptions {
  RunDirectory directory;
  Earlier earlier = Earlier::refused;
  int processes = 1;
  /// Of the job: a part that has finished with as many is all of the run. Then the plan and the
  /// forecast that are there stay, where they can be read. 0: nobody asks.
  std::int64_t steps = 0;
  /// That part must have left what it trained: the last checkpoint, every byte of it, and the
  /// weights. Else there is something to be done again.
  bool leaves_weights = true;
  std::string started;  // by RunClock: records of another run are refused; empty: they are not
  std::string digest;   // of the artifact; empty: nobody asks which attempts ran it
  std::string plan;     // the artifact: the directory's plan.reckon; empty: none
  std::string forecast_text;  // of that plan: forecast.json; empty: the one that is there stays
};

/// Throws FileError where the directory has records of another run than the one that started then.
void refuse_other_run(const RunDirectory& directory, const std::string& started);

class RunFiles {
 public:
  /// Throws FileError where the directory cannot be used: another job in it, a run where none or
  /// another may be, none where one must be.
  explicit RunFiles(const RunFilesOptions& options);

  const EarlierPart& before() const { return before_; }
  MeasurementLog& measurements() { return measurements_; }
  int lock() const { return lock_.descriptor(); }
  /// What a process printed, to its file. A message where this is the first line that cannot be
  /// written; then no more are.
  std::optional<std::string> line(int process, std::string_view text);

 private:
  std::filesystem::path log_of(int process) const;

  RunDirectory directory_;
  RunLock lock_;
  EarlierPart before_;
  MeasurementLog measurements_;
  std::vector<std::ofstream> logs_;
};

}  // namespace reckon
