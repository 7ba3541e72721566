#pragma once
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "executor/launch/line_reader.h"
#include "executor/launch/process.h"
#include "executor/train/records/progress.h"

namespace reckon {

/// A process of a job, what it has said, and how orders reach it. It may outlive a start of the
/// job.
class WatchedProcess {
 public:
  using Clock = std::chrono::steady_clock;

  /// Starts it. `orders`: the watcher's end (executor/train/records/orders.h); not open: it takes
  /// none. Throws std::runtime_error.
  explicit WatchedProcess(const ProcessSpec& spec, FileHandle orders = {});

  /// What has come from its pipes since, line by line.
  void read(const std::function<void(std::string_view line)>& output,
            const std::function<void(const ProgressReport&)>& progress);
  /// Its end, where it has come in the meantime.
  const std::optional<ProcessEnd>& look_for_end();

  /// It takes part in a start with that rank, from now on: what it said before is of another.
  void seat(int rank, std::string name);

  /// It has no part in a start, or has left it (its report names the start), and waits for an
  /// order.
  bool waits() const { return !end && last && last->phase == ProgressPhase::waiting; }
  bool has_left(std::int64_t attempt) const { return waits() && last->attempt == attempt; }

  std::string name;
  bool reports = true;
  ChildProcess process;
  FileHandle orders;
  int rank = -1;  // of its last start; -1: it stood by
  bool output_open = true, progress_open = true;
  std::optional<ProgressReport> last;
  std::string last_words;  // the last line that it printed
  Clock::time_point heard = Clock::now();
  std::optional<ProcessEnd> end;

 private:
  LineReader output_lines_, progress_lines_;
};

}  // namespace reckon
