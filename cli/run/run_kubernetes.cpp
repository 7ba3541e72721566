#include "cli/run/run_kubernetes.h"

#include <fmt/format.h>

#include "cli/errors.h"
#include "cli/exit_code.h"
#include "cli/history/history_store.h"
#include "cli/load/load.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "cli/run/cluster_options.h"
#include "cli/run/run_lease.h"
#include "cli/run/run_parts.h"
#include "executor/kubernetes/kubernetes_run.h"
#include "executor/kubernetes/preflight.h"
#include "executor/train/stop_signal.h"
#include "executor/train/trainable.h"
#include "report/json.h"
#include "report/rank_table.h"
#include "report/run/metrics.h"
#include "report/run/status.h"
#include "report/table.h"

namespace reckon::cli {
namespace {

using namespace kubernetes;

/// A run in a cluster between the command line and the executor.
class ClusterCommand {
 public:
  ClusterCommand(const RunOptions& asked, std::span<const std::string> arguments)
      : arguments_(arguments), asked_(asked), out_(asked.out) {}

  int run() { return asked_.attach.empty() ? begin() : take_up(asked_.attach); }

 private:
  // ---- a new run

  int begin() {
    const RunOptions& options = asked_;
    const std::string& file = options.files.front();
    const auto catalog = checked(load_catalogs(options));
    auto loaded = checked(load_plan_to_run(file, options, options, catalog));
    require_one_job(loaded, "a run");
    if (options.seed) loaded.plan.seed = *options.seed;
    places_ = loaded.file.places;
    artifact_ = for_cluster(artifact_of(std::move(loaded), file, options), catalog);
    if (const auto code = forecast(options)) return *code;
    keep_save_interval(artifact_.plan, *forecast_);
    const Diagnostics not_trained =
        not_trained_in_pods(artifact_, file, options.node_directory, WatchedPods::yes);
    if (!artifact_.container && asked_.image.empty())
      throw UsageError(
          "--image is missing: the image with reckon-worker, where the cluster's nodes can pull "
          "it; `make image` builds one");
    const std::string run = kubernetes_name(plan().name);
    const Kubectl kubectl = kubectl_of(run);
    const ClusterFacts facts = cluster_facts(kubectl);

    KubernetesRunOptions how = run_options(options, run);
    how.state = {.run = run,
                 .plan = write_artifact(artifact_),
                 .words = words_of_job(options, arguments_),
                 .started = RunClock::starting_now().text(),
                 .phase = RunPhase::running,
                 .reason = {}};
    how.files.earlier = Earlier::refused;
    how.files.plan = how.state.plan;
    KubernetesExport manifest = manifest_options(options, kubectl, facts, how.state);
    const auto first = checked(manifests(manifest, 0));
    const PreflightAnswer answer = preflight(kubectl, facts, question(options, run, first, true));
    report(answer.warnings);
    report(not_trained);
    report(answer.problems);
    if (asked_.dry_run) print(first);
    if (!not_trained.empty()) return kInputIsWrong;
    if (!answer.problems.empty()) return answer.no_room ? kAnswerIsNo : kEnvironmentFailed;
    if (asked_.dry_run) {
      print_error("preflight: the cluster would take it, and has room for it\n");
      return kDone;
    }
    if (!facts.namespace_exists) kubectl.run({"create", "namespace", kubectl.name_space()});
    keep(record_of(plan(), *forecast_, utc_now()));
    try {
      RunLease lease(kubectl, run, true);
      if (const auto code = lease.take()) return *code;
      return watch(options, lease, kubectl.name_space(), how, manifest);
    } catch (const LeaseLost& lost) {
      print_error(fmt::format("reckon: {}\n", lost_text(run, lost)));
    }
    out_ = how.files.directory.root.string();
    return take_up(run);
  }

  // ---- one that is there

  int take_up(const std::string& run) {
    refuse_unless_run_name(run);
    const Kubectl kubectl = kubectl_of(run);
    const ClusterFacts facts = cluster_facts(kubectl);
    for (bool resume = asked_.resume;; resume = false) {
      if (const auto code = is_over(kubectl, run, resume)) return *code;
      try {
        RunLease lease(kubectl, run, false);
        if (const auto code = lease.take()) return *code;
        // What it is now that nobody else acts on it. One that another launcher ran until now is
        // gone on with, not begun again.
        const auto state = read_state(kubectl, run);
        resume = resume && !(lease.stood_by() && state && state->phase == RunPhase::running);
        if (const auto code = is_over(kubectl, run, resume)) return *code;
        return go_on(lease, facts, *state, resume);
      } catch (const LeaseLost& lost) {
        print_error(fmt::format("reckon: {}\n", lost_text(run, lost)));
      }
    }
  }

