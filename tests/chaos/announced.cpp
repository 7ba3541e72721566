#include "chaos/announced.h"

#include <fmt/format.h>

#include <algorithm>

#include "chaos/job.h"
#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/checkpoint/node_checkpoints.h"
#include "executor/train/checkpoint/node_directory.h"

namespace reckon::test {

namespace fs = std::filesystem;

Announced::Announced(fs::path run, int ranks, std::optional<NodeTier> nodes)
    : run_(std::move(run)), ranks_(ranks), nodes_(nodes) {}

fs::path Announced::node(int number) const { return node_directory(run_, nodes_->to, number); }

fs::path Announced::part(const Saved& saved, int node, int rank) const {
  return shard_file(set_directory(this->node(node), saved.step), rank);
}

void Announced::look() {
  // A set may be pruned, and one of the nodes removed, while it is looked at.
  for (const CheckpointSet& set : list_sets(run_ / "checkpoints")) {
    if (!set.complete) continue;
    try {
      stored_.insert({set.step, verify_set(set.directory, nullptr).attempt});
    } catch (const std::exception& e) {
      if (is_complete(set.directory)) throw Lost(fmt::format("a checkpoint: {}", e.what()));
    }
  }
  if (!nodes_) return;
  for (const auto& [saved, holders] : on_nodes()) {
    if (std::ranges::any_of(holders, &std::set<int>::empty)) continue;
    on_nodes_.insert(saved);
    read_parts(saved, holders);
  }
}

std::map<Announced::Saved, Announced::Holders> Announced::on_nodes() const {
  std::map<Saved, Holders> found;
  for (int number = 0; number < ranks_; ++number)
    for (const CheckpointSet& set : list_sets(node(number)))
      for (int rank = 0; rank < ranks_; ++rank) {
        const fs::path file = shard_file(set.directory, rank);
        std::error_code ignored;
        if (!fs::exists(file, ignored)) continue;
        try {
          Holders& holders = found[{set.step, read_shard_header(file).attempt}];
          holders.resize(std::size_t(ranks_));
          holders[std::size_t(rank)].insert(number);
        } catch (const std::runtime_error& e) {
          if (fs::exists(file, ignored)) throw Lost(fmt::format("a part: {}", e.what()));
        }
      }
  return found;
}

void Announced::read_parts(const Saved& saved, const Holders& holders) const {
  for (int rank = 0; rank < ranks_; ++rank)
    for (const int number : holders[std::size_t(rank)]) {
      const fs::path file = part(saved, number, rank);
      std::error_code ignored;
      try {
        verify_shard(file);
      } catch (const std::runtime_error& e) {
        if (fs::exists(file, ignored)) throw Lost(fmt::format("a part: {}", e.what()));
      }
    }
}

bool Announced::has_all_copies(const Holders& holders) const {
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::set<int>& there = holders[std::size_t(rank)];
    const auto keepers = keepers_of_copies(rank, ranks_, 1, nodes_->replicas);
    if (!there.contains(rank) ||
        !std::ranges::all_of(keepers, [&](int keeper) { return there.contains(keeper); }))
      return false;
  }
  return true;
}

void Announced::check(const Measurements& m) const {
  const auto behind = [](const RunRecord& run, const Saved& saved) {
    return saved.attempt < run.attempt && saved.step > run.first_step;
  };
  for (const RunRecord& run : m.runs) {
    const auto require = [&](const Saved& saved, const char* where) {
      if (behind(run, saved))
        throw Lost(fmt::format("attempt {} began at step {}, although attempt {} had step {} {}",
                               run.attempt, run.first_step, saved.attempt, saved.step, where));
    };
    for (const CheckpointRecord& c : m.checkpoints)
      if (c.action == CheckpointAction::save) require({c.step, c.attempt}, "saved, as it recorded");
    for (const Saved& saved : stored_) require(saved, "in the storage");
    for (const Saved& saved : on_nodes_) require(saved, "on its nodes");
    if (held_) require(*held_, "in the memory of ranks that were left");
  }
}

std::int64_t Announced::begun() const {
  std::int64_t newest = 0;
  const auto take = [&](const fs::path& sets) {
    for (const CheckpointSet& set : list_sets(sets)) newest = std::max(newest, set.step);
  };
  take(run_ / "checkpoints");
  for (int number = 0; nodes_ && number < ranks_; ++number) take(node(number));
  return newest;
}

bool Announced::is_saving() const {
  const auto sets = list_sets(run_ / "checkpoints");
  if (!sets.empty() && !sets.front().complete) return true;
  if (!nodes_) return false;
  const auto found = on_nodes();
  if (found.empty()) return begun() > 0;
  const auto& [newest, holders] = *found.rbegin();
  return begun() > newest.step || !has_all_copies(holders);
}

void Announced::lose_node(int number) {
  std::optional<Saved> newest;
  for (const auto& [saved, holders] : on_nodes())
    if (has_all_copies(holders)) newest = saved;
  std::erase_if(on_nodes_, [&](const Saved& saved) { return saved != newest; });
  fs::remove_all(node(number));
}

void Announced::holds(const Measurements& m, const std::set<int>& lost) {
  if (m.runs.empty()) return;
  Saved held{.attempt = m.runs.back().attempt};
  for (const StepRecord& s : m.steps)
    if (s.attempt == held.attempt && !lost.contains(s.rank))
      held.step = std::max(held.step, s.step + 1);
  held_ = held;
}

}  // namespace reckon::test
