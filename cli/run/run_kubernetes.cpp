#include "cli/run/run_kubernetes.h"

#include <fmt/format.h>

#include "cli/errors.h"
#include "cli/exit_code.h"
#include "cli/history/history_store.h"
#include "cli/load/load.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "cli/run/cluster_command.h"
#include "cli/run/cluster_options.h"
#include "cli/run/run_lease.h"
#include "cli/run/run_parts.h"
#include "executor/kubernetes/pods/free_room.h"
#include "executor/train/checkpoint/checkpoint_shard.h"
#include "executor/train/recipe/training_recipe.h"
#include "executor/train/stop_signal.h"
#include "executor/train/trainable.h"
#include "report/json.h"
#include "report/table.h"
#include "sim/scenario/restart.h"

namespace reckon::cli {

using namespace kubernetes;

int ClusterCommand::begin() {
  const RunOptions& options = asked_;
  const std::string& file = options.files.front();
  catalog_.emplace(checked(load_catalogs(options)));
  makes_ = options;
  artifact_ = artifact_by(options);
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
  if (options.unattended) {
    ignore_termination();
    if (facts.namespace_exists && read_state(kubectl, run)) return take_up(run);
  }

  KubernetesRunOptions how = run_options(options, run);
  how.state = {.run = run,
               .plan = write_artifact(artifact_),
               .words = words_of_job(options, arguments_),
               .started = RunClock::starting_now().text(),
               .phase = RunPhase::running,
               .reason = {},
               .parts = {RunPart{}}};
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

int ClusterCommand::take_up(const std::string& run) {
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

std::optional<int> ClusterCommand::is_over(const Kubectl& kubectl, const std::string& run,
                                           bool resume) {
  if (const auto state = read_state(kubectl, run)) return is_over(*state, resume);
  print_error(
      fmt::format("reckon: there is no run '{}' in namespace {}; --namespace names another\n", run,
                  kubectl.name_space()));
  return kInputIsWrong;
}

std::optional<int> ClusterCommand::is_over(const RunState& state, bool resume) {
  if (state.phase == RunPhase::running || (resume && state.phase != RunPhase::finished))
    return std::nullopt;
  print(fmt::format("{}: {}{}{}\n", state.run, to_text(state.phase),
                    state.reason.empty() ? "" : ": ", state.reason));
  if (state.phase == RunPhase::finished) return kDone;
  if (state.phase == RunPhase::failed) return state.exit_code.value_or(kAnswerIsNo);
  print_error("--resume goes on from its last checkpoint\n");
  return state.exit_code.value_or(kExitStoppedOnRequest);  // of a run that its budget ended
}

RunArtifact ClusterCommand::artifact_by(const RunOptions& options) {
  const std::string& file = options.files.front();
  auto loaded = checked(load_run(options, *catalog_));
  require_one_job(loaded, "a run");
  places_ = loaded.file.places;
  budget_ = budget_of(options, loaded);
  const RunArtifact planned = artifact_of(std::move(loaded), file, options);
  tell_left_out(planned);
  return for_cluster(planned, *catalog_);
}

RunArtifact ClusterCommand::changed_plan(const RunOptions& options) {
  RunArtifact changed = artifact_by(options);
  const auto recipe = [](const Plan& plan) {
    return identity_of_job(plan, plan.only_job().data).recipe;
  };
  const auto changes = changes_between(recipe(plan()), recipe(changed.plan));
  if (changes.empty()) return changed;
  std::string what;
  for (const SettingChange& c : changes)
    what += fmt::format("{}{}: recorded {}, now {}", what.empty() ? "" : "; ", c.name, c.recorded,
                        c.now);
  throw WrongInput({{.at = {.file = "--set"},
                     .what = "the run was trained under other settings: " + what,
                     .hint = "in a cluster a run goes on with the training that it began"}});
}

void ClusterCommand::begin_part(RunState& state, std::int64_t attempt) {
  const auto clock = RunClock::parse(state.started);
  state.counted_from = attempt;
  state.parts.push_back({.attempt = attempt, .at = clock ? clock->now() : Seconds{0}});
}

std::optional<int> ClusterCommand::refused(const RunOptions& options, const Kubectl& kubectl,
                                           const ClusterFacts& facts, const RunState& state,
                                           std::int64_t attempt) {
  const auto first = checked(manifests(manifest_options(options, kubectl, facts, state), attempt));
  const PreflightAnswer answer =
      preflight(kubectl, facts, question(options, state.run, first, false));
  report(answer.warnings);
  const Diagnostics not_trained =
      not_trained_in_pods(artifact_, "--set", options.node_directory, WatchedPods::yes);
  report(not_trained);
  report(answer.problems);
  if (!not_trained.empty()) return kInputIsWrong;
  if (answer.problems.empty()) return std::nullopt;
  return answer.no_room ? kAnswerIsNo : kEnvironmentFailed;
}

int ClusterCommand::go_on(RunLease& lease, const ClusterFacts& facts, RunState state, bool resume) {
  namespace fs = std::filesystem;
  const Kubectl kubectl = lease.kubectl();
  const fs::path directory =
      fs::absolute(out_.empty() ? fs::path("runs") / state.run : fs::path(out_));
  create_directories_durably(directory);
  ReadArtifact read = checked(read_artifact(state.plan, fmt::format("the plan of {}", state.run)));
  if (auto problem = why_not_run(read, state.run)) throw WrongInput({std::move(*problem)});
  artifact_ = std::move(read.artifact);
  RunOptions options = taken_up(state.words, asked_);
  options.out = directory.string();
  catalog_.emplace(checked(load_catalogs(options)));
  // The plan lies here as on the machine where the run was begun.
  const fs::path plan_file = RunDirectory{directory}.plan();
  {
    const RunLock lock(directory);
    refuse_other_run({directory}, state.started);
    if (!fs::is_regular_file(plan_file) || read_text(plan_file) != state.plan)
      write_durably(plan_file, state.plan);
  }
  options.files = {plan_file.string()};
  const bool other_plan = resume && options.changes_plan();
  if (options.budget && !other_plan) {
    RunOptions as_it_is = options;
    as_it_is.catalogs.clear();
    as_it_is.calibrations.clear();
    artifact_by(as_it_is);  // whose budget_ is read so
  }
  if (other_plan) artifact_ = changed_plan(options);
  options.overrides.clear();
  options.layers.clear();
  makes_ = options;
  plan_is_read_ = true;
  if (const auto code = forecast(options)) return *code;
  if (other_plan) keep_save_interval(artifact_.plan, *forecast_);

  KubernetesRunOptions how = run_options(options, state.run);
  how.create = false;
  how.files.earlier = Earlier::taken_up;
  const auto newest = newest_attempt(kubectl, state.run);
  // Who had decided it was lost before the run was stopped for it.
  const bool plan_waits = newest && newest->number < state.plan_from;
  const bool over = !newest || newest->pods_wanted == 0 || resume || plan_waits;
  how.first_attempt = !newest ? 0 : newest->number + (over ? 1 : 0);
  if (other_plan) {
    state.plan = write_artifact(artifact_);
    state.plan_from = how.first_attempt;
    if (const auto code = refused(options, kubectl, facts, state, how.first_attempt)) return *code;
  }
  how.files.plan = state.plan;
  const int pods = plan().only_job().strategy.workers + plan().only_job().strategy.server_count() +
                   (pods_stay() ? spare_workers(plan()) : 0);
  // Fewer than all: the launcher that made them was lost in between.
  how.objects = newest ? newest->objects : 0;
  how.secret_is_there = newest && !over;
  how.first_is_there = newest && !over && newest->pods_wanted == pods;
  how.state = std::move(state);
  if (newest && over) {
    if (newest->pods_wanted > 0)
      print_error(fmt::format("attempt {} ends behind a checkpoint; the run goes on{}\n",
                              newest->number,
                              plan_waits   ? " under the plan that was decided"
                              : other_plan ? " under the new plan"
                                           : ""));
    const auto goes_on = [&] {
      return lease.request([](const std::string& news) {
        print_error(fmt::format("reckon: {}\n", news));
      }) == StopRequest::none;
    };
    const bool ended = end_attempt_and_wait(kubectl, how.state.run, newest->objects,
                                            time_to_end(options.notice), goes_on);
    if (!ended && !goes_on()) {
      print_error(fmt::format("reckon: nothing new of {} is started\n", how.state.run));
      return kExitStoppedOnRequest;
    }
    if (!ended)
      throw KubectlError(KubectlFailure::setup,
                         "pods of the run do not end; `reckon status` shows which");
  }
  if (resume) {
    begin_part(how.state, how.first_attempt);
    resume_state(kubectl, how.state.run, how.first_attempt);
  }
  how.begins_part = resume;
  return watch(options, lease, kubectl.name_space(), how,
               manifest_options(options, kubectl, facts, how.state));
}

Kubectl ClusterCommand::kubectl_of(const std::string& run) const {
  const std::string& space = asked_.name_space;
  return Kubectl::of_user(asked_.context, space.empty() ? run : space);
}

std::optional<int> ClusterCommand::forecast(const RunOptions& options) {
  forecast_ = forecast_with_effects(options, plan());
  if (forecast_->feasible) return std::nullopt;
  print(forecast_table(*forecast_));
  return kInputIsWrong;
}

KubernetesExport ClusterCommand::manifest_options(const RunOptions& options, const Kubectl& kubectl,
                                                  const ClusterFacts& facts,
                                                  const RunState& state) const {
  KubernetesExport manifest = kubernetes_options(options);
  manifest.minor = facts.minor;
  manifest.name_space = kubectl.name_space();
  manifest.make_namespace = !facts.namespace_exists;
  manifest.watched = true;
  manifest.standing = pods_stay();
  manifest.run_started = state.started;
  // Made for the first plan's checkpoints: what is claimed cannot be changed.
  if (state.plan_from > 0 && manifest.claim.empty() && manifest.bucket.empty())
    manifest.claim = state.run + "-checkpoints";
  manifest.arguments = worker_words(options);
  return manifest;
}

Expected<std::string> ClusterCommand::manifests(KubernetesExport manifest,
                                                std::int64_t attempt) const {
  manifest.attempt = int(attempt);
  return kubernetes_manifests(artifact_, manifest, places_);
}

PreflightQuestion ClusterCommand::question(const RunOptions& options, const std::string& run,
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

KubernetesRunOptions ClusterCommand::run_options(const RunOptions& options,
                                                 const std::string& run) const {
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
  how.patience = artifact_.container
                     ? patience_with_program(options.hang)
                     : patience_with_pods(options.hang, forecast_->step.step, between_steps());
  how.cordon_slow = options.cordon_slow;
  how.pending_deadline = options.pending.value_or(how.pending_deadline);
  how.files.digest = how.digests.run;
  how.deadline = deadline_of(options, plan());
  how.budget = budget_;
  return how;
}

/// The longest of what comes between two steps, as forecast.
Seconds ClusterCommand::between_steps() const {
  const PlannedWorkload& job = plan().only_job();
  const Seconds save = checkpoint_save_time(plan(), job);
  if (job.evaluations == 0) return save;
  return std::max(save, evaluation_time(plan(), job, forecast_->step));
}

int run_in_cluster(const RunOptions& options, std::span<const std::string> arguments) {
  return ClusterCommand(options, arguments).run();
}

}  // namespace reckon::cli