  /// The exit code, where there is no such run or nothing to do for it.
  static std::optional<int> is_over(const Kubectl& kubectl, const std::string& run, bool resume) {
    if (const auto state = read_state(kubectl, run)) return is_over(*state, resume);
    print_error(
        fmt::format("reckon: there is no run '{}' in namespace {}; --namespace names another\n",
                    run, kubectl.name_space()));
    return kInputIsWrong;
  }

  static std::optional<int> is_over(const RunState& state, bool resume) {
    if (state.phase == RunPhase::running || (resume && state.phase != RunPhase::finished))
      return std::nullopt;
    print(fmt::format("{}: {}{}{}\n", state.run, to_text(state.phase),
                      state.reason.empty() ? "" : ": ", state.reason));
    if (state.phase == RunPhase::finished) return kDone;
    if (state.phase == RunPhase::failed) return state.exit_code.value_or(kAnswerIsNo);
    print_error("--resume goes on from its last checkpoint\n");
    return kExitStoppedOnRequest;
  }

  int go_on(RunLease& lease, const ClusterFacts& facts, RunState state, bool resume) {
    namespace fs = std::filesystem;
    const Kubectl kubectl = lease.kubectl();
    const fs::path directory =
        fs::absolute(out_.empty() ? fs::path("runs") / state.run : fs::path(out_));
    create_directories_durably(directory);
    ReadArtifact read =
        checked(read_artifact(state.plan, fmt::format("the plan of {}", state.run)));
    if (auto problem = why_not_run(read, state.run)) throw WrongInput({std::move(*problem)});
    artifact_ = std::move(read.artifact);
    RunOptions options = taken_up(state.words, asked_);
    options.out = directory.string();
    if (const auto code = forecast(options)) return *code;

    KubernetesRunOptions how = run_options(options, state.run);
    how.create = false;
    how.files.earlier = Earlier::taken_up;
    how.files.plan = state.plan;
    const auto newest = newest_attempt(kubectl, state.run);
    const bool over = !newest || newest->pods_wanted == 0 || resume;
    how.first_attempt = !newest ? 0 : newest->number + (over ? 1 : 0);
    const int pods = plan().only_job().strategy.workers + plan().only_job().strategy.server_count();
    // Fewer than all: the launcher that made them was lost in between.
    how.objects = newest ? newest->objects : 0;
    how.secret_is_there = newest && !over;
    how.first_is_there = newest && !over && newest->pods_wanted == pods;
    how.state = std::move(state);
    if (resume) {
      if (newest) end_attempt(kubectl, how.state.run, newest->objects);
      resume_state(kubectl, how.state.run, how.first_attempt);
      how.state.counted_from = how.first_attempt;
    }
    return watch(options, lease, kubectl.name_space(), how,
                 manifest_options(options, kubectl, facts, how.state));
  }

  // ---- both

  Kubectl kubectl_of(const std::string& run) const {
    const std::string& space = asked_.name_space;
    return Kubectl::of_user(asked_.context, space.empty() ? run : space);
  }

  const Plan& plan() const { return artifact_.plan; }
  bool pods_stay() const { return !artifact_.container && goes_on_in_pods(plan()); }

  /// The exit code, where there is nothing to run.
  std::optional<int> forecast(const RunOptions& options) {
    forecast_ = forecast_with_effects(options, plan());
    if (forecast_->feasible) return std::nullopt;
    print(forecast_table(*forecast_));
    return kInputIsWrong;
  }

  KubernetesExport manifest_options(const RunOptions& options, const Kubectl& kubectl,
                                    const ClusterFacts& facts, const RunState& state) const {
    KubernetesExport manifest = kubernetes_options(options);
    manifest.minor = facts.minor;
    manifest.name_space = kubectl.name_space();
    manifest.make_namespace = !facts.namespace_exists;
    manifest.watched = true;
    manifest.standing = pods_stay();
    manifest.run_started = state.started;
    manifest.arguments = worker_words(options);
    return manifest;
  }

