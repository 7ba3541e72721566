#pragma once
#include <chrono>
#include <filesystem>

#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/records/run_directory.h"
#include "sim/measurement/measurements.h"

namespace reckon {

/// The file of a run's Measurements, to which any number of processes append.
///
/// A record is accepted when append() returns: one whole line then stands in the file, written by
/// one write(2) to its end, and outlives kill -9 of this process and of all others. Power loss it
/// outlives after the next sync(), which append() calls itself behind records that are neither
/// steps nor spans, and every 10 s. What a killed writer left of a line is cut off by the next
/// append() of anyone.
class MeasurementLog {
 public:
  /// Makes the file where it is missing. Throws FileError.
  explicit MeasurementLog(std::filesystem::path file);
  /// Throws FileError, for instance on a full disk; the file then ends where it ended before.
  void append(const MeasurementRecord& record);
  void sync();
  /// Bytes of torn lines that this process cut off.
  std::size_t torn_bytes() const { return torn_bytes_; }

 private:
  void cut_torn_line();

  std::filesystem::path path_;
  FileHandle file_;
  std::size_t torn_bytes_ = 0;
  bool other_hangs_ = false;  // a writer holds the lock for long: nobody waits for it a second time
  std::chrono::steady_clock::time_point synced_;
};

/// Reads the file of a run. Throws FileError where it cannot be read.
Expected<Measurements> read_measurement_log(const std::filesystem::path& file);

/// Where damaged lines of `file` are kept: each behind a line that says where it stood and why.
std::filesystem::path damaged_lines_of(const std::filesystem::path& file);

/// The same for whoever goes on with the run and holds its lock, before anybody opens the file to
/// write: damaged lines are moved to damaged_lines_of(file), the records within them that are whole
/// stay. What is returned lists them. Throws FileError.
Expected<Measurements> take_up_measurement_log(const std::filesystem::path& file);

/// What the next start of a run has to know of those before it.
struct NextStart {
  std::int64_t attempt = 0;
  RunClock clock = RunClock::starting_now();
};
NextStart next_start(const Measurements& before);

}  // namespace reckon
