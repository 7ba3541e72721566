#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/command.h"
#include "cli/errors.h"
#include "cli/export/parts.h"
#include "cli/output.h"
#include "cli/run/run_parts.h"
#include "exchange/foreign/ai_platform/ai_platform.h"
#include "exchange/gcloud.h"
#include "exchange/kubernetes/kubernetes.h"
#include "exchange/kubernetes/serving.h"
#include "exchange/yaml_text.h"
#include "executor/comm/rendezvous/job_secret.h"
#include "executor/serve/served_model.h"
#include "executor/train/trainable.h"
#include "sim/base/text/shell_word.h"
#include "sim/scenario/yaml/document.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon::cli {
namespace {

/// The scenario as it stands in its file, with the command line's changes.
Expected<YamlNode> document_of(const std::string& file, const ExportOptions& options) {
  const auto flat = flat_scenario(read_text(file), file, options.overrides, options.layers, {});
  if (!flat) return tl::unexpected(flat.error());
  return parse_yaml(*flat, file);
}

/// Pods that go on with those that are left need somebody who watches them.
JobShape shape_of(const LoadedPlan& loaded, const ExportOptions& options) {
  const bool own = loaded.file.scenario.workload && loaded.file.scenario.workload->container;
  const bool watched = loaded.plan.jobs.size() == 1 && !own && goes_on_in_pods(loaded.plan);
  return as_one_of<JobShape>(options, "kubernetes")
      .value_or(watched ? JobShape::launcher : JobShape::job);
}

/// The manifests of a job of several processes name a Secret and do not hold it: they are read and
/// kept by many. Where it is not asked for, they say at their top what makes it.
Expected<std::string> manifests(const std::string& file, const LoadedPlan& loaded,
                                const ExportOptions& options, const LoadedCatalog& catalog) {
  KubernetesExport how = manifest_of(options);
  how.as = shape_of(loaded, options);
  const RunArtifact artifact = for_cluster(artifact_of(loaded, file, options), catalog);
  const bool wanted = how.as != JobShape::launcher && needs_kubernetes_secret(artifact);
  if (wanted && options.with_secret) how.job_secret = JobSecret::random().text();
  auto text = kubernetes_manifests(artifact, how, loaded.file.places);
  if (!text || !wanted || !how.job_secret.empty()) return text;
  const std::string run = kubernetes_name(loaded.plan.name);
  const std::string space = how.name_space.empty() ? run : how.name_space;
  *text = fmt::format(
              "# The job's processes know each other by a secret. Behind `kubectl apply` make it, "
              "once;\n# the pods wait for it:\n"
              "#   openssl rand -hex 32 | kubectl --namespace {} create secret generic {} \\\n"
              "#     --from-file={}=/dev/stdin\n",
              shell_word(space), kubernetes_secret_name(run), kKubernetesSecretKey) +
          *text;
  return text;
}

Expected<std::string> exported(const std::string& to, const std::string& file,
                               const LoadedPlan& loaded, const ExportOptions& options,
                               const LoadedCatalog& catalog) {
  if (to == "gcloud") return gcloud_commands(loaded.file, loaded.plan);
  if (to == "ai-platform") {
    const auto document = document_of(file, options);
    if (!document) return tl::unexpected(document.error());
    return ai_platform_config(loaded.file, *document, catalog);
  }
  return manifests(file, loaded, options, catalog);
}

/// `--as serving`: the service of the scenario, with or without a training beside it.
int export_serving(ServerKind kind, const ExportOptions& options, const LoadedCatalog& catalog) {
  const auto loaded = checked(load_all(options.files[1], options, catalog));
  if (!loaded.serving)
    throw UsageError(fmt::format(
        "{} serves nothing: add the block serving: {{requests_per_second: 200, replicas: {{min: "
        "2, max: 10}}}} and a pool with role inference",
        options.files[1]));
  auto reason = why_not_exported(*loaded.serving, kind);
  if (!reason && kind == ServerKind::reckon) {
    reason = why_not_served(loaded.serving->model);
    if (reason) *reason += ": reckon-worker serve cannot answer with it; --as tensorflow-serving";
  }
  if (reason) throw UsageError(fmt::format("{}: {}", options.files[1], *reason));
  put_out(options, serving_manifests(*loaded.serving, catalog, kind, manifest_of(options)));
  return kDone;
}

int export_plan(const std::string& to, const ExportOptions& options, const LoadedCatalog& catalog) {
  const std::string& file = options.files[1];
  const auto loaded = checked(load_plan_that_fits(file, options, catalog));
  const auto text = checked(exported(to, file, loaded, options, catalog));
  put_out(options, text);
  if (to != "kubernetes") return kDone;
  for (const PlannedPool& pool : loaded.plan.pools)
    if (pool.role == Role::evaluator)
      print_error(fmt::format(
          "reckon: pool '{}' evaluates checkpoints: no pod of the manifests does that\n",
          pool.name));
  const RunArtifact planned = artifact_of(loaded, file, options);
  tell_left_out(planned);
  // Who runs the manifests may have another program under the image's name.
  const bool watched = shape_of(loaded, options) == JobShape::launcher;
  if (watched && options.as.empty())
    print_error(
        "reckon: a Job in the cluster watches the run, as its pods go on with those that are left: "
        "the image needs reckon and kubectl, too (docs/commands/export.md); --as job: without "
        "it\n");
  Diagnostics not_trained = not_trained_in_pods(planned, file, options.node_directory,
                                                watched ? WatchedPods::yes : WatchedPods::no);
  for (Diagnostic& one : not_trained) one.severity = Severity::warning;
  report(not_trained);
  return kDone;
}

}  // namespace

std::vector<OptionText> export_options() { return shown_options<ExportOptions>(); }

int run_export(const Command& self, std::span<const std::string> arguments) {
  const auto options = parse<ExportOptions>(self, arguments);
  if (!options) return kDone;
  if (options->files.empty()) throw UsageError(fmt::format("say what to do: {}", self.usage));
  std::vector<std::string> targets{"kubernetes", "gcloud", "ai-platform"};
  std::ranges::move(reckon::texts_of<Framework>(), std::back_inserter(targets));
  std::ranges::move(reckon::texts_of<Infrastructure>(), std::back_inserter(targets));
  const std::string& to = options->files.front();
  if (std::ranges::find(targets, to) == targets.end())
    throw UsageError(fmt::format("a plan is exported to {}, not '{}'{}", fmt::join(targets, ", "),
                                 to, did_you_mean(to, targets)));
  if (options->files.size() != 2) throw UsageError(fmt::format("export {} takes one scenario", to));
  const auto catalog = checked(load_catalogs(*options));
  if (const auto framework = from_text<Framework>(to))
    return export_launcher(*framework, *options, catalog);
  if (!options->program.empty())
    throw UsageError(
        fmt::format("export {} takes no --program; workload.container names a program", to));
  if (to != "kubernetes" && !options->as.empty())
    throw UsageError(fmt::format("export {} takes no --as", to));
  if (const auto tool = from_text<Infrastructure>(to))
    return export_infrastructure(*tool, *options, catalog);
  if (const auto server = from_text<ServerKind>(options->as))
    return export_serving(*server, *options, catalog);
  return export_plan(to, *options, catalog);
}

}  // namespace reckon::cli
