#include "executor/train/checkpoint/node_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/recipe/recipe.h"
#include "sim/scenario/resolve/training/workers.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

/// Of this user, in memory that all users of the machine share.
fs::path own_memory() { return fmt::format("/dev/shm/reckon-{}", ::geteuid()); }

}  // namespace

int ranks_of_node(const Plan& plan) {
  const PlannedStrategy& strategy = plan.only_job().strategy;
  const PlannedPool& pool = *computing_pools(plan).front();
  const int workers =
      planning::workers_on(1, pool.accelerators_per_node, strategy.accelerators_per_worker);
  return std::max(1, workers) * ranks_of_worker(strategy);
}

fs::path node_directory(const fs::path& out, LocalTier to, int node) {
  const std::string name = fmt::format("node-{}", node);
  if (to == LocalTier::local_disk) return out / "nodes" / name;
  // The run's directory may be anywhere, so its name here is a number.
  const std::string run = fs::weakly_canonical(fs::absolute(out)).string();
  return own_memory() / fmt::format("{:016x}", XXH3_64bits(run.data(), run.size())) / name;
}

void make_node_directory(const fs::path& directory, LocalTier to) {
  const fs::path memory = own_memory();
  const bool shared =
      to == LocalTier::peer_memory &&
      std::mismatch(memory.begin(), memory.end(), directory.begin(), directory.end()).first ==
          memory.end();
  if (shared) {
    (void)::mkdir(memory.c_str(), S_IRWXU);
    struct stat about {};
    if (::lstat(memory.c_str(), &about) != 0 || !S_ISDIR(about.st_mode) ||
        about.st_uid != ::geteuid() || (about.st_mode & (S_IRWXG | S_IRWXO)) != 0)
      throw FileError(fmt::format(
          "{} is not a directory of this user alone: checkpoints in memory cannot be kept there; "
          "remove it, or name another place with --node-dir",
          memory.string()));
  }
  create_directories_durably(directory);
}

namespace {

/// Directories of so many ranks; none where the plan keeps nothing there.
std::vector<fs::path> nodes_of_run(const Plan& plan, const fs::path& out, int ranks) {
  std::vector<fs::path> nodes;
  const auto& local = plan.only_job().checkpoint.local;
  if (!local) return nodes;
  const int each = ranks_of_node(plan);
  for (int node = 0; node * each < ranks; ++node)
    nodes.push_back(node_directory(out, local->to, node));
  return nodes;
}

/// nullopt: all parts are damaged, or still being written.
std::optional<CheckpointIdentity> identity_of_any_part(const fs::path& set) {
  std::error_code none;
  for (const auto& part : fs::directory_iterator(set, none)) {
    try {
      return read_shard_header(part.path()).identity;
    } catch (const std::runtime_error&) {  // another part may be whole
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::int64_t> newest_on_nodes(const Plan& plan, const fs::path& out, int ranks) {
  std::map<std::int64_t, std::set<int>> parts;  // by step: the ranks'
  for (const fs::path& node : nodes_of_run(plan, out, ranks))
    for (const CheckpointSet& set : list_sets(node))
      for (int rank = 0; rank < ranks; ++rank) {
        std::error_code ignored;
        if (fs::exists(shard_file(set.directory, rank), ignored)) parts[set.step].insert(rank);
      }
  for (auto step = parts.rbegin(); step != parts.rend(); ++step)
    if (step->second.size() == static_cast<std::size_t>(ranks)) return step->first;
  return std::nullopt;
}

std::optional<SetOnNodes> newest_set_on_nodes(const Plan& plan, const fs::path& out) {
  std::optional<SetOnNodes> newest;
  const PlannedWorkload& job = plan.only_job();
  for (const fs::path& node : nodes_of_run(plan, out, computing_ranks(job.strategy)))
    for (const CheckpointSet& set : list_sets(node)) {
      if (newest && set.step <= newest->step) continue;
      if (auto identity = identity_of_any_part(set.directory))
        newest = SetOnNodes{set.step, std::move(*identity)};
    }
  return newest;
}

}  // namespace reckon
