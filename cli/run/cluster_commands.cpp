#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "cli/command.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/run/cluster_target.h"
#include "executor/kubernetes/lease.h"
#include "executor/kubernetes/plan_state.h"
#include "executor/kubernetes/pods/cluster_gang.h"
#include "executor/kubernetes/run_state.h"
#include "executor/train/records/run_directory.h"

// `reckon stop` and `delete`: of a run that is in a cluster.
namespace reckon::cli {

void refuse_unless_in_cluster(const ClusterCommandOptions& options) {
  if (options.on != RunPlace::kubernetes)
    throw UsageError(
        "say where the run is: --on kubernetes; a run on this machine is its own "
        "process, and its directory");
}

ClusterTarget target_of(const Command& self, const ClusterCommandOptions& options) {
  if (options.files.size() != 1) throw UsageError(fmt::format("name one run: {}", self.usage));
  refuse_unless_in_cluster(options);
  const std::string& run = options.files.front();
  refuse_unless_run_name(run);
  const std::string& space = options.name_space;
  return {run, kubernetes::Kubectl::of_user(options.context, space.empty() ? run : space)};
}

int no_such_run(const ClusterTarget& target) {
  print_error(
      fmt::format("reckon: there is no run '{}' in namespace {}; --namespace names another\n",
                  target.run, target.kubectl.name_space()));
  return kInputIsWrong;
}

std::vector<kubernetes::PodView> newest_pods(const ClusterTarget& target) {
  using namespace kubernetes;
  const auto newest = newest_attempt(target.kubectl, target.run);
  if (!newest) return {};
  const Json list =
      target.kubectl.json({"get", "pods", "--selector", selector_of(target.run, newest->objects)});
  std::vector<PodView> pods;
  for (const Json& pod : list.at("items")) pods.push_back(pod_view(pod));
  std::ranges::sort(pods, {}, &PodView::rank);
  return pods;
}

namespace {

using namespace kubernetes;

struct DeleteOptions : ClusterCommandOptions {
  bool checkpoints = false;

