#include "sim/scenario/artifact/artifact.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "sim/scenario/artifact/gzip.h"
#include "sim/scenario/artifact/json.h"
#include "sim/scenario/artifact/upgrades.h"

namespace reckon {
namespace {

using artifact::Json;

constexpr std::size_t kDigits = 16;

std::string digest_of(std::string_view bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}
std::string text_of(const RunArtifact& artifact) { return text_of(artifact::json_of(artifact)); }

/// The first line, taken apart.
struct Head {
  int version = 0;
  std::string_view digest, checksum, packed;
};

std::string_view take_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

tl::expected<Head, std::string> head_of(std::string_view bytes) {
  if (!is_artifact(bytes)) return tl::unexpected<std::string>("not the plan of a run");
  constexpr std::size_t kLongestLine = 80;
  const std::size_t end = bytes.substr(0, kLongestLine).find('\n');
  if (end == std::string_view::npos)
    return tl::unexpected<std::string>("truncated or changed in its first line");
  std::string_view line = bytes.substr(kArtifactMagic.size(), end - kArtifactMagic.size());
  Head head;
  const std::string_view version = take_word(line);
  const auto read = std::from_chars(version.data(), version.data() + version.size(), head.version);
  if (read.ec != std::errc() || read.ptr != version.data() + version.size() || head.version < 1 ||
      version.front() == '0')
    return tl::unexpected(fmt::format("version '{}' is no number", version));
  if (head.version > kArtifactVersion)
    return tl::unexpected(fmt::format("version {} is newer than this reckon, which reads 1 to {}",
                                      head.version, kArtifactVersion));
  head.digest = take_word(line);
  head.checksum = line;
  head.packed = bytes.substr(end + 1);
  if (head.digest.size() != kDigits || head.checksum.size() != kDigits)
    return tl::unexpected<std::string>("its first line was changed");
  return head;
}

/// From version 3 on the version is in it: else a changed one would be read by another version's
/// rules.
std::string checksum_of(int version, std::string_view packed) {
  constexpr int kVersionIn = 3;
  return version < kVersionIn ? digest_of(packed)
                              : digest_of(fmt::format("{} {}", version, packed));
}

/// The JSON text, whole and unchanged.
tl::expected<std::string, std::string> body_of(const Head& head) {
  if (const std::string now = checksum_of(head.version, head.packed); now != head.checksum)
    return tl::unexpected(
        fmt::format("truncated or changed: its checksum is {}, not {}", now, head.checksum));
  auto text = artifact::unpacked(head.packed);
  if (!text) return text;
  if (const std::string now = digest_of(*text); now != head.digest)
    return tl::unexpected(fmt::format("changed: its digest is {}, not {}", now, head.digest));
  return text;
}

}  // namespace

namespace artifact {

void upgrade(Json& json, int version, std::span<const Upgrade> steps) {
  for (std::size_t k = std::size_t(version) - 1; k < steps.size(); ++k) steps[k](json);
}

}  // namespace artifact

bool is_artifact(std::string_view bytes) { return bytes.starts_with(kArtifactMagic); }

std::string write_artifact(const RunArtifact& artifact) {
  const std::string text = text_of(artifact), packed = artifact::packed(text);
  return fmt::format("{}{} {} {}\n{}", kArtifactMagic, kArtifactVersion, digest_of(text),
                     checksum_of(kArtifactVersion, packed), packed);
}

std::string artifact_digest(const RunArtifact& artifact) { return digest_of(text_of(artifact)); }

PlanDigests digests_of(const RunArtifact& artifact) {
  return {artifact_digest(artifact), artifact.rebound ? artifact.rebound->from : ""};
}

std::map<std::string, std::string> fields_of(const PlannedStrategy& strategy) {
  std::map<std::string, std::string> fields;
  const Json flat = artifact::json_of(strategy).flatten();
  for (const auto& [pointer, value] : flat.items()) {
    std::string place = pointer.substr(1);
    std::ranges::replace(place, '/', '.');
    fields[place] = value.is_string() ? value.get<std::string>() : text_of(value);
  }
  return fields;
}

std::string digest_of(const ModelGraph& model) {
  return digest_of(text_of(artifact::json_of(model)));
}

std::optional<Diagnostic> why_not_run(const ReadArtifact& read, const std::string& file) {
  if (read.version == kArtifactVersion) {
    if (read.artifact.plan.jobs.size() == 1) return std::nullopt;
    return Diagnostic{.at = {.file = file},
                      .what = fmt::format("a run is of one job, and this plan has {}",
                                          read.artifact.plan.jobs.size()),
                      .hint = "run a scenario of that job alone"};
  }
  return Diagnostic{.at = {.file = file},
                    .what = fmt::format("a plan of version {}, and this reckon runs version {}",
                                        read.version, kArtifactVersion),
                    .hint = "run its scenario again, into another directory"};
}

Expected<ReadArtifact> read_artifact(std::string_view bytes, const std::string& file) {
  const auto refused = [&](std::string what) {
    return tl::unexpected(Diagnostics{{.at = {.file = file}, .what = std::move(what), .hint = {}}});
  };
  const auto head = head_of(bytes);
  if (!head) return refused(head.error());
  const auto text = body_of(*head);
  if (!text) return refused(text.error());
  Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded()) return refused("what it holds is no JSON");
  artifact::upgrade(json, head->version, artifact::kUpgrades);
  auto read = artifact::artifact_of(json, file);
  if (!read) return tl::unexpected(std::move(read.error()));
  return ReadArtifact{std::move(*read), std::string(head->digest), head->version};
}

}  // namespace reckon
