#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/kubernetes/kubectl.h"
#include "sim/base/words.h"
#include "sim/measurement/measurements.h"

// What a run leaves in its cluster, so that any launcher can pick it up: a ConfigMap NAME-run, and
// the Jobs of its attempts by their labels.
namespace reckon::kubernetes {

enum class RunPhase { running, stopping, stopped, finished, failed };
constexpr auto words_of(RunPhase) {
  return std::array{
      Word<RunPhase>{"running", RunPhase::running}, Word<RunPhase>{"stopping", RunPhase::stopping},
      Word<RunPhase>{"stopped", RunPhase::stopped}, Word<RunPhase>{"finished", RunPhase::finished},
      Word<RunPhase>{"failed", RunPhase::failed}};
}

/// What broke an attempt, written down before its other pods are ended: whoever watches may be lost
/// at any time.
struct KeptInterruption {
  InterruptionRecord record;
  /// The program's checkpoints are its own: what it cost is known when it goes on.
  bool open = false;
  std::int64_t done = 0;                   // steps by then
  Seconds step{};                          // what one of them took
  std::optional<std::int64_t> checkpoint;  // the newest by then, as far as it was known
  bool futile = false;                     // EarlierEnd::futile
  bool fruitless = false;  // a program of one's own failed by itself before its first step
};

/// What lies between two of its launchers' commands: from a start, a `--resume` or another plan to
/// the next end. Its nodes are paid for from then on.
struct RunPart {
  std::int64_t attempt = 0;  // the first
  Seconds at{};              // since the first start of all
};

struct RunState {
  std::string run;                 // NAME
  std::string plan;                // the artifact, as it is in a file
  std::vector<std::string> words;  // of the command line that started it, without those of the plan
  std::string started;             // of the first attempt (RunClock::text)
  RunPhase phase = RunPhase::running;
  std::string reason;                           // why it is over
  std::optional<int> exit_code;                 // of the command that saw it end
  std::vector<KeptInterruption> interruptions;  // by attempt
  /// Failures of earlier attempts count no more: somebody resumed the run.
  std::int64_t counted_from = 0;
  std::optional<std::int64_t> cordoned_in;  // the attempt in which a node was cordoned last
  // What plan_state.h writes.
  std::int64_t plan_from = 0;             // first attempt of `plan`; those before ran other plans
  std::vector<RunPart> parts;             // oldest first; empty: an older reckon began it
  std::vector<EndRecord> ends;            // of parts, as far as somebody saw them end
  std::vector<DecisionRecord> decisions;  // by which the plan was changed
  std::string version;                    // of the object that was read
};

/// Of all its objects.
Json labels_of_run(const std::string& run);
/// The words of a kubectl command that prints the run's phase.
Words phase_question(const std::string& run);

/// NAME-run.
std::string state_object_of(const std::string& run);
/// Throws KubectlError; a run of that name that is there already is a conflict.
void create_state(const Kubectl& kubectl, const RunState& state);
/// What its processes prove themselves by: a key of a Secret that their pods mount.
struct SecretName {
  std::string object, key;
};
/// A new one in place of whatever is there. Throws KubectlError.
void renew_secret(const Kubectl& kubectl, const std::string& run, const SecretName& name);
/// nullopt: there is no such run.
std::optional<RunState> read_state(const Kubectl& kubectl, const std::string& run);
/// With a `version` only of that object: else throws KubectlError, a conflict.
void set_phase(const Kubectl& kubectl, const std::string& run, RunPhase phase,
               const std::string& reason, std::optional<int> exit_code = {},
               const std::string& version = {});
/// A run's failures are counted from this attempt.
void count_from(const Kubectl& kubectl, const std::string& run, std::int64_t attempt);
/// A run that was over goes on with `attempt`, and its failures are counted from there.
void resume_state(const Kubectl& kubectl, const std::string& run, std::int64_t attempt);

/// A node is about to be cordoned in this attempt. Throws KubectlError.
void note_cordon(const Kubectl& kubectl, const std::string& run, std::int64_t attempt);

void set_interruptions(const Kubectl& kubectl, const std::string& run,
                       const std::vector<KeptInterruption>& interruptions);

/// The Jobs of a run's newest attempt.
struct NewestAttempt {
  std::int64_t number = 0;
  std::int64_t objects = 0;  // by which they are labelled: less, where the pods stayed since
  int pods_wanted = 0;       // 0: its Jobs were told to end
};
std::optional<NewestAttempt> newest_attempt(const Kubectl& kubectl, const std::string& run);

/// All objects of a run but its namespace, its claim and what lies there, and its launcher's Lease;
/// a list of what was deleted, as kubectl says it.
std::string delete_run(const Kubectl& kubectl, const std::string& run, bool with_claim);
/// The last object of a run that is deleted. Likewise.
std::string delete_lease(const Kubectl& kubectl, const std::string& run);

}  // namespace reckon::kubernetes
