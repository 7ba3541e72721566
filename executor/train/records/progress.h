#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/quantity.h"
#include "sim/base/words.h"

// What a process of a job tells whoever watches it: where it is, line by line on a pipe. A watcher
// that hears nothing for too long knows who hangs and in what.
namespace reckon {

/// In the order in which a step goes through them.
/// waiting: in no step, for its part in a start of the job.
/// opening: finding the samples of its data, before it takes part in a start.
/// evaluating: behind `step` steps.
enum class ProgressPhase {
  waiting,
  opening,
  starting,
  restoring,
  evaluating,
  computing,
  exchanging,
  saving,
  done
};
constexpr auto words_of(ProgressPhase) {
  return std::array{Word<ProgressPhase>{"waiting", ProgressPhase::waiting},
                    Word<ProgressPhase>{"opening", ProgressPhase::opening},
                    Word<ProgressPhase>{"starting", ProgressPhase::starting},
                    Word<ProgressPhase>{"restoring", ProgressPhase::restoring},
                    Word<ProgressPhase>{"evaluating", ProgressPhase::evaluating},
                    Word<ProgressPhase>{"computing", ProgressPhase::computing},
                    Word<ProgressPhase>{"exchanging", ProgressPhase::exchanging},
                    Word<ProgressPhase>{"saving", ProgressPhase::saving},
                    Word<ProgressPhase>{"done", ProgressPhase::done}};
}

struct ProgressReport {
  std::int64_t step = 0;  // the one in work; phase done: the one that is done; phase waiting: so
                          // many are done in the state that it holds, 0: it holds none
  ProgressPhase phase = ProgressPhase::starting;
  // Phase done only:
  Seconds seconds{};  // the step's wall time
  std::int64_t samples = 0;
  std::optional<double> loss;      // mean over the step's samples
  std::optional<Seconds> saved{};  // a checkpoint behind it: how long training stood still for it
  std::optional<Seconds> own{};    // what this process did by itself (sim/measurement/slow_ranks.h)
  // Phase waiting only:
  std::int64_t attempt = -1;  // the start that it took part in last; -1: none
  bool told = false;          // it left that because it was told to regroup
};

/// "17 done 0.0121 256 2.31\n", "17 exchanging\n". No number of a loss: "-". With a checkpoint:
/// "17 done 0.0121 256 2.31 0.0003\n"; with its own part, last: "17 done 0.0121 256 2.31
/// own=0.0094\n". Waiting: "17 waiting 2 0\n", with `attempt` and `told`.
std::string to_line(const ProgressReport& report);
/// nullopt: the line is none of ours.
std::optional<ProgressReport> parse_progress(std::string_view line);

/// The worker's end: the descriptor that the environment names, or nothing. A watcher that is slow
/// or gone changes nothing: what does not fit into the pipe is left out.
class ProgressPipe {
 public:
  static constexpr const char* kVariable = "RECKON_PROGRESS_FD";
  ProgressPipe();  // reads the environment
  void report(const ProgressReport& report);
  bool watched() const { return descriptor_ >= 0; }

 private:
  int descriptor_ = -1;
};

}  // namespace reckon
