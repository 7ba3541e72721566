#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "executor/launch/gang.h"
#include "sim/cluster/life/life.h"
#include "sim/scenario/plan.h"

// A job that outlives its processes: whenever the gang breaks, all of it is started again and goes
// on from its last complete checkpoint, by the rules of a Kubernetes Job, as simulated.
namespace reckon {

/// What is to be done with a gang that has ended.
enum class Verdict {
  finished,
  stopped,  // on request: to be resumed by whoever asked
  regroup,  // nobody was lost: the next start is of another number of processes
  retry,    // a process was lost: 75, 76, a signal, silence, the environment (3)
  hopeless  // 1: the run's answer is no; 2: it cannot run as configured; 126, 127: no program
};
Verdict verdict_on(const GangEnd& end);
/// 75 that nobody here asked for: its machine is to be taken away. All else is a failure.
Interruption cause_of(const GangEnd& end);

struct SupervisedEnd {
  Verdict verdict = Verdict::finished;
  int exit_code = 0;   // of the command: design's 0, 1, 2, 3, 75
  std::string reason;  // why it is over, where it did not finish
  int attempts = 0;    // starts
};

/// The end of a start that could not be made.
GangEnd failed_start(const std::runtime_error& error);

/// The environment ended it (3): neither silence, nor a program whose codes say nothing.
bool ended_by_environment(const GangEnd& end);

/// How an attempt ended that another supervisor of the same job watched.
struct EarlierEnd {
  Interruption cause = Interruption::failure;
  bool futile = false;  // the environment ended it, and it left no newer checkpoint
};

struct SuperviseOptions {
  RetryRules retry;
  /// Those before `first_attempt` that count as if they had been watched here.
  std::vector<EarlierEnd> earlier;
  /// The gang of the k-th start, k from `first_attempt`: addresses and ports are its own.
  std::function<GangOptions(std::int64_t attempt)> gang;
  /// In place of run_gang(gang(attempt)): a gang elsewhere. What it throws ends the supervision:
  /// the gang may still run. A later start that could not be made it answers with failed_start().
  std::function<GangEnd(std::int64_t attempt)> run;
  std::int64_t first_attempt = 0;
  /// The step of the newest complete checkpoint. Where it is given, three starts in a row that the
  /// environment ended (3) and that left no newer one are the last: a full disk stays full.
  std::function<std::optional<std::int64_t>()> checkpoint;
  /// Do processes that wait for the next start hold a later state than that? Then whatever ends the
  /// job between two starts is preceded by one more, which is asked to save and stop as soon as it
  /// `trains`. Empty: they do not.
  std::function<bool()> holds_more, trains;
};

struct SuperviseEvents {
  GangEvents gang;
  std::function<void(std::int64_t attempt)> starting;
  /// It will be tried again after `delay`.
  std::function<void(std::int64_t attempt, const GangEnd&, Seconds delay)> interrupted;
};

/// Runs until the job is finished, stopped, hopeless, or has failed more often than the rules
/// allow: every failure counts, preemptions only where the rules count disruptions. An environment
/// that fails again and again (`checkpoint`) is hopeless as well, with code 3 and what the lost
/// process said last. Throws what run_gang() throws at the first start, where a later one that
/// cannot be made is a failure like others, and what SuperviseOptions::run throws at any.
SupervisedEnd supervise(const SuperviseOptions& options, const SuperviseEvents& events,
                        const std::function<StopRequest()>& stop);

}  // namespace reckon
