#pragma once
#include <cstdint>
#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/train/checkpoint/checkpoint_shard.h"
#include "sim/base/quantity.h"

// Checkpoints on the nodes of a job, besides those in the storage: frequent, and gone with their
// node [Mohan et al. 2021, "CheckFreq", FAST '21; Wang et al. 2023, "Gemini", SOSP '23]. Each node
// has a directory, with the parts of its ranks and copies of other nodes' parts:
//
//   NODE/step-000000001200/rank-0.safetensors, rank-1.safetensors ...
//
// No rank sees all nodes, so there is no manifest: a checkpoint is complete when every rank knows
// of all others that their parts and copies are written. Until then the one before it stays.
//
//   every rank: recover() -> step, or none -> load(step, ...) -> go_on_from(step)
//   every rank, at the same steps: save(step, ...); then in each step: is all_written() on all
//   ranks? -> complete()
//
// What is "collective" is called by all ranks of the communicator, in the same order.
namespace reckon {

struct NodeCheckpointOptions {
  std::filesystem::path directory;  // of this rank's node; made where it is missing
  CheckpointIdentity identity;
  /// Of the run and of how its state is cut over the ranks: parts with another are not read.
  std::string mark;
  std::int64_t attempt = 0;  // which start of the job this is; the same on all ranks
  int ranks_per_node = 1;    // neighbours; the last node may have fewer
  int replicas = 1;          // copies of each part, on as many nodes; at most all nodes
  /// Parts that were trained under another recipe are not read, as if they were another run's.
  bool accept_changes = false;
};

class NodeCheckpoints {
 public:
  /// Collective. Throws FileError where the directory cannot be made.
  NodeCheckpoints(NodeCheckpointOptions options, Communicator& ranks);
  /// Waits for a save that is under way; its failure is lost here: call finish().
  ~NodeCheckpoints();
  NodeCheckpoints(const NodeCheckpoints&) = delete;
  NodeCheckpoints& operator=(const NodeCheckpoints&) = delete;

  /// Collective. The newest checkpoint of `least` steps or more of which the nodes hold all parts,
  /// every byte as it was written; damaged parts are removed. A part that this rank's node does not
  /// hold it is sent by one that does. nullopt: there is none. Throws CommError and FileError, and
  /// ChangedRecipe where the node has parts of this run that were trained under other settings,
  /// which options.accept_changes lets go.
  std::optional<std::int64_t> recover(std::int64_t least);
  /// `state` out of this rank's part of that checkpoint. Throws CheckpointError and FileError.
  Counters load(std::int64_t step, std::span<const RestoreTensor> state) const;
  /// Collective. The training goes on from that checkpoint, nullopt: from elsewhere. All others are
  /// removed from the nodes.
  void go_on_from(std::optional<std::int64_t> step);

  /// Copies `state` and returns; a thread writes the part and sends its copies. The checkpoint
  /// before it must be complete().
  void save(std::int64_t step, Counters counters, std::span<const StateTensor> state);
  /// A checkpoint was begun and is not complete.
  bool is_saving() const { return saving_.has_value(); }
  /// This rank's part and the copies that it keeps are on its node. Throws what that failed with
  /// (FileError, CommError).
  bool all_written();
  /// All ranks have all_written(): older checkpoints go.
  void complete();
  /// Waits until all_written(); throws what failed.
  void finish();
  /// Collective, when the storage has all of the work: nothing is left on the nodes.
  void clear();

 private:
  struct Part {  // of a checkpoint, as a rank's node has it
    std::int64_t step = 0, attempt = 0, rank = 0, holder = 0;
  };
  struct Version {
    std::int64_t step = 0, attempt = 0;
    friend auto operator<=>(const Version&, const Version&) = default;
  };
  std::vector<Part> own_parts(std::int64_t least) const;
  std::vector<Part> parts_of_all(std::int64_t least);
  std::optional<Version> newest_complete(const std::vector<Part>& parts) const;
  std::vector<std::int64_t> holders_of(const std::vector<Part>& parts, Version version) const;
  bool is_whole(std::int64_t step, std::int64_t rank) const;
  void fetch(std::int64_t step, const std::vector<std::int64_t>& holders);
  void write(ShardHeader header, const class StateCopy& state) const;
  std::filesystem::path file_of(std::int64_t step, std::int64_t rank) const;
  bool is_ours(const ShardHeader& header) const;
  void require_own_recipe(const ShardHeader& header) const;
  void remove_all_but(std::optional<std::int64_t> step) const;

  NodeCheckpointOptions options_;
  std::int64_t mark_;
  Communicator& ranks_;
  std::unique_ptr<Communicator> copying_;  // of the thread that writes; null: one replica
  std::vector<int> copies_to_, copies_from_;
  std::future<void> pending_;
  std::optional<std::int64_t> saving_;  // steps
};

/// Of a rank's part: the ranks on other nodes that keep its copies. Nodes follow one another, the
/// first behind the last.
std::vector<int> keepers_of_copies(int rank, int ranks, int ranks_per_node, int replicas);

}  // namespace reckon
