#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "cli/command.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/run/cluster_options.h"
#include "executor/kubernetes/kubernetes_run.h"
#include "executor/launch/process.h"
#include "executor/launch/progress_reader.h"
#include "report/rank_table.h"
#include "sim/scenario/artifact/artifact.h"
#include "sim/scenario/resolve/container_metrics.h"

// `reckon status`, `stop` and `delete`: of a run that is in a cluster.
namespace reckon::cli {
namespace {

using namespace kubernetes;

struct ClusterCommandOptions : Files, KubernetesObjects {
  std::optional<RunPlace> on;

  std::vector<Option> declared() { return {on_option(on), context_option(), space_option()}; }
};

struct DeleteOptions : ClusterCommandOptions {
  bool checkpoints = false;

  std::vector<Option> declared() {
    std::vector<Option> all = ClusterCommandOptions::declared();
    all.push_back({{"checkpoints", "", "also delete the checkpoints' PersistentVolumeClaim"},
                   given(checkpoints)});
    return all;
  }
};

struct Target {
  std::string run;
  Kubectl kubectl;
};

Target target_of(const Command& self, const ClusterCommandOptions& options) {
  if (options.files.size() != 1) throw UsageError(fmt::format("name one run: {}", self.usage));
  if (options.on != RunPlace::kubernetes)
    throw UsageError(
        "say where the run is: --on kubernetes; a run on this machine is its own "
        "process, and its directory");
  const std::string& run = options.files.front();
  refuse_unless_run_name(run);
  const std::string& space = options.name_space;
  return {run, Kubectl::of_user(options.context, space.empty() ? run : space)};
}

int no_such_run(const Target& target) {
  print_error(
      fmt::format("reckon: there is no run '{}' in namespace {}; --namespace names another\n",
                  target.run, target.kubectl.name_space()));
  return kInputIsWrong;
}

/// The pods of the newest attempt.
std::vector<PodView> newest_pods(const Target& target) {
  const auto newest = newest_attempt(target.kubectl, target.run);
  if (!newest) return {};
  const Json list =
      target.kubectl.json({"get", "pods", "--selector", selector_of(target.run, newest->objects)});
  std::vector<PodView> pods;
  for (const Json& pod : list.at("items")) pods.push_back(pod_view(pod));
  std::ranges::sort(pods, {}, &PodView::rank);
  return pods;
}

/// How the run's program tells of its progress; nullopt: it is reckon-worker.
std::optional<ProgressReader> reader_of(const RunState& state) {
  const auto read = read_artifact(state.plan, state.run);
  if (!read || !read->artifact.container) return std::nullopt;
  std::vector<MetricsMistake> mistakes;  // found when it was started
  auto reader = ProgressReader::from(container_metrics(*read->artifact.container, mistakes));
  return reader ? std::optional(std::move(*reader)) : std::nullopt;
}

/// The last step that the log of a pod tells of.
void add_last_step(const Kubectl& kubectl, const std::optional<ProgressReader>& reader,
                   const PodView& pod, RankStatus& status) {
  const KubectlResult log = kubectl.attempt({"logs", pod.name, "--tail=20"});
  if (!log.good()) return;
  std::string records;
  for (std::size_t begin = 0, end = 0; begin < log.out.size(); begin = end + 1) {
    end = std::min(log.out.find('\n', begin), log.out.size());
    const std::string line = log.out.substr(begin, end - begin);
    if (reader) {
      const auto told = reader->line(line);
      if (told && told->step) status.steps_done = *told->step;
      if (told && told->seconds) status.step = *told->seconds;
    } else if (line.starts_with("{\"record\":\"step\"")) {
      records += line + '\n';
    }
  }
  const auto measured = parse_measurements(pod.name, records);
  if (!measured || measured->steps.empty()) return;
  status.steps_done = measured->steps.back().step + 1;
  status.step = measured->steps.back().seconds;
}

RankStatus status_of(const Kubectl& kubectl, const std::optional<ProgressReader>& reader,
                     const PodView& pod) {
  RankStatus status{.name = fmt::format("rank {}", pod.rank), .node = pod.node, .state = {}};
  const StartTrouble trouble = start_trouble(pod);
  if (pod.phase == "Succeeded")
    status.state = "done";
  else if (pod.phase == "Failed")
    status.state = loss_of(pod, {}, std::nullopt, false).words;
  else if (pod.deleting)
    status.state = "is being ended";
  else if (pod.node.empty())
    status.state = "waits for a node: " + pod.unschedulable;
  else if (!trouble.words.empty())
    status.state = trouble.words;
  else
    status.state = pod.started ? "runs" : "starts";
  if (pod.started) add_last_step(kubectl, reader, pod, status);
  return status;
}

int show_status(const Target& target) {
  const auto state = read_state(target.kubectl, target.run);
  if (!state) return no_such_run(target);
  const auto newest = newest_attempt(target.kubectl, target.run);
  print(fmt::format("{}: {}{}{}{}, started {}\n", target.run, to_text(state->phase),
                    state->reason.empty() ? "" : ": ", state->reason,
                    newest ? fmt::format(", attempt {}", newest->number) : "", state->started));
  std::vector<RankStatus> ranks;
  const auto reader = reader_of(*state);
  for (const PodView& pod : newest_pods(target))
    ranks.push_back(status_of(target.kubectl, reader, pod));
  constexpr std::size_t kMostLines = 64;
  if (!ranks.empty()) print(rank_table(ranks, kMostLines));
  return kDone;
}

/// Until no pod of the run is left that has not ended; false: some do not end.
bool wait_for_end(const Target& target) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(10);
  for (;;) {
    const auto pods = newest_pods(target);
    if (std::ranges::all_of(pods, &PodView::ended)) return true;
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

int stop_run(const Target& target) {
  const auto state = read_state(target.kubectl, target.run);
  if (!state) return no_such_run(target);
  if (state->phase != RunPhase::running && state->phase != RunPhase::stopping) {
    print(fmt::format("{}: {} already\n", target.run, to_text(state->phase)));
    return kDone;
  }
  // First the word, so that whoever watches does not start it again.
  set_phase(target.kubectl, target.run, RunPhase::stopping, "stopped on request");
  if (const auto newest = newest_attempt(target.kubectl, target.run))
    end_attempt(target.kubectl, target.run, newest->objects);
  if (!wait_for_end(target)) {
    print_error("reckon: pods of the run do not end; `reckon status` shows which\n");
    return kEnvironmentFailed;
  }
  set_phase(target.kubectl, target.run, RunPhase::stopped, "stopped on request");
  print(fmt::format(
      "{}: stopped; go on with: reckon run --on kubernetes --attach {}{}{} --resume\n", target.run,
      target.run, target.kubectl.name_space() == target.run ? "" : " --namespace ",
      target.kubectl.name_space() == target.run ? "" : target.kubectl.name_space()));
  return kDone;
}

int remove_run(const Target& target, bool with_claim) {
  const auto state = read_state(target.kubectl, target.run);
  if (!state) return no_such_run(target);
  if (state->phase == RunPhase::running) {
    print_error(fmt::format("reckon: {} runs; stop it first: reckon stop {} --on kubernetes\n",
                            target.run, target.run));
    return kAnswerIsNo;
  }
  print(delete_run(target.kubectl, target.run, with_claim));
  print(fmt::format("namespace {} is left{}\n", target.kubectl.name_space(),
                    with_claim ? ""
                               : ", and the checkpoints; --checkpoints deletes the claim that "
                                 "was made for them"));
  return kDone;
}

}  // namespace

std::vector<OptionText> cluster_run_options() { return shown_options<ClusterCommandOptions>(); }
std::vector<OptionText> delete_options() { return shown_options<DeleteOptions>(); }

int run_status_command(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<ClusterCommandOptions>(self, arguments);
  return options ? show_status(target_of(self, *options)) : kDone;
}

int run_stop(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<ClusterCommandOptions>(self, arguments);
  return options ? stop_run(target_of(self, *options)) : kDone;
}

int run_delete(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<DeleteOptions>(self, arguments);
  return options ? remove_run(target_of(self, *options), options->checkpoints) : kDone;
}

}  // namespace reckon::cli
