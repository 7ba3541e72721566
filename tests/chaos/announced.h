#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/measurement/measurements.h"
#include "sim/scenario/spec/words.h"

namespace reckon::test {

/// workload.checkpoint.local of a job whose nodes have one rank each.
struct NodeTier {
  LocalTier to = LocalTier::local_disk;
  int replicas = 1;
};

/// What a run on this machine has announced as saved, as its files say to one who looks on: a
/// manifest in the storage announces a set; on the nodes a checkpoint is one as soon as all ranks'
/// parts of it are there. No later start may go back behind either.
class Announced {
 public:
  Announced(std::filesystem::path run, int ranks, std::optional<NodeTier> nodes);

  /// Takes in what is there now, and reads every byte of it. Throws Lost.
  void look();
  /// Throws Lost where a start of a later attempt began behind what was announced.
  void check(const Measurements& m) const;

  /// The newest step of which a save has begun.
  std::int64_t begun() const;
  /// Its save is not done yet.
  bool is_saving() const;

  /// The directory of that node goes. Behind it only what had all its copies stays announced.
  void lose_node(int node);
  /// Ranks but `lost` go on with what they have in memory, and no process was lost in this start
  /// before: the next one must not go back behind steps that they have recorded. Until release().
  void holds(const Measurements& m, const std::set<int>& lost);
  void release() { held_.reset(); }

 private:
  struct Saved {
    std::int64_t step = 0, attempt = 0;
    friend auto operator<=>(const Saved&, const Saved&) = default;
  };
  /// Of a checkpoint on the nodes, by rank: the nodes that have its part.
  using Holders = std::vector<std::set<int>>;
  std::map<Saved, Holders> on_nodes() const;
  void read_parts(const Saved& saved, const Holders& holders) const;
  bool has_all_copies(const Holders& holders) const;
  std::filesystem::path node(int number) const;
  std::filesystem::path part(const Saved& saved, int node, int rank) const;

  std::filesystem::path run_;
  int ranks_;
  std::optional<NodeTier> nodes_;
  std::set<Saved> stored_, on_nodes_;
  std::optional<Saved> held_;
};

}  // namespace reckon::test
