#include "executor/train/checkpoint/node_checkpoints.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <set>
#include <type_traits>
#include <utility>

#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/checkpoint/state_copy.h"
#include "executor/train/checkpoint/tensor_reader.h"
#include "sim/base/check.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "node_checkpoints";

std::span<std::byte> bytes_of_number(std::int64_t& number) {
  return std::as_writable_bytes(std::span(&number, 1));
}

void send_file(Communicator& ranks, const fs::path& file, int to) {
  const std::vector<std::byte> bytes = read_bytes(file);
  auto size = std::int64_t(bytes.size());
  ranks.start_send(bytes_of_number(size), to);
  ranks.start_send(bytes, to);
}

void receive_file(Communicator& ranks, const fs::path& file, int from) {
  std::int64_t size = 0;
  ranks.receive(bytes_of_number(size), from);
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  ranks.receive(bytes, from);
  const std::array<std::span<const std::byte>, 1> parts{bytes};
  write_durably(file, parts);
}

}  // namespace

std::vector<int> keepers_of_copies(int rank, int ranks, int ranks_per_node, int replicas) {
  const int nodes = (ranks + ranks_per_node - 1) / ranks_per_node, own = rank / ranks_per_node;
  std::vector<int> keepers;
  for (int copy = 1; copy < std::min(replicas, nodes); ++copy) {
    const int first = (own + copy) % nodes * ranks_per_node;
    const int there = std::min(ranks_per_node, ranks - first);
    keepers.push_back(first + rank % ranks_per_node % there);
  }
  return keepers;
}

NodeCheckpoints::NodeCheckpoints(NodeCheckpointOptions options, Communicator& ranks)
    : options_(std::move(options)),
      // A counter, as such stand in every part; the top bit would be its sign.
      mark_(std::int64_t(XXH3_64bits(options_.mark.data(), options_.mark.size()) >> 1)),
      ranks_(ranks) {
  RECKON_CHECK(options_.ranks_per_node >= 1 && options_.replicas >= 1);
  RECKON_CHECK(options_.identity.ranks == ranks.size());
  create_directories_durably(options_.directory);
  const auto keepers = [&](int rank) {
    return keepers_of_copies(rank, ranks.size(), options_.ranks_per_node, options_.replicas);
  };
  copies_to_ = keepers(ranks.rank());
  for (int rank = 0; rank < ranks.size(); ++rank)
    for (const int keeper : keepers(rank))
      if (keeper == ranks.rank()) copies_from_.push_back(rank);
  if (options_.replicas == 1 || ranks.size() == 1) return;
  std::vector<int> all(static_cast<std::size_t>(ranks.size()));
  std::iota(all.begin(), all.end(), 0);
  copying_ = ranks.subgroup(all);
}

NodeCheckpoints::~NodeCheckpoints() {
  if (pending_.valid()) pending_.wait();
}

fs::path NodeCheckpoints::file_of(std::int64_t step, std::int64_t rank) const {
  return shard_file(set_directory(options_.directory, step), int(rank));
}

bool NodeCheckpoints::is_ours(const ShardHeader& header) const {
  const CheckpointIdentity& theirs = header.identity;
  const CheckpointIdentity& ours = options_.identity;
  const auto mark = header.counters.find(kMark);
  return theirs.job == ours.job && theirs.model == ours.model && theirs.ranks == ours.ranks &&
         mark != header.counters.end() && mark->second == mark_ &&
         (!options_.accept_changes || changes_between(theirs.recipe, ours.recipe).empty());
}

/// Of a part of this run: nobody goes on from it under other settings, nor removes it unasked.
void NodeCheckpoints::require_own_recipe(const ShardHeader& header) const {
  const auto changes = changes_between(header.identity.recipe, options_.identity.recipe);
  if (!changes.empty())
    throw ChangedRecipe(fmt::format(
        "{} was trained under other settings:\n{}go on under those, or add --accept-changes",
        set_directory(options_.directory, header.step).string(), to_text(changes)));
}

std::vector<NodeCheckpoints::Part> NodeCheckpoints::own_parts(std::int64_t least) const {
  std::vector<Part> parts;
  for (const CheckpointSet& set : list_sets(options_.directory))
    for (int rank = 0; set.step >= least && rank < ranks_.size(); ++rank) {
      const fs::path file = shard_file(set.directory, rank);
      std::error_code ignored;
      if (!fs::exists(file, ignored)) continue;
      try {
        const ShardHeader header = read_shard_header(file);
        if (!is_ours(header) || header.rank != rank || header.step != set.step) continue;
        require_own_recipe(header);
        parts.push_back({set.step, header.attempt, rank, ranks_.rank()});
      } catch (const ChangedRecipe&) {
        throw;
      } catch (const std::runtime_error&) {
        // Damaged, or another rank of the node has just removed it: it is not there.
      }
    }
  return parts;
}

/// Every rank learns what all nodes hold.
std::vector<NodeCheckpoints::Part> NodeCheckpoints::parts_of_all(std::int64_t least) {
  static_assert(std::is_trivially_copyable_v<Part>);
  const std::vector<Part> own = own_parts(least);
  std::vector<Part> all;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    auto count = std::int64_t(own.size());
    ranks_.broadcast(bytes_of_number(count), rank);
    std::vector<Part> parts = own;
    parts.resize(static_cast<std::size_t>(count));
    ranks_.broadcast(std::as_writable_bytes(std::span(parts)), rank);
    all.insert(all.end(), parts.begin(), parts.end());
  }
  return all;
}

