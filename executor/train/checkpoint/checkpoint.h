#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/checkpoint/checkpoint_shard.h"
#include "sim/base/quantity.h"

// Checkpoints as one rank of a job sees them.
//
//   rank 0: recover() -> step, told to all ranks -> every rank: load(step, ...)
//   every rank, at the same steps: save(step, ...); at the end: finish()
//
// Saving copies the state and goes on; a thread writes. Rank 0's thread then waits for the parts of
// the others, by looking at the directory, and writes the manifest: the ranks' communicator is not
// used.
namespace reckon {

struct CheckpointOptions {
  std::filesystem::path directory;  // of all sets of the job; made where it is missing
  CheckpointIdentity identity;
  int rank = 0;
  int keep = 2;              // complete sets; at least 1
  std::int64_t attempt = 0;  // which start of the job this is; the same on all ranks
  /// A save takes the place of a complete set of its step, which else stays; one rank's sets only.
  bool replaces = false;
  /// Goes on from a set that was trained under another recipe. Where the optimizer is another its
  /// state begins at zero.
  bool accept_changes = false;
  bool parts = false;    // a rank's state is a part of the job's
  Seconds deadline{60};  // for the others' parts, while none of them grows
};

/// What recover() found. Both empty: the job starts from the beginning.
struct Recovery {
  std::optional<std::int64_t> step;
  std::vector<std::string> refused;    // newer sets that cannot be used, and why: tell the user
  std::vector<SettingChange> changes;  // that were accepted
};

/// One completed save of this rank, for Measurements. On rank 0 `write` ends with the manifest.
struct SaveReport {
  std::int64_t step = 0;
  bool emergency = false;
  std::chrono::steady_clock::time_point begin{};
  Seconds blocked{};  // the caller waited: for the save before, and for the copy
  Seconds write{};    // from then until the part (rank 0: the set) was on the device
  Bytes size{};       // of this rank's part
};

class CheckpointStore {
 public:
  explicit CheckpointStore(CheckpointOptions options);
  /// Waits for a save that is under way; its failure is lost here: call finish().
  ~CheckpointStore();
  CheckpointStore(const CheckpointStore&) = delete;
  CheckpointStore& operator=(const CheckpointStore&) = delete;

  /// Rank 0 only, before any rank saves: the newest set of which every byte is as it was written.
  /// Damaged sets are set aside as "step-N.refused", incomplete ones are removed. Throws
  /// ForeignCheckpoint where sets are another job's, ChangedRecipe where it was trained under
  /// settings that options.accept_changes does not let go, and NoUsableCheckpoint where there are
  /// sets but none can be used: to train from the beginning then is for the user to decide;
  /// FileError where none can be used and the storage did not let all be read: nothing is set
  /// aside. `alive` (may be empty) is called again and again while it gets on.
  Recovery recover(const std::function<void()>& alive = {});

  /// `state` out of that set, which ranks of another number, or under another layout, may have
  /// written; without options.parts both have the same tensors. The counters are those of this
  /// rank's part, or of rank 0's where it has none, and kOptimizerBegins. Throws CheckpointError.
  Counters load(std::int64_t step, std::span<const RestoreTensor> state);

  /// Copies `state` and returns. First waits for the save before it and throws what that failed
  /// with (FileError, CheckpointError). `step`: optimizer steps done. A step that a complete set
  /// holds already is not saved again without options.replaces.
  void save(std::int64_t step, Counters counters, std::span<const StateTensor> state,
            bool emergency = false);

  /// Waits until what was saved is on the device (rank 0: the set is valid); throws what failed.
  void finish();

  /// A rank is lost, and its part of what is being saved may never come: nobody waits for it any
  /// more, and the set stays incomplete.
  void abandon() { abandoned_ = true; }

  /// Saves completed since the last call.
  std::vector<SaveReport> take_reports();

 private:
  struct Work;
  SaveReport write(Work work) const;
  void complete_set(const std::filesystem::path& set, const ShardHeader& own) const;

  CheckpointOptions options_;
  std::future<SaveReport> pending_;
  std::vector<SaveReport> reports_;
  std::atomic<bool> abandoned_ = false;
};

}  // namespace reckon
