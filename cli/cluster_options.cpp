#include "cli/cluster_options.h"

#include <fmt/format.h>

#include <array>

#include "cli/output.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

/// "1.31" to 31.
int minor_version(const std::string& text) {
  const auto minor = text.starts_with("1.") ? parse_integer(text.substr(2)) : parse_integer("");
  constexpr int kOldest = 20, kNewest = 60;
  if (!minor || *minor < kOldest || *minor > kNewest)
    throw UsageError(fmt::format("--kubernetes-version {} is none; from 1.{} on, for example 1.31",
                                 text, kOldest));
  return int(*minor);
}

}  // namespace

KubernetesExport kubernetes_options(const Options& options) {
  KubernetesExport how;
  if (const std::string as = options.answer("as"); !as.empty()) {
    const auto shape = parse_job_shape(as);
    if (!shape)
      throw UsageError(fmt::format(
          "--as {} is none{}", as,
          did_you_mean(as, std::array<std::string, 6>{"job", "tfjob", "pytorchjob", "jobset",
                                                      "serving", "tensorflow-serving"})));
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
  how.pull_secret = options.answer("pull-secret");
  if (!how.bucket.empty() && !how.claim.empty())
    throw UsageError("checkpoints go to --bucket or to --claim, not both");
  return how;
}

PlanWords plan_words(const std::string& file, const Options& options) {
  if (!options.layers.empty() || !options.catalogs.empty())
    throw UsageError(
        "pods get the scenario alone, without --layer and --catalog: write their values into it");
  PlanWords text{.scenario = read_text(file), .arguments = {}};
  for (const std::string& change : options.overrides) {
    text.arguments.emplace_back("--set");
    text.arguments.push_back(change);
  }
  const auto add = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    text.arguments.emplace_back(name);
    text.arguments.push_back(value);
  };
  add("--seed", options.seed ? std::to_string(*options.seed) : "");
  add("--checkpoint-steps", options.answer("checkpoint-steps"));
  return text;
}

}  // namespace reckon::cli
