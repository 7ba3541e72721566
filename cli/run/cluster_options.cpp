#include "cli/run/cluster_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/options/usage_error.h"
#include "cli/options/values.h"
#include "sim/base/text/printable.h"

namespace reckon::cli {
namespace {

bool is_plain(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/// Lower-case letters and digits, and between them `inner`.
bool is_name(std::string_view text, std::string_view inner, std::size_t longest) {
  if (text.empty() || text.size() > longest || !is_plain(text.front()) || !is_plain(text.back()))
    return false;
  return std::ranges::all_of(
      text, [&](char c) { return is_plain(c) || inner.find(c) != std::string_view::npos; });
}

constexpr std::size_t kLongestName = 253;

/// What would be two words of a manifest's reader, an option, or nothing, is no image.
Read image_name(std::string& to) {
  return [&to](const std::string& name, const std::string& text) {
    const bool one_word =
        printable(text) == text && text.find(' ') == std::string::npos && !text.starts_with('-');
    if (!one_word)
      throw UsageErrorWithHint(fmt::format("--{} '{}' is none", name, text),
                               "--image registry/name:tag");
    to = text;
  };
}

/// [Cloud Storage, "Bucket names"]
Read bucket_name(std::string& to) {
  return [&to](const std::string& name, const std::string& text) {
    constexpr std::size_t kLongest = 222;
    if (!text.empty() && !is_name(text, "-_.", kLongest))
      throw UsageErrorWithHint(fmt::format("--{} '{}' is no name of a bucket", name, text),
                               "lower-case letters, digits, '-', '_' and '.', without gs://");
    to = text;
  };
}

/// An object of Kubernetes [RFC 1123, "subdomain"]: no option of kubectl, and one word.
Read object_name(std::string& to) {
  return [&to](const std::string& name, const std::string& text) {
    if (!text.empty() && !is_name(text, "-.", kLongestName))
      throw UsageErrorWithHint(
          fmt::format("--{} '{}' names nothing in Kubernetes", name, text),
          "lower-case letters, digits, '-' and '.', a letter or a digit first and last");
    to = text;
  };
}

/// A directory that a pod mounts [Kubernetes, "Volumes", hostPath]: '..' is refused there.
Read node_path(std::string& to) {
  return [&to](const std::string& name, const std::string& text) {
    const std::filesystem::path path = text;
    const bool good = path.is_absolute() && path.has_relative_path() && printable(text) == text &&
                      std::ranges::count(path, std::filesystem::path("..")) == 0;
    if (!good)
      throw UsageErrorWithHint(fmt::format("--{} '{}' is no directory of a node", name, text),
                               "a path from the root: /mnt/disks/ssd0, or /dev/shm for memory");
    to = text;
  };
}

}  // namespace

Option on_option(std::optional<RunPlace>& place) {
  return {{"on", words<RunPlace>(), "where to run (local: this machine)"},
          [&place](const std::string& name, const std::string& text) {
            place = from_text<RunPlace>(text);
            if (!place)
              throw UsageError(fmt::format("--{} {} is none: local or kubernetes", name, text));
          }};
}

Option KubernetesObjects::image_option() {
  return {
      {"image", "NAME", "container image with reckon-worker, if the scenario names no container"},
      image_name(image)};
}

Option KubernetesObjects::pull_secret_option() {
  return {{"pull-secret", "NAME", "image pull secret"}, object_name(pull_secret)};
}

Option KubernetesObjects::bucket_option() {
  return {{"bucket", "NAME", "GKE: bucket to mount for checkpoints"}, bucket_name(bucket)};
}

Option KubernetesObjects::claim_option() {
  return {{"claim", "NAME", "existing PersistentVolumeClaim for checkpoints (a new one)"},
          object_name(claim)};
}

Option KubernetesObjects::storage_class_option() {
  return {{"storage-class", "NAME", "storage class of the new claim (the cluster's default)"},
          object_name(storage_class)};
}

Option KubernetesObjects::store_secret_option() {
  return {{"store-secret", "NAME",
           "secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY for samples in s3://"},
          object_name(store_secret)};
}

Option KubernetesObjects::node_directory_option() {
  return {{"node-dir", "DIR",
           "directory of the nodes for workload.checkpoint.local, writable for user 65532"},
          node_path(node_directory)};
}

Option KubernetesObjects::space_option() {
  Option option = namespace_option();
  option.read = object_name(name_space);
  return option;
}

Option pending_option(std::optional<Seconds>& deadline) {
  return {
      {"pending", "DURATION", "on Kubernetes: fail if a pod stays unschedulable this long (15min)"},
      duration(deadline)};
}

void refuse_unless_run_name(const std::string& run) {
  if (!is_name(run, "-.", kLongestName))
    throw UsageErrorWithHint(fmt::format("'{}' is no name of a run on Kubernetes", run),
                             "lower-case letters, digits and '-'");
}

KubernetesExport kubernetes_options(const KubernetesObjects& objects) {
  if (!objects.bucket.empty() && !objects.claim.empty())
    throw UsageError("checkpoints go to --bucket or to --claim, not both");
  KubernetesExport how;
  if (!objects.image.empty()) how.image = objects.image;
  how.name_space = objects.name_space;
  how.bucket = objects.bucket;
  how.claim = objects.claim;
  how.storage_class = objects.storage_class;
  how.pull_secret = objects.pull_secret;
  how.store_secret = objects.store_secret;
  how.node_directory = objects.node_directory;
  return how;
}

}  // namespace reckon::cli