  std::vector<Option> declared() {
    std::vector<Option> all = ClusterCommandOptions::declared();
    all.push_back({{"checkpoints", "", "also delete the checkpoints' PersistentVolumeClaim"},
                   given(checkpoints)});
    return all;
  }
};

constexpr std::chrono::minutes kPatience{10};
constexpr const char* kStoppedOnRequest = "stopped on request";

/// Until no pod of the run is left that has not ended; false: some do not end.
bool wait_for_end(const ClusterTarget& target) {
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    const auto pods = newest_pods(target);
    if (std::ranges::all_of(pods, &PodView::ended)) return true;
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

/// The run's phase, where it is over; nullopt: it runs, or is being stopped.
std::optional<RunPhase> phase_if_over(const std::optional<RunState>& state) {
  if (!state) throw KubectlError(KubectlFailure::missing, "the run was deleted by somebody else");
  if (state->phase == RunPhase::running || state->phase == RunPhase::stopping) return std::nullopt;
  return state->phase;
}

/// Marks the run, unless it is over by then: as what it ended.
std::optional<RunPhase> mark(const ClusterTarget& target, const Kubectl& kubectl, RunPhase phase) {
  for (;;) {
    const auto state = read_state(kubectl, target.run);
    if (const auto over = phase_if_over(state)) return over;
    try {
      set_phase(kubectl, target.run, phase, kStoppedOnRequest, {}, state->version);
      return std::nullopt;
    } catch (const KubectlError& error) {
      if (error.failure() != KubectlFailure::conflict) throw;  // its launcher wrote meanwhile
    }
  }
}

int say_stopped(const ClusterTarget& target, RunPhase phase) {
  if (phase != RunPhase::stopped) {
    print(fmt::format("{}: {} before it was stopped\n", target.run, to_text(phase)));
    return kDone;
  }
  print(fmt::format(
      "{}: stopped; go on with: reckon run --on kubernetes --attach {}{}{} --resume\n", target.run,
      target.run, target.kubectl.name_space() == target.run ? "" : " --namespace ",
      target.kubectl.name_space() == target.run ? "" : target.kubectl.name_space()));
  return kDone;
}

/// Until the lease is held, or the run is over by whoever holds it; nullopt: neither comes.
std::optional<RunPhase> wait_for_launcher(const ClusterTarget& target, LauncherLease& lease) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::seconds kBetweenLooks{1};
  const auto until = Clock::now() + kPatience;
  auto look = Clock::now() + kBetweenLooks;
  std::optional<RunPhase> over;
  bool told = false;
  lease.wait([&] {
    if (!lease.holder().empty() && !std::exchange(told, true))
      print_error(fmt::format("reckon: the {} is asked to stop {}\n", launcher_text(lease.holder()),
                              target.run));
    if (Clock::now() < look) return true;
    over = phase_if_over(read_state(target.kubectl, target.run));
    look = Clock::now() + kBetweenLooks;
    return !over && Clock::now() < until;
  });
  return over;
}

int pods_do_not_end() {
  print_error("reckon: pods of the run do not end; `reckon status` shows which\n");
  return kEnvironmentFailed;
}

/// Its nodes are paid for until now: what passes until it goes on is not.
void note_end(const Kubectl& kubectl, const RunState& state,
              const std::optional<NewestAttempt>& newest, std::int64_t steps_done) {
  const auto clock = RunClock::parse(state.started);
  if (!clock || state.parts.empty()) return;  // an older reckon began it
  EndRecord end;
  end.attempt = std::max(newest ? newest->number : 0, state.parts.back().attempt);
  end.at = clock->now();
  end.steps_done = steps_done;
  end.detail = kStoppedOnRequest;
  std::vector<EndRecord> ends = state.ends;
  ends.push_back(end);
  write_ends(kubectl, state.run, ends);
}

/// A launcher that lives sees the word and stops the run itself; else it is stopped from here.
int stop_run(const ClusterTarget& target) {
  const auto state = read_state(target.kubectl, target.run);
  if (!state) return no_such_run(target);
  if (state->phase != RunPhase::running && state->phase != RunPhase::stopping) {
    print(fmt::format("{}: {} already\n", target.run, to_text(state->phase)));
    return kDone;
  }
  if (const auto over = mark(target, target.kubectl, RunPhase::stopping))
    return say_stopped(target, *over);
  LauncherLease lease(target.kubectl, target.run, false);
  if (const auto over = wait_for_launcher(target, lease)) return say_stopped(target, *over);
  if (!lease.may_act()) return pods_do_not_end();
  const auto left = read_state(target.kubectl, target.run);  // by the launcher that was lost
  if (const auto over = phase_if_over(left)) return say_stopped(target, *over);
  const Kubectl kubectl = lease.guarded();
  const std::int64_t steps_done = steps_told(target, *left);
  const auto newest = newest_attempt(kubectl, target.run);
  if (newest) end_attempt(kubectl, target.run, newest->objects);
  if (!wait_for_end(target)) return pods_do_not_end();
  note_end(kubectl, *left, newest, steps_done);
  return say_stopped(target, mark(target, kubectl, RunPhase::stopped).value_or(RunPhase::stopped));
}

int remove_run(const ClusterTarget& target, bool with_claim) {
  const auto state = read_state(target.kubectl, target.run);
  if (!state) return no_such_run(target);
  if (state->phase == RunPhase::running) {
    print_error(fmt::format("reckon: {} runs; stop it first: reckon stop {} --on kubernetes\n",
                            target.run, target.run));
    return kAnswerIsNo;
  }
  // Its launcher may be about to end.
  LauncherLease lease(target.kubectl, target.run, true);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  lease.wait([&] { return std::chrono::steady_clock::now() < until; });
  if (!lease.may_act()) {
    print_error(fmt::format("reckon: the {} still acts on {}{}\n", lease.holder_text(), target.run,
                            lease.trouble().empty() ? "" : ": " + lease.trouble()));
    return kAnswerIsNo;
  }
  print(delete_run(lease.guarded(), target.run, with_claim));
  lease.forget();
  print(delete_lease(target.kubectl, target.run));
  print(fmt::format("namespace {} is left{}\n", target.kubectl.name_space(),
                    with_claim ? ""
                               : ", and the checkpoints; --checkpoints deletes the claim that "
                                 "was made for them"));
  return kDone;
}

}  // namespace

std::vector<OptionText> cluster_run_options() { return shown_options<ClusterCommandOptions>(); }
std::vector<OptionText> delete_options() { return shown_options<DeleteOptions>(); }

int run_stop(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<ClusterCommandOptions>(self, arguments);
  return options ? stop_run(target_of(self, *options)) : kDone;
}

int run_delete(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<DeleteOptions>(self, arguments);
  return options ? remove_run(target_of(self, *options), options->checkpoints) : kDone;
}

}  // namespace reckon::cli
