#include "cli/run/run_options.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "cli/options/usage_error.h"
#include "cli/options/values.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

Read whole_retries(std::optional<int>& to) {
  return [&to](const std::string& name, const std::string& text) {
    const auto limit = parse_integer(text);
    if (!limit || *limit < 0 || *limit > 1'000'000)
      throw UsageError(fmt::format("--{} takes a whole number, such as 6", name));
    to = int(*limit);
  };
}

Read metrics_address(std::optional<ListenAddress>& to) {
  return [&to](const std::string& name, const std::string& text) {
    const auto address = parse_listen_address(text);
    if (!address) throw UsageError(fmt::format("--{}: {}", name, address.error()));
    to = *address;
  };
}

Read money_amount(std::optional<MoneyText>& to) {
  return [&to](const std::string& name, const std::string& text) {
    const auto amount = parse_money(text);
    if (!amount) throw UsageError(fmt::format("--{}: {}", name, amount.error()));
    if (!(amount->amount > 0)) throw UsageError(fmt::format("--{} must be above 0", name));
    to = *amount;
  };
}

void refuse_outside_of_cluster(const RunOptions& o) {
  refuse_given(
      {{"context", !o.context.empty()},
       {"namespace", !o.name_space.empty()},
       {"image", !o.image.empty()},
       {"pull-secret", !o.pull_secret.empty()},
       {"bucket", !o.bucket.empty()},
       {"claim", !o.claim.empty()},
       {"storage-class", !o.storage_class.empty()},
       {"store-secret", !o.store_secret.empty()},
       {"node-dir", !o.node_directory.empty()},
       {"dry-run", o.dry_run},
       {"attach", !o.attach.empty()},
       {"unattended", o.unattended},
       {"pending", o.pending.has_value()},
       {"cordon-slow", o.cordon_slow}},
      [](const char* name) { return fmt::format("--{} goes with --on kubernetes", name); });
}

void refuse_in_cluster(const RunOptions& o) {
  if (o.accept_changes)
    throw UsageError("--accept-changes is for runs on this machine: in a cluster training stays");
  if (!o.attach.empty() && !o.resume && o.changes_plan())
    throw UsageError("--attach goes on under the plan as it is; with --resume --set changes it");
  if (o.unattended && (!o.attach.empty() || o.dry_run))
    throw UsageError("--unattended begins the plan's run or attaches to it, without --attach");
  if (!o.attach.empty() && !o.files.empty())
    throw UsageError("--attach takes no scenario: the plan of the run is in the cluster");
  if (o.attach.empty() && o.resume)
    throw UsageError("on Kubernetes --resume goes with --attach NAME: the plan is in the cluster");
}

}  // namespace

std::vector<Option> RunOptions::declared() {
  return {
      on_option(on),
      context_option(),
      space_option(),
      image_option(),
      pull_secret_option(),
      bucket_option(),
      claim_option(),
      storage_class_option(),
      store_secret_option(),
      node_directory_option(),
      {{"dry-run", "", "on Kubernetes: print the manifests and check whether they would run"},
       given(dry_run)},
      {{"attach", "NAME", "on Kubernetes: attach to a run and supervise it"}, text(attach)},
      {{"unattended", "",
        "on Kubernetes: attach to the plan's run if it is there, and leave it on SIGTERM"},
       given(unattended)},
      pending_option(pending),
      {{"cordon-slow", "",
        "on Kubernetes: cordon the node of a rank that is slow beyond its kind, and replace its "
        "pod"},
       given(cordon_slow)},
      {{"checkpoint-steps", "N", "steps between checkpoints (the scenario's workload.checkpoint)"},
       whole(checkpoint_steps, 1)},
      out_option(),
      {{"resume", "", "resume the run in --out from its last checkpoint"}, given(resume)},
      {{"accept-changes", "", "with --resume: resume although the training settings changed"},
       given(accept_changes)},
      {deadline_text(), duration(deadline)},
      {{"budget", "MONEY", "stop behind a checkpoint before the cost passes this, such as 20USD"},
       money_amount(budget)},
      {{"replan", words<ReplanMode>(),
        "when the deadline or budget will be missed: say what helps, or do it (ask)"},
       word(replan)},
      {{"notice", "DURATION", "grace period for a final checkpoint (30s)"}, duration(notice)},
      {{"retries", "N", "restarts before the job fails (the service's)"}, whole_retries(retries)},
      {{"retry-delay", "DURATION",
        "wait before the first restart, doubled for each further one (the service's)"},
       duration(retry_delay)},
      {{"hang", "DURATION",
        "end and restart processes that make no progress for this long (1min, or 20 steps; a "
        "program of your own: 30min; 0s: never)"},
       duration(hang)},
      {{"metrics", "[ADDRESS:]PORT",
        "Prometheus port for the run's metrics, on loopback unless an address is given, such as "
        "0.0.0.0:9090 (port 0 picks a free one)"},
       metrics_address(metrics)},
      {{"token-file", "FILE", "file with the bearer token for --metrics (none)"}, text(token_file)},
      format_option(),
      set_option(),
      layer_option(),
      seed_option(),
      replications_option(),
      catalog_option(),
      calibration_option(),
      threads_option()};
}

void RunOptions::check() const {
  if (files.size() > 1) throw UsageError("run takes one scenario file");
  if (on == RunPlace::kubernetes) return refuse_in_cluster(*this);
  refuse_outside_of_cluster(*this);
  if (accept_changes && !resume) throw UsageError("--accept-changes goes with --resume");
}

std::vector<std::string> words_of_job(const RunOptions& options,
                                      std::span<const std::string> arguments) {
  static const std::array<std::string, 18> kOfJob{
      "checkpoint-steps", "image",       "pull-secret",  "bucket",      "claim",   "storage-class",
      "deadline",         "notice",      "retries",      "retry-delay", "pending", "node-dir",
      "store-secret",     "cordon-slow", "replications", "budget",      "replan",  "hang"};
  RunOptions again = options;
  return words_that_give(kOfJob, again.declared(), arguments);
}

RunOptions taken_up(std::span<const std::string> words, const RunOptions& asked) {
  RunOptions options;
  read_words(options.declared(), options.files, words);
  options.out = asked.out;
  options.metrics = asked.metrics;
  options.token_file = asked.token_file;
  options.context = asked.context;
  options.name_space = asked.name_space;
  options.resume = asked.resume;
  options.attach = asked.attach;
  options.format = asked.format;
  options.threads = asked.threads;
  if (asked.deadline) options.deadline = asked.deadline;
  if (asked.budget) options.budget = asked.budget;
  if (asked.replan) options.replan = asked.replan;
  options.overrides = asked.overrides;
  options.layers = asked.layers;
  options.catalogs = asked.catalogs;
  options.calibrations = asked.calibrations;
  return options;
}

std::vector<std::string> worker_words(const RunOptions& options) {
  if (!options.checkpoint_steps) return {};
  return {"--checkpoint-steps", std::to_string(*options.checkpoint_steps)};
}

}  // namespace reckon::cli
