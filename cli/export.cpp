#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <variant>

#include "cli/command.h"
#include "cli/errors.h"
#include "cli/load.h"
#include "cli/options/shared.h"
#include "cli/options/values.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/run/cluster_options.h"
#include "cli/run/run_parts.h"
#include "exchange/foreign/ai_platform.h"
#include "exchange/gcloud.h"
#include "exchange/kubernetes.h"
#include "exchange/kubernetes_serving.h"
#include "exchange/yaml_text.h"
#include "executor/comm/rendezvous/job_secret.h"
#include "executor/serve/served_model.h"
#include "sim/base/shell_word.h"
#include "sim/base/unit_text.h"
#include "sim/scenario/yaml/document.h"
#include "sim/scenario/yaml/scenario_yaml.h"

namespace reckon::cli {
namespace {

/// A training as a job, or its service by a server.
using ExportShape = std::variant<JobShape, ServerKind>;

struct ExportOptions : Files, KubernetesObjects, OutPath, ScenarioChanges, CatalogChoice {
  ExportShape as = JobShape::job;
  int minor = 31, attempt = 1;
  bool with_secret = false;

  std::vector<Option> declared();
};

Read export_shape(ExportShape& to) {
  return [&to](const std::string& name, const std::string& text) {
    const auto job = from_text<JobShape>(text);
    const auto server = from_text<ServerKind>(text);
    std::vector<std::string> all = reckon::texts_of<JobShape>();
    std::ranges::move(reckon::texts_of<ServerKind>(), std::back_inserter(all));
    if (!job && !server)
      throw UsageError(fmt::format("--{} {} is none{}", name, text, did_you_mean(text, all)));
    to = job ? ExportShape(*job) : ExportShape(*server);
  };
}

/// "1.31" to 31.
Read minor_version(int& to) {
  return [&to](const std::string& name, const std::string& text) {
    const auto minor = text.starts_with("1.") ? parse_integer(text.substr(2)) : parse_integer("");
    constexpr int kOldest = 20, kNewest = 60;
    if (!minor || *minor < kOldest || *minor > kNewest)
      throw UsageError(
          fmt::format("--{} {} is none; from 1.{} on, for example 1.31", name, text, kOldest));
    to = int(*minor);
  };
}

std::vector<Option> ExportOptions::declared() {
  return {{{"as", words<JobShape>() + '|' + words<ServerKind>(),
            "Kubernetes' own Job (the default) or an operator's resource; the serving block by "
            "reckon-worker, or by TensorFlow Serving"},
           export_shape(as)},
          {{"kubernetes-version", "1.N", "of the cluster (1.31)"}, minor_version(minor)},
          space_option(),
          image_option(),
          bucket_option(),
          claim_option(),
          storage_class_option(),
          {{"attempt", "N", "part of all names: one more for each new start (1)"},
           whole(attempt, 1, 9999)},
          {{"with-secret", "",
            "write a new secret of the job into the manifests (they say what makes one)"},
           given(with_secret)},
          out_option(),
          set_option(),
          layer_option(),
          catalog_option(),
          calibration_option()};
}

KubernetesExport manifest_of(const ExportOptions& options) {
  KubernetesExport how = kubernetes_options(options);
  how.minor = options.minor;
  how.attempt = options.attempt;
  return how;
}

/// The scenario as it stands in its file, with the command line's changes.
Expected<YamlNode> document_of(const std::string& file, const ExportOptions& options) {
  const auto flat = flat_scenario(read_text(file), file, options.overrides, options.layers, {});
  if (!flat) return tl::unexpected(flat.error());
  return parse_yaml(*flat, file);
}

/// The manifests of a job of several processes name a Secret and do not hold it: they are read and
/// kept by many. Where it is not asked for, they say at their top what makes it.
Expected<std::string> manifests(const std::string& file, const LoadedPlan& loaded,
                                const ExportOptions& options, const LoadedCatalog& catalog) {
  KubernetesExport how = manifest_of(options);
  if (const auto* shape = std::get_if<JobShape>(&options.as)) how.as = *shape;
  const RunArtifact artifact = for_cluster(artifact_of(loaded, file, options), catalog);
  const bool wanted = needs_kubernetes_secret(artifact);
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

void put_out(const ExportOptions& options, const std::string& text) {
  const std::string& out = options.out;
  if (out.empty() || out == "-") return write_file("-", text);
  if (options.with_secret) {  // its owner alone may read it
    std::filesystem::remove(out);
    ::umask(S_IRWXG | S_IRWXO);
  }
  write_file(out, text);
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
  const auto loaded = checked(load_plan(file, options, catalog));
  const auto text = checked(exported(to, file, loaded, options, catalog));
  put_out(options, text);
  if (to != "kubernetes") return kDone;
  for (const PlannedPool& pool : loaded.plan.pools)
    if (pool.role == Role::evaluator)
      print_error(fmt::format(
          "reckon: pool '{}' evaluates checkpoints: no pod of the manifests does that\n",
          pool.name));
  // Who runs the manifests may have another program under the image's name.
  Diagnostics not_trained = not_trained_in_pods(artifact_of(loaded, file, options), file);
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
  const std::array<std::string, 3> kTargets{"kubernetes", "gcloud", "ai-platform"};
  const std::string& to = options->files.front();
  if (std::ranges::find(kTargets, to) == kTargets.end())
    throw UsageError(
        fmt::format("a plan is exported to kubernetes, gcloud or ai-platform, not '{}'{}", to,
                    did_you_mean(to, kTargets)));
  if (options->files.size() != 2) throw UsageError(fmt::format("export {} takes one scenario", to));
  const auto catalog = checked(load_catalogs(*options));
  const auto* server = std::get_if<ServerKind>(&options->as);
  if (to == "kubernetes" && server != nullptr) return export_serving(*server, *options, catalog);
  return export_plan(to, *options, catalog);
}

}  // namespace reckon::cli
