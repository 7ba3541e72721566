#include "executor/train/checkpoint/checkpoint_set.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/records/identity_json.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr int kSchemaVersion = 2;  // 1: parts of flat sections, in a format of our own
constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kManifest = "manifest.json";
constexpr std::string_view kRefused = ".refused";

std::uint64_t digest_of(const Json& json) {
  const std::string text = json.dump();
  return XXH3_64bits(text.data(), text.size());
}

Json to_json(const Manifest& m) {
  Json shards = Json::array();
  for (std::size_t rank = 0; rank < m.shards.size(); ++rank)
    shards.push_back({{"file", shard_file({}, int(rank)).string()},
                      {"bytes", m.shards[rank].bytes},
                      {"header_xxh3", m.shards[rank].header_digest}});
  Json json{{"schema_version", kSchemaVersion},
            {"step", m.step},
            {"attempt", m.attempt},
            {"shards", std::move(shards)}};
  write_identity(json, m.identity);
  return json;
}

Manifest manifest_from_json(const Json& json) {
  Manifest m;
  m.identity = read_identity(json);
  m.step = json.at("step");
  m.attempt = json.at("attempt");
  for (const Json& s : json.at("shards")) m.shards.push_back({s.at("bytes"), s.at("header_xxh3")});
  return m;
}

/// The step of "step-000000001200", or -1.
std::int64_t step_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return -1;
  const std::string_view digits = std::string_view(name).substr(kPrefix.size());
  if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) return -1;
  return parse_integer(digits).value_or(-1);
}

}  // namespace

std::string steps_counter(std::size_t rank) { return fmt::format("step.{}", rank); }

fs::path set_directory(const fs::path& root, std::int64_t step) {
  return root / fmt::format("{}{:012}", kPrefix, step);
}

fs::path shard_file(const fs::path& set, int rank) {
  return set / fmt::format("rank-{}.safetensors", rank);
}

std::vector<fs::path> shard_files(const fs::path& set, int ranks) {
  std::vector<fs::path> files;
  for (int rank = 0; rank < ranks; ++rank) files.push_back(shard_file(set, rank));
  return files;
}

bool is_complete(const fs::path& set) {
  std::error_code ignored;
  return fs::exists(set / kManifest, ignored);
}

std::vector<CheckpointSet> list_sets(const fs::path& root) {
  std::vector<CheckpointSet> sets;
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::int64_t step = step_of(entry->path().filename().string());
    std::error_code ignored;
    if (step < 0 || !entry->is_directory(ignored)) continue;
    // A storage that gives an error has not said that there is none; who reads it hears of that.
    std::error_code unknown;
    const bool complete = fs::exists(entry->path() / kManifest, unknown) || unknown;
    sets.push_back({entry->path(), step, complete});
  }
  std::sort(sets.begin(), sets.end(),
            [](const CheckpointSet& a, const CheckpointSet& b) { return a.step > b.step; });
  return sets;
}

Manifest read_manifest(const fs::path& set) {
  const fs::path file = set / kManifest;
  const std::string text = read_file_text(file);
  try {
    Json json = Json::parse(text);
    const Json digest = json.at("xxh3");
    json.erase("xxh3");
    if (!digest.is_number_unsigned() || digest_of(json) != digest.get<std::uint64_t>())
      throw CheckpointError(file.string() + " is damaged: its checksum differs");
    if (json.at("schema_version") < kSchemaVersion)
      throw OldCheckpoint(fmt::format(
          "{} was written by an older reckon, in format {}; this one reads format {}: go on with "
          "that reckon, or start in another directory",
          set.string(), json.at("schema_version").dump(), kSchemaVersion));
    if (json.at("schema_version") != kSchemaVersion)
      throw CheckpointError(fmt::format("{} has schema_version {}; this reckon reads {}",
                                        file.string(), json.at("schema_version").dump(),
                                        kSchemaVersion));
    Manifest manifest = manifest_from_json(json);
    if (manifest.shards.size() != static_cast<std::size_t>(std::max(manifest.identity.ranks, 0)))
      throw CheckpointError(fmt::format("{} is damaged: its manifest lists {} parts for {} ranks",
                                        set.string(), manifest.shards.size(),
                                        manifest.identity.ranks));
    if (const auto named = step_of(set.filename().string()); named >= 0 && named != manifest.step)
      throw CheckpointError(
          fmt::format("{} holds step {}: somebody renamed it", set.string(), manifest.step));
    return manifest;
  } catch (const Json::exception&) {
    throw CheckpointError(file.string() + " is damaged: it is no manifest");
  }
}

void write_manifest(const fs::path& set, const Manifest& manifest) {
  Json json = to_json(manifest);
  json["xxh3"] = digest_of(json);
  write_durably(set / kManifest, json.dump(1) + '\n');
}

