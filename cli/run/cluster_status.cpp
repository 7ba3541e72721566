#include <fmt/format.h>

#include <chrono>

#include "cli/output.h"
#include "cli/parse.h"
#include "cli/run/cluster_target.h"
#include "executor/kubernetes/kubernetes_run.h"
#include "executor/kubernetes/lease.h"
#include "executor/launch/progress_reader.h"
#include "report/rank_table.h"
#include "report/run/leftovers.h"
#include "sim/scenario/artifact/artifact.h"
#include "sim/scenario/resolve/container_metrics.h"

// `reckon status`: of one run in a cluster, and of what runs have left there.
namespace reckon::cli {
namespace {

using namespace kubernetes;

struct StatusOptions : ClusterCommandOptions, AnswerFormat {
  std::vector<Option> declared() {
    std::vector<Option> all = ClusterCommandOptions::declared();
    all.push_back(format_option());
    return all;
  }
};

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

/// `start`: the newest that pods of the run were told; -1: they take no orders.
std::string name_of_pod(const PodView& pod, std::int64_t start) {
  if (start >= 0 && pod.start() != start) return "stands by";
  return fmt::format("rank {}", start >= 0 ? pod.ordered_rank() : pod.rank);
}

RankStatus status_of(const Kubectl& kubectl, const std::optional<ProgressReader>& reader,
                     const PodView& pod, std::int64_t start) {
  RankStatus status{.name = name_of_pod(pod, start), .node = pod.node, .state = {}};
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

/// nullopt: none is there, or it may not be looked at.
std::optional<LauncherView> launcher_of(const ClusterTarget& target) {
  const KubectlResult lease = target.kubectl.attempt(
      {"get", "leases.coordination.k8s.io", lease_object_of(target.run), "--output=json"});
  if (!lease.good()) return std::nullopt;
  return launcher_view(Json::parse(lease.out, nullptr, false), std::chrono::system_clock::now());
}

Leftovers leftovers_in(const Kubectl& kubectl, const std::string& name_space,
                       const std::string& run) {
  return leftovers_of(look_for_leftovers(kubectl, name_space, run),
                      std::chrono::system_clock::now());
}

void print_run(const ClusterRunStatus& status) {
  const RunState& state = status.state;
  print(fmt::format("{}: {}{}{}{}, started {}\n", state.run, to_text(state.phase),
                    state.reason.empty() ? "" : ": ", state.reason,
                    status.attempt ? fmt::format(", attempt {}", *status.attempt) : "",
                    state.started));
  if (state.phase == RunPhase::running || state.phase == RunPhase::stopping)
    print(launcher_line(status) + '\n');
  constexpr std::size_t kMostLines = 64;
  if (!status.ranks.empty()) print(rank_table(status.ranks, kMostLines));
}

int show_run(const ClusterTarget& target, OutputFormat format) {
  const auto state = read_state(target.kubectl, target.run);
  if (!state) return no_such_run(target);
  ClusterRunStatus status{
      .state = *state, .attempt = {}, .launcher = launcher_of(target), .ranks = {}};
  if (const auto newest = newest_attempt(target.kubectl, target.run))
    status.attempt = newest->number;
  const auto reader = reader_of(*state);
  const std::vector<PodView> pods = newest_pods(target);
  std::int64_t start = -1;
  for (const PodView& pod : pods) start = std::max(start, pod.start());
  for (const PodView& pod : pods)
    status.ranks.push_back(status_of(target.kubectl, reader, pod, start));
  const Leftovers left = leftovers_in(target.kubectl, target.kubectl.name_space(), target.run);
  if (format == OutputFormat::json) {
    print(status_json(&status, left));
    return kDone;
  }
  print_run(status);
  print(leftovers_table(left));
  return kDone;
}

int show_leftovers(const StatusOptions& options) {
  refuse_unless_in_cluster(options);
  const Kubectl kubectl = Kubectl::of_user(options.context, options.name_space);
  const Leftovers left = leftovers_in(kubectl, options.name_space, "");
  if (options.format == OutputFormat::json) {
    print(status_json(nullptr, left));
    return kDone;
  }
  const std::string table = leftovers_table(left);
  const std::string where = options.name_space.empty() ? "this cluster" : options.name_space;
  if (left.items.empty()) print(fmt::format("no run has left anything in {}\n", where));
  print(table);
  if (!left.items.empty())
    print(
        "`reckon delete NAME --on kubernetes --namespace NAMESPACE` removes what a run that is "
        "over has left, with --checkpoints its claim too\n");
  return kDone;
}

}  // namespace

std::int64_t steps_told(const ClusterTarget& target, const RunState& state) {
  const auto reader = reader_of(state);
  for (const PodView& pod : newest_pods(target)) {
    RankStatus status;
    if (pod.started) add_last_step(target.kubectl, reader, pod, status);
    if (status.steps_done > 0) return status.steps_done;
  }
  return 0;
}

std::vector<OptionText> status_options() { return shown_options<StatusOptions>(); }

int run_status_command(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<StatusOptions>(self, arguments);
  if (!options) return kDone;
  if (options->files.empty()) return show_leftovers(*options);
  return show_run(target_of(self, *options), options->format);
}

}  // namespace reckon::cli