  Expected<std::string> manifests(KubernetesExport manifest, std::int64_t attempt) const {
    manifest.attempt = int(attempt);
    return kubernetes_manifests(artifact_, manifest, places_);
  }

  PreflightQuestion question(const RunOptions& options, const std::string& run,
                             const std::string& first, bool makes_run) const {
    PreflightQuestion q{.manifests = first,
                        .run = run,
                        .claim = options.claim,
                        .storage_class = options.storage_class,
                        .pull_secret = options.pull_secret,
                        .store_secret = options.store_secret,
                        .makes_claim = options.claim.empty() && options.bucket.empty(),
                        .makes_secret = needs_kubernetes_secret(artifact_),
                        .makes_run = makes_run,
                        .cordons = options.cordon_slow,
                        .stays = pods_stay()};
    if (artifact_.container)
      q.reads_metrics = progress_of(*artifact_.container).prometheus().has_value();
    for (const PlannedPool& pool : plan().pools) q.autoscaling = q.autoscaling || pool.autoscaling;
    return q;
  }

  KubernetesRunOptions run_options(const RunOptions& options, const std::string& run) const {
    KubernetesRunOptions how;
    how.files.directory = directory_of(options, plan());
    how.files.forecast_text = forecast_json(*forecast_);
    how.state.run = run;
    if (needs_kubernetes_secret(artifact_))
      how.secret = {.object = kubernetes_secret_name(run), .key = kKubernetesSecretKey};
    if (artifact_.container) how.foreign = progress_of(*artifact_.container);
    how.digests = digests_of(artifact_);
    how.stays = pods_stay();
    how.retry = retry_of(options, plan().retry);
    how.notice = options.notice;
    how.cordon_slow = options.cordon_slow;
    how.pending_deadline = options.pending.value_or(how.pending_deadline);
    how.deadline = deadline_of(options, plan());
    return how;
  }

  int watch(const RunOptions& options, RunLease& lease, const std::string& name_space,
            KubernetesRunOptions& how, KubernetesExport manifest) {
    manifest.make_namespace = false;  // it is there by now
    how.manifests = [this, manifest](std::int64_t attempt) {
      return *manifests(manifest, attempt);
    };
    Display display;
    const auto metrics = metrics_server(options, display);
    std::string table;
    KubernetesObserver observer;
    observer.ranks = [&](const std::vector<RankStatus>& ranks) {
      constexpr std::size_t kMostLines = 16;
      table = rank_table(ranks, kMostLines);
    };
    observer.run.status = [&](const RunStatus& s) {
      display.status(s, table);
      if (metrics) metrics->publish(run_metrics(plan().name, s, std::chrono::system_clock::now()));
    };
    observer.run.output = [&](std::string_view process, std::string_view line) {
      display.line(fmt::format("[{}] {}", process, line));
    };
    observer.run.message = [&](const std::string& text) { display.line(text); };
    lease.look_for_stop();
    const Kubectl kubectl = lease.kubectl();
    const RunEnd end = run_on_kubernetes(plan(), *forecast_, kubectl, how, observer,
                                         [&] { return lease.request(observer.run.message); });
    const std::optional<Usd> cost =
        keep_and_draw(plan(), *forecast_, how.files.directory, InHistory::yes);
    if (end.end.verdict == Verdict::stopped)
      display.line(fmt::format("go on with: reckon run --on kubernetes --attach {}{}{} --resume",
                               how.state.run, name_space == how.state.run ? "" : " --namespace ",
                               name_space == how.state.run ? "" : name_space));
    print(options.format == OutputFormat::json ? run_json(end, *forecast_, cost)
                                               : run_summary(end, *forecast_, cost));
    return end.end.exit_code;
  }

  std::span<const std::string> arguments_;  // of the user
  const RunOptions& asked_;
  std::string out_;  // "": runs/NAME
  RunArtifact artifact_;
  Places places_;  // of the scenario, where it was read just now
  std::optional<Forecast> forecast_;
};

}  // namespace

int run_in_cluster(const RunOptions& options, std::span<const std::string> arguments) {
  return ClusterCommand(options, arguments).run();
}

}  // namespace reckon::cli
