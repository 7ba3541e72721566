#include "cli/run/cluster_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/options/usage_error.h"
#include "cli/output.h"
#include "exchange/kubernetes_serving.h"
#include "sim/base/printable.h"
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

bool is_plain(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/// Lower-case letters and digits, and between them `inner`.
bool is_name(std::string_view text, std::string_view inner, std::size_t longest) {
  if (text.empty() || text.size() > longest || !is_plain(text.front()) || !is_plain(text.back()))
    return false;
  return std::ranges::all_of(
      text, [&](char c) { return is_plain(c) || inner.find(c) != std::string_view::npos; });
}

constexpr std::size_t kLongestName = 253;

/// What would be two words of a manifest's reader, an option, or nothing.
std::string image_option(const Options& options) {
  std::string image = options.answer("image");
  const bool one_word =
      printable(image) == image && image.find(' ') == std::string::npos && !image.starts_with('-');
  if (!one_word)
    throw UsageErrorWithHint(fmt::format("--image '{}' is none", image),
                             "--image registry/name:tag");
  return image;
}

/// [Cloud Storage, "Bucket names"]
std::string bucket_option(const Options& options) {
  constexpr std::size_t kLongest = 222;
  std::string bucket = options.answer("bucket");
  if (!bucket.empty() && !is_name(bucket, "-_.", kLongest))
    throw UsageErrorWithHint(fmt::format("--bucket '{}' is no name of a bucket", bucket),
                             "lower-case letters, digits, '-', '_' and '.', without gs://");
  return bucket;
}

}  // namespace

std::string object_name(const Options& options, const char* option) {
  std::string name = options.answer(option);
  if (!name.empty() && !is_name(name, "-.", kLongestName))
    throw UsageErrorWithHint(
        fmt::format("--{} '{}' names nothing in Kubernetes", option, name),
        "lower-case letters, digits, '-' and '.', a letter or a digit first and last");
  return name;
}

void refuse_unless_run_name(const std::string& run) {
  if (!is_name(run, "-.", kLongestName))
    throw UsageErrorWithHint(fmt::format("'{}' is no name of a run on Kubernetes", run),
                             "lower-case letters, digits and '-'");
}

KubernetesExport kubernetes_options(const Options& options) {
  KubernetesExport how;
  if (const std::string as = options.answer("as"); !as.empty()) {
    const auto shape = from_text<JobShape>(as);
    if (!shape) {
      std::vector<std::string> known = texts_of<JobShape>();
      for (std::string& server : texts_of<ServerKind>()) known.push_back(std::move(server));
      throw UsageError(fmt::format("--as {} is none{}", as, did_you_mean(as, known)));
    }
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
  if (const std::string image = image_option(options); !image.empty()) how.image = image;
  how.name_space = object_name(options, "namespace");
  how.bucket = bucket_option(options);
  how.claim = object_name(options, "claim");
  how.storage_class = object_name(options, "storage-class");
  how.pull_secret = object_name(options, "pull-secret");
  if (!how.bucket.empty() && !how.claim.empty())
    throw UsageError("checkpoints go to --bucket or to --claim, not both");
  return how;
}

std::vector<std::string> worker_words(const Options& options) {
  const std::string steps = options.answer("checkpoint-steps");
  return steps.empty() ? std::vector<std::string>{}
                       : std::vector<std::string>{"--checkpoint-steps", steps};
}

}  // namespace reckon::cli