void verify_part(const fs::path& set, const Manifest& manifest, int rank,
                 const std::function<void()>& alive) {
  const fs::path file = shard_file(set, rank);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) throw CheckpointError(file.string() + " is missing");
  const ShardHeader header = read_shard_header(file);
  const Manifest::Shard& listed = manifest.shards[static_cast<std::size_t>(rank)];
  if (header.file_bytes != listed.bytes || header.digest != listed.header_digest)
    throw CheckpointError(file.string() + " is not the part that the manifest lists");
  verify_shard(file, alive);
}

Manifest verify_set(const fs::path& set, const CheckpointIdentity* ours,
                    const std::function<void()>& alive) {
  Manifest manifest = read_manifest(set);
  if (ours != nullptr) require_identity(set, manifest.identity, *ours);
  for (int rank = 0; rank < manifest.identity.ranks; ++rank)
    verify_part(set, manifest, rank, alive);
  return manifest;
}

namespace {
/// Storage that others use may fail for a moment.
Manifest verify_patiently(const fs::path& set, const CheckpointIdentity* ours,
                          const std::function<void()>& alive) {
  constexpr int kTries = 4;
  constexpr std::chrono::milliseconds kPause{500};
  for (int k = 1;; ++k) try {
      return verify_set(set, ours, alive);
    } catch (const FileError&) {
      if (k == kTries) throw;
      std::this_thread::sleep_for(kPause);
    }
}
}  // namespace

GoodSet newest_good_set(const fs::path& root, const CheckpointIdentity* ours,
                        const std::function<void()>& alive) {
  GoodSet good;
  for (const CheckpointSet& set : list_sets(root)) {
    if (!set.complete) continue;
    try {
      good.manifest = verify_patiently(set.directory, ours, alive);
      good.set = set;
      return good;
    } catch (const ForeignCheckpoint&) {
      throw;
    } catch (const CheckpointError& e) {
      good.refused.push_back({set.directory, e.what()});
    } catch (const FileError& e) {  // it is there and cannot be read
      good.refused.push_back({set.directory, e.what(), true});
    }
  }
  return good;
}

std::vector<SettingChange> changes_since(const fs::path& root, const CheckpointIdentity& ours) {
  for (const CheckpointSet& set : list_sets(root)) {
    if (!set.complete) continue;
    try {
      const Manifest manifest = read_manifest(set.directory);
      require_identity(set.directory, manifest.identity, ours);
      return changes_between(manifest.identity.recipe, ours.recipe);
    } catch (const ForeignCheckpoint&) {
      throw;
    } catch (const std::runtime_error&) {
      // Damaged: who recovers will find that out, and use the set before it.
    }
  }
  return {};
}

void require_identity(const fs::path& what, const CheckpointIdentity& theirs,
                      const CheckpointIdentity& ours) {
  std::string why;
  if (theirs.job != ours.job)
    why = fmt::format("was written by job '{}', this is job '{}'", theirs.job, ours.job);
  else if (theirs.model != ours.model && (theirs.recipe.empty() || ours.recipe.empty()))
    why = fmt::format("holds model '{}', this job trains '{}'", theirs.model, ours.model);
  else if (const auto held = setting_of(theirs.recipe, "parameters"),
           wanted = setting_of(ours.recipe, "parameters");
           !held.empty() && !wanted.empty() && held != wanted)
    why = fmt::format("holds {} parameters of {}, this job's {} has {}", held,
                      setting_of(theirs.recipe, "model"), setting_of(ours.recipe, "model"), wanted);
  else
    return;
  throw ForeignCheckpoint(
      fmt::format("{} {}; start in another directory, or as what it was", what.string(), why));
}

void set_aside(const fs::path& set) {
  fs::path aside = set;
  aside += kRefused;
  fs::remove_all(aside);
  fs::rename(set, aside);
  flush_directory(set.parent_path());
}

void remove_set(const fs::path& set) {
  if (fs::remove(set / kManifest)) flush_directory(set);
  fs::remove_all(set);
}

void prune_sets(const fs::path& root, int keep) {
  int complete = 0;
  std::int64_t oldest_kept = -1;
  for (const CheckpointSet& set : list_sets(root)) {
    const bool newer_than_all = complete == 0;
    if (set.complete) ++complete;
    if (complete > keep || (!set.complete && !newer_than_all)) {
      remove_set(set.directory);
    } else {
      oldest_kept = set.step;
    }
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    std::string name = entry.path().filename().string();
    if (!name.ends_with(kRefused)) continue;
    name.resize(name.size() - kRefused.size());
    const std::int64_t step = step_of(name);
    if (step >= 0 && step < oldest_kept) fs::remove_all(entry.path());
  }
}

}  // namespace reckon
