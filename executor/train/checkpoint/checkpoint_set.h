#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "executor/train/checkpoint/checkpoint_shard.h"

// A checkpoint of a whole job: a directory with one file a rank and a manifest, which rank 0 writes
// last and which makes the set valid. Sets of one job lie side by side:
//
//   checkpoints/step-000000001200/rank-0.safetensors ... manifest.json
//
// All ranks must see the same directory: one machine, or storage that they share.
namespace reckon {

struct CheckpointSet {
  std::filesystem::path directory;
  std::int64_t step = 0;  // optimizer steps that it holds
  bool complete = false;  // it has a manifest
};

/// Among the counters of rank 0's part of a job whose ranks take steps of their own: how many
/// steps `rank` has done.
std::string steps_counter(std::size_t rank);
/// Counter: steps before the optimizer's state began; absent: 0.
inline constexpr const char* kOptimizerBegan = "optimizer_began";
/// Of what load() gives: the set has none of this optimizer, whose state is zero.
inline constexpr const char* kOptimizerBegins = "optimizer_begins";

std::filesystem::path set_directory(const std::filesystem::path& root, std::int64_t step);
std::filesystem::path shard_file(const std::filesystem::path& set, int rank);
/// Of all ranks.
std::vector<std::filesystem::path> shard_files(const std::filesystem::path& set, int ranks);

/// All sets of a directory, newest first; empty where the directory does not exist.
std::vector<CheckpointSet> list_sets(const std::filesystem::path& root);

struct Manifest {
  struct Shard {
    std::uint64_t bytes = 0, header_digest = 0;
  };
  CheckpointIdentity identity;
  std::int64_t step = 0, attempt = 0;
  std::vector<Shard> shards;  // by rank
};
/// Throws CheckpointError, OldCheckpoint or FileError.
Manifest read_manifest(const std::filesystem::path& set);
/// Durable on return; the set is valid from then on.
void write_manifest(const std::filesystem::path& set, const Manifest& manifest);

bool is_complete(const std::filesystem::path& set);

/// A checkpoint of another job or model: whole, but not this job's.
struct ForeignCheckpoint : CheckpointError {
  using CheckpointError::CheckpointError;
};

/// In the format of an older reckon, which this one does not read: nothing of it is damaged.
struct OldCheckpoint : ForeignCheckpoint {
  using ForeignCheckpoint::ForeignCheckpoint;
};

/// This job's, trained under other settings than it has now.
struct ChangedRecipe : ForeignCheckpoint {
  using ForeignCheckpoint::ForeignCheckpoint;
};

/// There are sets, and none of them is whole.
struct NoUsableCheckpoint : CheckpointError {
  using CheckpointError::CheckpointError;
};

/// The part of `rank` against the manifest, every tensor against its checksum. Throws
/// CheckpointError with what is wrong, or FileError. `alive` (may be empty) is called again and
/// again while it gets on.
void verify_part(const std::filesystem::path& set, const Manifest& manifest, int rank,
                 const std::function<void()>& alive = {});

/// The manifest, and every part against it. Throws as verify_part, and ForeignCheckpoint where it
/// is not `ours`; nullptr: it may be anybody's.
Manifest verify_set(const std::filesystem::path& set, const CheckpointIdentity* ours,
                    const std::function<void()>& alive = {});

struct GoodSet {
  struct Refused {
    std::filesystem::path set;
    std::string why;
    bool unread = false;  // it may be whole: the storage gave an error, again and again
  };
  std::optional<CheckpointSet> set;  // nullopt: there is none
  Manifest manifest;                 // its
  std::vector<Refused> refused;      // newer ones
};
/// The newest complete set of which every byte is as it was written. Changes nothing. Throws
/// ForeignCheckpoint where a set that may be used is not `ours`.
GoodSet newest_good_set(const std::filesystem::path& root, const CheckpointIdentity* ours,
                        const std::function<void()>& alive = {});

/// What the newest set that has a manifest says of a resume as `ours`, before anything is started:
/// the settings that changed. Empty where there is no set. Throws ForeignCheckpoint.
std::vector<SettingChange> changes_since(const std::filesystem::path& root,
                                         const CheckpointIdentity& ours);

/// Throws ForeignCheckpoint that says what differs: the job, the model, its number of parameters.
/// `what` is the file or directory. Other settings: changes_between(). Other ranks, or another
/// layout, read what they need from all parts.
void require_identity(const std::filesystem::path& what, const CheckpointIdentity& theirs,
                      const CheckpointIdentity& ours);

/// A damaged set is kept as SET.refused for whoever wants to look at it, out of the way of the next
/// save.
void set_aside(const std::filesystem::path& set);
/// The manifest goes first, so that what a crash leaves is incomplete, not damaged.
void remove_set(const std::filesystem::path& set);
/// Keeps the `keep` newest complete sets and whatever is newer than the newest of them.
void prune_sets(const std::filesystem::path& root, int keep);

}  // namespace reckon
