#include "executor/launch/supervise.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "executor/train/stop_signal.h"
#include "sim/cluster/job.h"

namespace reckon {
namespace {

constexpr int kRunFailed = 1, kInputIsWrong = 2, kEnvironmentFailed = 3;
// As a shell says it, and a container's runtime after it.
constexpr int kNotExecutable = 126, kNoSuchProgram = 127;

/// Waits out a back-off; false: a request to stop came.
bool wait_out(Seconds delay, const std::function<StopRequest()>& stop,
              const std::function<void()>& tick) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point until = Clock::now() + std::chrono::duration_cast<Clock::duration>(delay);
  for (;;) {
    if (stop && stop() != StopRequest::none) return false;
    if (tick) tick();
    const auto left = until - Clock::now();
    if (left <= Clock::duration::zero()) return true;
    std::this_thread::sleep_for(std::min<Clock::duration>(left, std::chrono::milliseconds(50)));
  }
}

SupervisedEnd hopeless(const GangEnd& end, int attempts) {
  const int code =
      end.code == kRunFailed || end.code == kInputIsWrong ? end.code : kEnvironmentFailed;
  return {Verdict::hopeless, code, end.reason, attempts};
}

/// A later start that fails is one more failure; the first is the caller's to see.
GangEnd start(const SuperviseOptions& options, const SuperviseEvents& events, std::int64_t attempt,
              const std::function<StopRequest()>& stop) {
  if (options.run) return options.run(attempt);
  try {
    return run_gang(options.gang(attempt), events.gang, stop);
  } catch (const std::runtime_error& error) {
    if (attempt == options.first_attempt) throw;
    return failed_start(error);
  }
}

/// Counts starts in a row that the environment ended and that saved nothing: whatever is in their
/// way (a full disk, a directory that cannot be written) is there at the next start, too.
class FutileStarts {
 public:
  explicit FutileStarts(const SuperviseOptions& options) : options_(options) {
    if (options_.checkpoint) saved_ = options_.checkpoint();
    for (const EarlierEnd& end : options_.earlier) count_ = end.futile ? count_ + 1 : 0;
  }

  /// Was this one more of too many?
  bool too_many(const GangEnd& end) {
    constexpr int kMost = 3;
    if (!options_.checkpoint) return false;
    const auto saved = options_.checkpoint();
    count_ = ended_by_environment(end) && !(saved > saved_) ? count_ + 1 : 0;
    saved_ = saved;
    return count_ >= kMost;
  }

  SupervisedEnd give_up(const GangEnd& end, int attempts) const {
    const std::string words = end.last_words.empty() ? "" : fmt::format(" ({})", end.last_words);
    return {Verdict::hopeless, kEnvironmentFailed,
            fmt::format("{}{}, as {} starts in a row did, and no newer checkpoint was made",
                        end.reason, words, count_),
            attempts};
  }

 private:
  const SuperviseOptions& options_;
  std::optional<std::int64_t> saved_;
  int count_ = 0;
};

}  // namespace

Verdict verdict_on(const GangEnd& end) {
  if (end.regroups) return Verdict::regroup;
  if (end.code == 0) return Verdict::finished;
  if (end.asked) return end.code == kExitStoppedOnRequest ? Verdict::stopped : Verdict::hopeless;
  if (end.hung || end.unexplained) return Verdict::retry;
  const bool for_good = end.code == kRunFailed || end.code == kInputIsWrong ||
                        end.code == kNotExecutable || end.code == kNoSuchProgram;
  return for_good ? Verdict::hopeless : Verdict::retry;
}

Interruption cause_of(const GangEnd& end) {
  if (end.cause) return *end.cause;
  return end.code == kExitStoppedOnRequest ? Interruption::preemption : Interruption::failure;
}

bool ended_by_environment(const GangEnd& end) {
  return end.code == kEnvironmentFailed && !end.hung && !end.unexplained;
}

GangEnd failed_start(const std::runtime_error& error) {
  GangEnd end;
  end.reason = error.what();
  end.code = kEnvironmentFailed;
  return end;
}

SupervisedEnd supervise(const SuperviseOptions& options, const SuperviseEvents& events,
                        const std::function<StopRequest()>& stop) {
  const auto counts = [&](Interruption cause) {
    return cause == Interruption::failure || options.retry.counts_disruptions;
  };
  int failures = int(std::ranges::count_if(
      options.earlier, [&](const EarlierEnd& end) { return counts(end.cause); }));
  int attempts = 0;
  FutileStarts futile(options);
  const auto behind_a_save = [&](std::int64_t attempt, SupervisedEnd end) {
    if (!options.holds_more || !options.holds_more()) return end;
    if (events.starting) events.starting(attempt);
    const GangEnd saved = start(options, events, attempt, [&] {
      const StopRequest asked = stop ? stop() : StopRequest::none;
      if (asked == StopRequest::at_once) return asked;
      return options.trains() ? std::max(asked, StopRequest::own) : StopRequest::none;
    });
    ++end.attempts;
    return verdict_on(saved) == Verdict::finished
               ? SupervisedEnd{Verdict::finished, 0, "", end.attempts}
               : end;
  };
  for (std::int64_t attempt = options.first_attempt;; ++attempt) {
    if (events.starting) events.starting(attempt);
    const GangEnd end = start(options, events, attempt, stop);
    ++attempts;
    switch (verdict_on(end)) {
      case Verdict::finished:
        return {Verdict::finished, 0, "", attempts};
      case Verdict::stopped:
        return {Verdict::stopped, kExitStoppedOnRequest, end.reason, attempts};
      case Verdict::hopeless:
        return hopeless(end, attempts);
      case Verdict::regroup:
        continue;
      case Verdict::retry:
        break;
    }
    if (futile.too_many(end)) return behind_a_save(attempt + 1, futile.give_up(end, attempts));
    if (counts(cause_of(end))) ++failures;
    if (failures > options.retry.backoff_limit)
      return behind_a_save(
          attempt + 1, {Verdict::hopeless, kRunFailed,
                        fmt::format("{}, and failed more often than the limit of {}", end.reason,
                                    options.retry.backoff_limit),
                        attempts});
    const Seconds delay = to_seconds(retry_delay(options.retry, std::max(failures, 1)));
    if (events.interrupted) events.interrupted(attempt, end, delay);
    if (!wait_out(delay, stop, events.gang.tick))
      return behind_a_save(
          attempt + 1, {Verdict::stopped, kExitStoppedOnRequest, "stopped on request", attempts});
  }
}

}  // namespace reckon
