#include "executor/train/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <utility>

#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/checkpoint/state_copy.h"
#include "executor/train/checkpoint/tensor_reader.h"
#include "executor/train/loss_scale.h"
#include "sim/base/check.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// The part of `rank` as this start of the job wrote it; nullopt: not there yet.
std::optional<ShardHeader> part_of(const fs::path& set, int rank, const ShardHeader& own) {
  const fs::path file = shard_file(set, rank);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return std::nullopt;
  ShardHeader header = read_shard_header(file);
  if (header.attempt != own.attempt) return std::nullopt;  // an earlier start's; to be replaced
  require_identity(file, header.identity, own.identity);
  if (header.rank != rank || header.step != own.step || header.identity.ranks != own.identity.ranks)
    throw CheckpointError(fmt::format("{} holds rank {} of {} at step {}", file.string(),
                                      header.rank, header.identity.ranks, header.step));
  return header;
}

/// The parts of a set, that of `rank` first: what all ranks have, each in its own version (running
/// statistics), it goes on with.
std::vector<fs::path> parts_for(const fs::path& set, int ranks, int rank) {
  std::vector<fs::path> parts = shard_files(set, ranks);
  if (rank < ranks) std::swap(parts[0], parts[static_cast<std::size_t>(rank)]);
  return parts;
}

/// `next` takes the place of `old`, which goes.
void exchange_sets(const fs::path& next, const fs::path& old) {
  // At once, so that a crash leaves one or the other.
  if (::renameat2(AT_FDCWD, next.c_str(), AT_FDCWD, old.c_str(), RENAME_EXCHANGE) == 0) {
    flush_directory(old.parent_path());
    remove_set(next);
    return;
  }
  remove_set(old);  // a file system that cannot
  fs::rename(next, old);
  flush_directory(old.parent_path());
}

/// Of all files in it: it changes while somebody writes.
std::uintmax_t bytes_in(const fs::path& set) {
  std::uintmax_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator entry(set, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code gone;  // renamed meanwhile
    if (const auto size = entry->file_size(gone); !gone) bytes += size;
  }
  return bytes;
}

/// Nobody has written in a set for so long.
class Stillness {
 public:
  Stillness(const fs::path& set, Seconds limit)
      : set_(set), limit_(std::chrono::duration_cast<Clock::duration>(limit)) {}
  bool is_too_long() {
    constexpr std::chrono::seconds kBetweenLooks{1};
    const Clock::time_point now = Clock::now();
    if (now - since_ <= limit_ && now - looked_ < kBetweenLooks) return false;
    looked_ = now;
    if (const std::uintmax_t bytes = bytes_in(set_); bytes != std::exchange(bytes_, bytes))
      since_ = now;
    return now - since_ > limit_;
  }

 private:
  const fs::path& set_;
  const Clock::duration limit_;
  std::uintmax_t bytes_ = 0;
  Clock::time_point since_ = Clock::now(), looked_{};
};

}  // namespace

struct CheckpointStore::Work {
  ShardHeader header;
  StateCopy copy;
  SaveReport report;
};

CheckpointStore::CheckpointStore(CheckpointOptions options) : options_(std::move(options)) {
  RECKON_CHECK(options_.keep >= 1);
  RECKON_CHECK(options_.rank >= 0 && options_.rank < options_.identity.ranks);
  create_directories_durably(options_.directory);
}

CheckpointStore::~CheckpointStore() {
  if (pending_.valid()) pending_.wait();
}

Recovery CheckpointStore::recover(const std::function<void()>& alive) {
  RECKON_CHECK(options_.rank == 0);
  // Without its list there would be no checkpoint, and the job would begin anew.
  std::error_code unlisted;
  const fs::directory_iterator list(options_.directory, unlisted);
  if (unlisted)
    throw FileError(
        fmt::format("cannot list {}: {}", options_.directory.string(), unlisted.message()));
  const GoodSet good = newest_good_set(options_.directory, &options_.identity, alive);
  for (const CheckpointSet& set : list_sets(options_.directory))
    if (!set.complete) remove_set(set.directory);
  Recovery recovery;
  for (const GoodSet::Refused& refused : good.refused) recovery.refused.push_back(refused.why);
  if (!good.set && std::ranges::any_of(good.refused, &GoodSet::Refused::unread))
    throw FileError(fmt::format("no checkpoint of {} can be read now; all stay as they are:\n  {}",
                                options_.directory.string(), fmt::join(recovery.refused, "\n  ")));
  for (const GoodSet::Refused& refused : good.refused) set_aside(refused.set);
  if (!good.set && !good.refused.empty())
    throw NoUsableCheckpoint(fmt::format(
        "no checkpoint of {} can be used; start again to train from the beginning:\n  {}",
        options_.directory.string(), fmt::join(recovery.refused, "\n  ")));
  if (!good.set) return recovery;
  recovery.step = good.set->step;
  recovery.changes = changes_between(good.manifest.identity.recipe, options_.identity.recipe);
  if (!recovery.changes.empty() && !options_.accept_changes)
    throw ChangedRecipe(fmt::format(
        "{}{}{} was trained under other settings:\n{}go on under those, or add --accept-changes",
        fmt::join(recovery.refused, "\n"), recovery.refused.empty() ? "" : "\n",
        good.set->directory.string(), to_text(recovery.changes)));
  return recovery;
}

