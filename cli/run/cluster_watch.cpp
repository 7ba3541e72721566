#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "cli/history/history_store.h"
#include "cli/output.h"
#include "cli/run/cluster_command.h"
#include "cli/run/run_resume.h"
#include "executor/train/stop_signal.h"
#include "report/json.h"
#include "report/rank_table.h"
#include "report/run/metrics.h"
#include "report/run/status.h"

namespace reckon::cli {

using namespace kubernetes;

ClusterPart ClusterCommand::decided(const std::vector<std::string>& changes) const {
  RunOptions next = makes_;
  next.overrides.insert(next.overrides.end(), changes.begin(), changes.end());
  const std::string& file = next.files.front();
  auto loaded = checked(load_run(next, *catalog_));
  require_one_job(loaded, "a run");
  ClusterPart part{for_cluster(artifact_of(std::move(loaded), file, next), *catalog_), {}};
  part.forecast = forecast_with_effects(next, part.artifact.plan);
  if (!part.forecast.feasible) throw std::runtime_error("it does not fit in memory");
  keep_save_interval(part.artifact.plan, part.forecast);
  return part;
}

std::optional<RunState> ClusterCommand::state_to_go_on(const Kubectl& kubectl,
                                                       const std::string& run) {
  const auto state = patiently([&] { return read_state(kubectl, run); }, wait_unless_stopped);
  if (!state || state->phase != RunPhase::running) return std::nullopt;
  return state;
}

bool ClusterCommand::wait_unless_stopped(const KubectlError&, Seconds delay) {
  const auto until = std::chrono::steady_clock::now() + delay;
  while (stop_requests() == 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return stop_requests() == 0;
}

bool ClusterCommand::begin_next(const RunOptions& options, const Kubectl& kubectl,
                                KubernetesRunOptions& how, ClusterPart part,
                                const std::vector<std::string>& changes, int starts) {
  auto state = state_to_go_on(kubectl, how.state.run);
  if (!state) return false;
  artifact_ = std::move(part.artifact);
  forecast_ = std::move(part.forecast);
  if (!plan_is_read_)
    makes_.overrides.insert(makes_.overrides.end(), changes.begin(), changes.end());
  const std::int64_t first = how.first_attempt + starts;
  how = run_options(options, state->run);
  how.create = false;
  how.first_attempt = first;
  how.begins_part = true;
  how.files.earlier = Earlier::taken_up;
  state->plan_from = first;
  patiently(
      [&] {
        RunState next = *state;
        begin_part(next, first);
        count_from(kubectl, next.run, first);  // it runs, if nobody has stopped it since
        how.state = std::move(next);
        return 0;
      },
      wait_unless_stopped);
  how.files.plan = how.state.plan;
  return true;
}

int ClusterCommand::watch(const RunOptions& options, RunLease& lease, const std::string& name_space,
                          KubernetesRunOptions& how, KubernetesExport manifest) {
  manifest.make_namespace = false;  // it is there by now
  Display display;
  const auto metrics = metrics_server(options, display);
  watch_stop_signals();
  lease.look_for_stop();
  const Kubectl kubectl = lease.kubectl();
  Replanner replanner(options, {how.deadline, budget_},
                      runs_in_cluster(options, how.state.run, kubectl), *catalog_, display);
  DecidedPlan next(
      [&](const auto& changes) {
        if (!replanner.files_are_as_begun())
          throw std::runtime_error(makes_.files.front() +
                                   " makes another plan now than the run has");
        return decided(changes);
      },
      kubectl, display);
  std::string table;
  KubernetesObserver observer;
  observer.ranks = [&](const std::vector<RankStatus>& ranks) {
    constexpr std::size_t kMostLines = 16;
    table = rank_table(ranks, kMostLines);
  };
  observer.run.status = [&](const RunStatus& s) {
    display.status(s, table);
    if (metrics) metrics->publish(run_metrics(plan().name, s, std::chrono::system_clock::now()));
    replanner.look(s);
    if (replanner.stops()) next.look(replanner.taken(), how.state, s.attempt);
  };
  observer.decides = [&](DecisionRecord& decision, const RunStatus& now, const RunEnds& then) {
    replanner.add_ends(decision, now, then);
  };
  observer.run.output = [&](std::string_view process, std::string_view line) {
    display.line(fmt::format("[{}] {}", process, line));
  };
  observer.run.message = [&](const std::string& text) { display.line(text); };
  const auto changes_plan = [&] {
    return replanner.stops() && next.is_there() && stop_requests() == 0;
  };
  const auto run_part = [&] {
    how.manifests = [this, manifest](std::int64_t attempt) {
      return *manifests(manifest, attempt);
    };
    how.goes_on = [&] { return changes_plan() ? replanner.reason() : std::string(); };
    replanner.begin(makes_, artifact_, how.files.directory);
    return run_on_kubernetes(plan(), *forecast_, kubectl, how, observer, [&] {
      const StopRequest asked = lease.request(observer.run.message);
      return asked == StopRequest::none && changes_plan() ? StopRequest::own : asked;
    });
  };
  RunEnd end = run_part();
  while (changes_plan() && end.end.verdict == Verdict::stopped && !end.budget_spent) {
    display.line("the run " + replanner.reason());
    const std::vector<std::string> changes = replanner.take();
    if (!begin_next(options, kubectl, how, next.take(), changes, end.end.attempts)) break;
    manifest = manifest_options(options, kubectl,
                                {.minor = manifest.minor, .namespace_exists = true}, how.state);
    end = run_part();
  }
  return tell_end(options, name_space, how, end, display);
}

int ClusterCommand::tell_end(const RunOptions& options, const std::string& name_space,
                             const KubernetesRunOptions& how, const RunEnd& end, Display& display) {
  const WholeRun whole =
      end.ran ? keep_and_draw(plan(), *forecast_, how.files.directory, end, InHistory::yes)
              : run_without_records(end);
  const std::string more =
      end.budget_spent && end.status.estimate.cost_usd ? " --budget " + budget_for(end) : "";
  if (!end.ran && how.create)
    display.line("nothing was started");
  else if (end.end.verdict == Verdict::stopped)
    display.line("go on with: " + attach_command(asked_, how.state.run, name_space) + " --resume" +
                 more);
  print(options.format == OutputFormat::json ? run_json(end, *forecast_, whole)
                                             : run_summary(end, *forecast_, whole));
  return end.end.exit_code;
}

}  // namespace reckon::cli
