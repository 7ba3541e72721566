#include "cli/export/parts.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "cli/output.h"
#include "exchange/kubernetes/serving.h"
#include "sim/base/unit_text.h"

namespace reckon::cli {
namespace {

/// Each word of the targets' once, in their order.
std::vector<std::string> all_shapes() {
  std::vector<std::string> all = reckon::texts_of<JobShape>();
  std::ranges::move(reckon::texts_of<ServerKind>(), std::back_inserter(all));
  for (std::string& starter : reckon::texts_of<Starter>())
    if (std::ranges::find(all, starter) == all.end()) all.push_back(std::move(starter));
  return all;
}

Read export_shape(std::string& to) {
  return [&to](const std::string& name, const std::string& text) {
    const std::vector<std::string> all = all_shapes();
    if (std::ranges::find(all, text) == all.end())
      throw UsageError(fmt::format("--{} {} is none{}", name, text, did_you_mean(text, all)));
    to = text;
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

}  // namespace

std::vector<Option> ExportOptions::declared() {
  return {
      {{"as", fmt::format("{}", fmt::join(all_shapes(), "|")),
        "kubernetes: a Job (default), an operator's resource, or the serving block's server; "
        "launchers: a bash script, a Slurm script or manifests around the configuration"},
       export_shape(as)},
      {{"program", "TEXT",
        "with a launcher's --as: training program and its arguments (deepspeed, accelerate), or "
        "more arguments of the framework's own program"},
       reckon::cli::text(program)},
      {{"kubernetes-version", "1.N", "Kubernetes version of the cluster (1.31)"},
       minor_version(minor)},
      space_option(),
      image_option(),
      bucket_option(),
      claim_option(),
      storage_class_option(),
      store_secret_option(),
      node_directory_option(),
      {{"attempt", "N", "attempt number, appended to resource names (1)"}, whole(attempt, 1, 9999)},
      {{"with-secret", "",
        "include a new job secret in the manifests (they name the command that makes one)"},
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

void put_out(const ExportOptions& options, const std::string& text) {
  const std::string& out = options.out;
  if (out.empty() || out == "-") return write_file("-", text);
  if (options.with_secret) {  // its owner alone may read it
    std::filesystem::remove(out);
    ::umask(S_IRWXG | S_IRWXO);
  }
  write_file(out, text);
}

}  // namespace reckon::cli
