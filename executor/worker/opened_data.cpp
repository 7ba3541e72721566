#include "executor/worker/opened_data.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>

#include "executor/data/watch.h"
#include "executor/train/records/progress.h"
#include "executor/train/records/run_directory.h"
#include "executor/train/stop_signal.h"
#include "sim/base/standard_streams.h"

namespace reckon::worker {
namespace {

void warn_of_data(const std::string& text) {
  print_error(fmt::format("reckon-worker: warning: {}\n", text));
}

/// Tells a watcher that opening gets on, while it lives. The sources that were opened keep what
/// watch() gave.
class Opening {
 public:
  explicit Opening(bool ends_on_request) : state_(std::make_shared<State>(ends_on_request)) {
    state_->pipe.report({.phase = ProgressPhase::opening});
  }
  ~Opening() {
    const std::lock_guard lock(state_->mutex);
    state_->over = true;
    state_->pipe.report({.phase = ProgressPhase::starting});
  }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  const std::shared_ptr<std::atomic<bool>>& reading_ends() const { return state_->reading_ends; }
  DataWatch watch() const {
    return {.got_on = [state = state_] { state->got_on(); },
            .stop =
                [state = state_] {
                  return *state->reading_ends ||
                         (!state->over && state->ends_on_request && stop_requested());
                },
            .warn = warn_of_data};
  }

 private:
  struct State {
    explicit State(bool ends) : ends_on_request(ends) {}
    void got_on() {
      constexpr std::chrono::seconds kPace{1};
      if (over || !pipe.watched()) return;
      const std::lock_guard lock(mutex);
      const auto now = std::chrono::steady_clock::now();
      if (over || now - said < kPace) return;
      said = now;
      pipe.report({.phase = ProgressPhase::opening});
    }

    const bool ends_on_request;
    std::atomic<bool> over{false};
    const std::shared_ptr<std::atomic<bool>> reading_ends =
        std::make_shared<std::atomic<bool>>(false);
    std::mutex mutex;  // of what follows
    ProgressPipe pipe;
    std::chrono::steady_clock::time_point said = std::chrono::steady_clock::now();
  };
  std::shared_ptr<State> state_;
};

/// Others may hold the job's state in memory, and need this process to save it.
bool takes_the_place_of_another(const WorkerIdentity& me) {
  const RunEnvironment told = RunEnvironment::read();
  return told.orders && (told.stands_by || me.attempt > 0);
}

}  // namespace

std::optional<JobData> open_data_of(const JobOptions& options, const Job& job,
                                    const WorkerIdentity& me) {
  const Opening opening(!takes_the_place_of_another(me));
  try {
    JobData data = open_job_data(options, job, opening.watch());
    data.reading_ends = opening.reading_ends();
    if (me.rank == 0)
      for (const std::string& warning : warnings_of(options, job, data)) warn_of_data(warning);
    return data;
  } catch (const ReadingStopped&) {
    return std::nullopt;
  }
}

}  // namespace reckon::worker