Counters CheckpointStore::load(std::int64_t step, std::span<const RestoreTensor> state) {
  const fs::path set = set_directory(options_.directory, step);
  const int ranks = read_manifest(set).identity.ranks;
  const TensorReader reader(parts_for(set, ranks, options_.rank));
  const ShardHeader& header = reader.header(0);
  require_identity(set, header.identity, options_.identity);
  if (header.rank != (options_.rank < ranks ? options_.rank : 0) || header.step != step)
    throw CheckpointError(fmt::format("{} holds a part of rank {} at step {}", set.string(),
                                      header.rank, header.step));
  const auto of = [](const CheckpointIdentity& i) { return setting_of(i.recipe, "optimizer"); };
  const std::string theirs = of(header.identity);
  const bool other_optimizer =
      options_.accept_changes && !theirs.empty() && theirs != of(options_.identity);
  const std::string_view left_out = other_optimizer ? kOptimizerTensors : kNoTensor;
  if (!options_.parts) reader.require_all(state, left_out);
  // Trained in another precision before: the scale of the loss begins anew.
  const auto is_scale = [](const RestoreTensor& t) { return t.slice.name == LossScale::kTensor; };
  std::vector<RestoreTensor> wanted(state.begin(), state.end());
  if (options_.accept_changes && !reader.tensors().contains(LossScale::kTensor))
    std::erase_if(wanted, is_scale);
  reader.read_state(wanted, left_out);
  Counters counters = header.counters;
  if (other_optimizer) counters[kOptimizerBegins] = 1;
  return counters;
}

void CheckpointStore::save(std::int64_t step, Counters counters, std::span<const StateTensor> state,
                           bool emergency) {
  const Clock::time_point begin = Clock::now();
  finish();
  if (!options_.replaces && is_complete(set_directory(options_.directory, step))) return;

  Work work{.header = {}, .copy = StateCopy(state), .report = {}};
  work.header.identity = options_.identity;
  work.header.rank = options_.rank;
  work.header.step = step;
  work.header.attempt = options_.attempt;
  work.header.counters = std::move(counters);
  work.report = {step, emergency, begin, Clock::now() - begin, {}, {}};
  pending_ = std::async(
      std::launch::async, [this](Work w) { return write(std::move(w)); }, std::move(work));
}

void CheckpointStore::finish() {
  if (pending_.valid()) reports_.push_back(pending_.get());
}

std::vector<SaveReport> CheckpointStore::take_reports() {
  if (pending_.valid() && pending_.wait_for(Seconds{0}) == std::future_status::ready) finish();
  return std::exchange(reports_, {});
}

SaveReport CheckpointStore::write(Work work) const {
  const Clock::time_point begin = Clock::now();
  const fs::path place = set_directory(options_.directory, work.header.step);
  const bool replaces = options_.replaces && is_complete(place);
  const fs::path set = replaces ? fs::path(place.string() + ".next") : place;
  if (replaces) fs::remove_all(set);
  create_directories_durably(set);
  const ShardHeader own =
      write_shard(shard_file(set, options_.rank), std::move(work.header), work.copy.tensors());
  if (options_.rank == 0) {
    complete_set(set, own);
    if (replaces) exchange_sets(set, place);
    prune_sets(options_.directory, options_.keep);
  }
  work.report.write = Clock::now() - begin;
  work.report.size = Bytes{double(own.file_bytes)};
  return work.report;
}

void CheckpointStore::complete_set(const fs::path& set, const ShardHeader& own) const {
  constexpr std::chrono::milliseconds kBetweenLooks{2};
  Stillness stillness(set, options_.deadline);
  Manifest manifest{own.identity, own.step, own.attempt, {}};
  for (int rank = 0; rank < own.identity.ranks; ++rank) {
    std::optional<ShardHeader> part = rank == options_.rank ? own : part_of(set, rank, own);
    while (!part) {
      if (abandoned_)
        throw CheckpointError(
            fmt::format("{} is not complete: rank {} is lost", set.string(), rank));
      if (stillness.is_too_long())
        throw CheckpointError(fmt::format(
            "{} is not complete: rank {} did not write its part, nor anybody anything for {}; is "
            "--out storage that all machines share?",
            set.string(), rank, format_duration(options_.deadline)));
      std::this_thread::sleep_for(kBetweenLooks);
      part = part_of(set, rank, own);
    }
    manifest.shards.push_back({part->file_bytes, part->digest});
  }
  write_manifest(set, manifest);
}

}  // namespace reckon
