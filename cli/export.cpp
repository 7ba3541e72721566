#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/command.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "exchange/gcloud.h"
#include "exchange/kubernetes.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

constexpr std::array<std::string_view, 14> kNames{"as",
                                                  "kubernetes-version",
                                                  "namespace",
                                                  "image",
                                                  "bucket",
                                                  "claim",
                                                  "storage-class",
                                                  "attempt",
                                                  "out",
                                                  "set",
                                                  "layer",
                                                  "catalog",
                                                  "calibration",
                                                  "help"};

/// "1.31" to 31.
int minor_version(const std::string& text) {
  const auto minor = text.starts_with("1.") ? parse_integer(text.substr(2)) : parse_integer("");
  constexpr int kOldest = 20, kNewest = 60;
  if (!minor || *minor < kOldest || *minor > kNewest)
    throw UsageError(fmt::format("--kubernetes-version {} is none; from 1.{} on, for example 1.31",
                                 text, kOldest));
  return int(*minor);
}

KubernetesExport kubernetes_options(const Options& options) {
  KubernetesExport how;
  if (const std::string as = options.answer("as"); !as.empty()) {
    const auto shape = parse_job_shape(as);
    if (!shape)
      throw UsageError(fmt::format(
          "--as {} is none{}", as,
          did_you_mean(as, std::array<std::string, 4>{"job", "tfjob", "pytorchjob", "jobset"})));
    how.as = *shape;
  }
  if (const std::string text = options.answer("kubernetes-version"); !text.empty())
    how.minor = minor_version(text);
  if (const std::string text = options.answer("attempt"); !text.empty()) {
    const auto number = parse_integer(text);
    if (!number || *number < 1 || *number > 9999)
      throw UsageError("--attempt takes a whole number from 1 on");
    how.attempt = int(*number);
  }
  if (const std::string image = options.answer("image"); !image.empty()) how.image = image;
  how.name_space = options.answer("namespace");
  how.bucket = options.answer("bucket");
  how.claim = options.answer("claim");
  how.storage_class = options.answer("storage-class");
  if (!how.bucket.empty() && !how.claim.empty())
    throw UsageError("checkpoints go to --bucket or to --claim, not both");
  return how;
}

/// What the pods' reckon-worker is told, so that it makes the same plan.
PlanWords plan_text(const std::string& file, const Options& options) {
  if (!options.layers.empty() || !options.catalogs.empty())
    throw UsageError(
        "pods get the scenario alone, without --layer and --catalog: write their values into it");
  PlanWords text{.scenario = read_text(file), .arguments = {}};
  for (const std::string& change : options.overrides) {
    text.arguments.emplace_back("--set");
    text.arguments.push_back(change);
  }
  return text;
}

int export_plan(const std::string& to, const Options& options, const Catalog& catalog) {
  const std::string& file = options.files[1];
  const KubernetesExport how = kubernetes_options(options);
  const auto loaded = load_plan(file, options, catalog);
  if (!loaded) {
    report(loaded.error());
    return kInputIsWrong;
  }
  const auto text = to == "gcloud" ? gcloud_commands(loaded->file, loaded->plan)
                                   : kubernetes_manifests(loaded->file, loaded->plan,
                                                          plan_text(file, options), catalog, how);
  if (!text) {
    report(text.error());
    return kInputIsWrong;
  }
  const std::string out = options.answer("out");
  if (out.empty() || out == "-")
    print(*text);
  else
    write_file(out, *text);
  return kDone;
}

}  // namespace

std::string export_options() { return describe_options(kNames); }

int run_export(const Command& self, std::span<const std::string> arguments) {
  const Options options = parse_options(self, kNames, arguments);
  if (options.help) {
    print(help_text(self));
    return kDone;
  }
  if (options.files.empty()) throw UsageError(fmt::format("say what to do: {}", self.usage));
  const std::array<std::string, 2> kTargets{"kubernetes", "gcloud"};
  const std::string& to = options.files.front();
  if (std::ranges::find(kTargets, to) == kTargets.end())
    throw UsageError(fmt::format("a plan is exported to kubernetes or gcloud, not '{}'{}", to,
                                 did_you_mean(to, kTargets)));
  if (options.files.size() != 2) throw UsageError(fmt::format("export {} takes one scenario", to));
  const auto catalog = load_catalogs(options);
  if (!catalog) {
    report(catalog.error());
    return kInputIsWrong;
  }
  return export_plan(to, options, *catalog);
}

}  // namespace reckon::cli