std::optional<NodeCheckpoints::Version> NodeCheckpoints::newest_complete(
    const std::vector<Part>& parts) const {
  std::set<Version> versions;
  for (const Part& part : parts) versions.insert({part.step, part.attempt});
  for (auto version = versions.rbegin(); version != versions.rend(); ++version) {
    const auto holders = holders_of(parts, *version);
    if (std::ranges::count(holders, -1) == 0) return *version;
  }
  return std::nullopt;
}

/// By rank: who is to read its part, itself where its node has it; -1: nobody has it.
std::vector<std::int64_t> NodeCheckpoints::holders_of(const std::vector<Part>& parts,
                                                      Version version) const {
  std::vector<std::int64_t> holders(static_cast<std::size_t>(ranks_.size()), -1);
  for (const Part& part : parts) {
    if (part.step != version.step || part.attempt != version.attempt) continue;
    std::int64_t& holder = holders[static_cast<std::size_t>(part.rank)];
    if (holder < 0 || part.holder == part.rank) holder = part.holder;
  }
  return holders;
}

bool NodeCheckpoints::is_whole(std::int64_t step, std::int64_t rank) const {
  try {
    verify_shard(file_of(step, rank));
    return true;
  } catch (const CheckpointError&) {
    return false;
  } catch (const FileError&) {
    return false;
  }
}

std::optional<std::int64_t> NodeCheckpoints::recover(std::int64_t least) {
  std::vector<Part> parts = parts_of_all(least);
  for (;;) {
    const auto version = newest_complete(parts);
    if (!version) return std::nullopt;
    const std::vector<std::int64_t> holders = holders_of(parts, *version);
    std::vector<std::int64_t> damaged(holders.size());
    for (std::size_t rank = 0; rank < holders.size(); ++rank)
      if (holders[rank] == ranks_.rank() && !is_whole(version->step, std::int64_t(rank))) {
        damaged[rank] = 1;
        std::error_code ignored;
        fs::remove(file_of(version->step, std::int64_t(rank)), ignored);
      }
    ranks_.all_reduce(std::span(damaged));
    if (std::ranges::count(damaged, 0) == ranks_.size()) {
      fetch(version->step, holders);
      return version->step;
    }
    std::erase_if(parts, [&](const Part& part) {
      const auto rank = static_cast<std::size_t>(part.rank);
      return part.step == version->step && part.attempt == version->attempt && damaged[rank] != 0 &&
             part.holder == holders[rank];
    });
  }
}

/// Who lacks its part is sent it, one after the other in the same order everywhere.
void NodeCheckpoints::fetch(std::int64_t step, const std::vector<std::int64_t>& holders) {
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const int holder = int(holders[static_cast<std::size_t>(rank)]);
    if (holder == rank) continue;
    const fs::path file = file_of(step, rank);
    if (ranks_.rank() == holder) send_file(ranks_, file, rank);
    if (ranks_.rank() != rank) continue;
    create_directories_durably(file.parent_path());
    receive_file(ranks_, file, holder);
  }
  ranks_.finish_sends();
}

Counters NodeCheckpoints::load(std::int64_t step, std::span<const RestoreTensor> state) const {
  const TensorReader reader({file_of(step, ranks_.rank())});
  reader.require_all(state);
  reader.read_state(state);
  return reader.header(0).counters;
}

void NodeCheckpoints::remove_all_but(std::optional<std::int64_t> step) const {
  for (const CheckpointSet& set : list_sets(options_.directory)) {
    if (set.step == step) continue;
    std::error_code ignored;  // another rank of the node removes it as well
    fs::remove_all(set.directory, ignored);
  }
}

void NodeCheckpoints::go_on_from(std::optional<std::int64_t> step) {
  ranks_.barrier();  // all have read theirs
  remove_all_but(step);
  ranks_.barrier();  // nobody saves before all have removed what was there
}

void NodeCheckpoints::save(std::int64_t step, Counters counters,
                           std::span<const StateTensor> state) {
  RECKON_CHECK(!saving_);
  ShardHeader header;
  header.identity = options_.identity;
  header.rank = ranks_.rank();
  header.step = step;
  header.attempt = options_.attempt;
  header.counters = std::move(counters);
  header.counters[kMark] = mark_;
  saving_ = step;
  pending_ = std::async(
      std::launch::async,
      [this](ShardHeader h, const StateCopy& copy) { write(std::move(h), copy); },
      std::move(header), StateCopy(state));
}

void NodeCheckpoints::write(ShardHeader header, const StateCopy& state) const {
  const std::int64_t step = header.step;
  const fs::path own = file_of(step, header.rank);
  create_directories_durably(own.parent_path());
  write_shard(own, std::move(header), state.tensors());
  for (const int rank : copies_to_) send_file(*copying_, own, rank);
  for (const int rank : copies_from_) receive_file(*copying_, file_of(step, rank), rank);
  if (copying_) copying_->finish_sends();
}

bool NodeCheckpoints::all_written() {
  if (!saving_) return false;
  if (pending_.valid() && pending_.wait_for(Seconds{0}) == std::future_status::ready)
    pending_.get();
  return !pending_.valid();
}

void NodeCheckpoints::complete() {
  RECKON_CHECK(saving_ && !pending_.valid());
  for (const CheckpointSet& set : list_sets(options_.directory)) {
    if (set.step >= *saving_) continue;
    std::error_code ignored;  // another rank of the node removes it as well
    fs::remove_all(set.directory, ignored);
  }
  saving_.reset();
}

void NodeCheckpoints::finish() {
  if (pending_.valid()) pending_.get();
}

void NodeCheckpoints::clear() {
  finish();
  ranks_.barrier();
  remove_all_but(std::nullopt);
  std::error_code ignored;  // not empty: somebody else's files are in it
  fs::remove(options_.directory, ignored);
  saving_.reset();
}

}  // namespace reckon
