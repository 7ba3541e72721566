#include "executor/train/records/run_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "executor/train/checkpoint/checkpoint_set.h"
#include "executor/train/checkpoint/durable_file.h"
#include "executor/train/records/measurement_log.h"
#include "executor/train/records/run_directory.h"
#include "sim/measurement/run/diff.h"
#include "sim/scenario/artifact/artifact.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;
using State = RunFinding::State;
using RepairKind = RunRepair::Kind;

constexpr const char* kPlanAnew =
    "go on with the scenario that you started it with: --resume writes the plan again";

bool is_there(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored);
}

/// All entries of a directory, in the order of their names; none where it is none.
std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> all;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    all.push_back(entry->path());
  std::sort(all.begin(), all.end());
  return all;
}

/// What a write that was broken off leaves beside a file: NAME.part-PROCESS.
bool is_partial(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::size_t at = name.rfind(".part-");
  return at != std::string::npos && at > 0 && at + 6 < name.size() &&
         name.find_first_not_of("0123456789", at + 6) == std::string::npos;
}

class RunChecker {
 public:
  RunChecker(const fs::path& directory, const RunLock::Look& lock,
             const std::function<void()>& alive)
      : run_{directory}, lock_(lock), alive_(alive) {}

  RunCheck check() {
    check_.in_use = lock_.held;
    check_.holder = lock_.holder;
    check_lock();
    check_plan();
    check_forecast();
    check_measurements();
    check_checkpoints();
    check_weights();
    if (!check_.in_use) check_leftovers();
    return std::move(check_);
  }

 private:
  RunFinding& add(std::string name, State state, std::string detail, std::string todo = "") {
    check_.findings.push_back({std::move(name), state, {std::move(detail)}, std::move(todo), {}});
    return check_.findings.back();
  }

  void check_lock() {
    if (lock_.held) {
      add("lock", State::sound, "held by " + lock_.holder);
    } else if (lock_.dead) {
      add("lock", State::sound, fmt::format("free, left by {}, which is gone", lock_.holder),
          "remove it");
    } else {
      add("lock", State::sound,
          lock_.holder.empty() ? "free" : fmt::format("free; {} had it last", lock_.holder));
    }
  }

  void check_plan() {
    if (!is_there(run_.plan())) {
      if (!is_there(run_.forecast()))
        add("plan", State::sound, "none is kept: its processes were started by hand");
      else
        add("plan", State::lost, fmt::format("{} is missing", run_.plan().string()), kPlanAnew);
      return;
    }
    try {
      const auto read = read_artifact(read_file_text(run_.plan()), run_.plan().string());
      if (read)
        add("plan", State::sound, "whole, digest " + read->digest);
      else
        add("plan", State::lost, format(read.error().front()), kPlanAnew);
    } catch (const FileError& e) {
      add("plan", State::lost, e.what(), kPlanAnew);
    }
  }

  void check_forecast() {
    if (!is_there(run_.forecast())) return;
    try {
      const auto read = parse_forecast(run_.forecast().string(), read_file_text(run_.forecast()));
      if (read) return void(add("forecast", State::sound, "can be read"));
      add("forecast", State::lost, format(read.error().front()),
          "reckon simulate --format json makes another");
    } catch (const FileError& e) {
      add("forecast", State::lost, e.what(), "reckon simulate --format json makes another");
    }
  }

  void check_measurements() {
    const fs::path file = run_.measurements(), aside = damaged_lines_of(file);
    if (!is_there(file)) {
      add("measurements", State::sound, "none yet");
      return;
    }
    try {
      const auto read = read_measurement_log(file);
      if (!read) return void(add("measurements", State::lost, read.error().front().what));
      std::size_t records = 0;
      for_each_record(*read, [&](const auto&) { ++records; });
      const std::string kept = is_there(aside) ? fmt::format("; damaged lines of before are in {}",
                                                             aside.filename().string())
                                               : "";
      const std::string torn =
          read->torn_lines > 0 ? ", the last line torn off by a kill: it is cut" : "";
      RunFinding& finding =
          add("measurements", read->damaged.empty() ? State::sound : State::damaged,
              fmt::format("{} records{}{}", records, torn, kept));
      if (read->damaged.empty()) return;
      for (const DamagedLine& line : read->damaged)
        finding.details.push_back(
            fmt::format("line {} (bytes {} to {}): {}{}", line.line, line.begin,
                        line.begin + line.bytes, line.why.front().what,
                        line.rescued.empty()
                            ? ""
                            : fmt::format("; {} records in it are whole", line.rescued.size())));
      finding.todo = "set the damaged lines aside in " + aside.filename().string();
      finding.repairs.push_back({RepairKind::set_lines_aside, file, {}});
    } catch (const FileError& e) {
      add("measurements", State::lost, e.what());
    }
  }

  void check_checkpoints() {
    const auto sets = list_sets(run_.checkpoints());
    bool any = false;
    for (const CheckpointSet& set : sets) {
      if (!set.complete) {
        if (!check_.in_use) check_incomplete(set);
        continue;
      }
      any = true;
      check_set(set);
    }
    for (const fs::path& entry : entries_of(run_.checkpoints())) {
      if (entry.extension() == ".next" && !check_.in_use) any |= check_next(entry);
      if (entry.extension() == ".refused")
        add("checkpoint", State::sound,
            fmt::format("{} was set aside as damaged", entry.filename().string()));
    }
    if (!any)
      add("checkpoints", State::sound, "none: the run begins at step 0");
    else if (!check_.resumes_at)
      add("checkpoints", State::lost, "none is whole: the run begins at step 0");
  }

  void check_incomplete(const CheckpointSet& set) {
    add(fmt::format("checkpoint {}", set.step), State::damaged,
        "no manifest: its save was broken off", "remove it")
        .repairs.push_back({RepairKind::remove, set.directory, {}});
  }

  void check_set(const CheckpointSet& set) {
    const std::string name = fmt::format("checkpoint {}", set.step);
    std::vector<std::string> wrong;
    try {
      wrong = damage_of_set(set.directory);
    } catch (const OldCheckpoint& e) {
      return void(add(name, State::lost, e.what()));
    }
    if (wrong.empty()) {
      const bool newest = !check_.resumes_at;
      if (newest) check_.resumes_at = set.step;
      add(name, State::sound, newest ? "whole; --resume goes on from it" : "whole");
      return;
    }
    if (check_.in_use && !is_complete(set.directory)) return;  // the run has newer ones
    RunFinding& finding = add(name, State::damaged, "", "set it aside as .refused");
    finding.details = std::move(wrong);
    finding.repairs.push_back({RepairKind::set_aside, set.directory, {}});
  }

  std::optional<std::string> damage_of_part(const fs::path& set, const Manifest& manifest,
                                            int rank) {
    try {
      verify_part(set, manifest, rank, alive_);
      return std::nullopt;
    } catch (const std::runtime_error& e) {
      return e.what();
    }
  }

  /// Every damaged file of a set. Throws OldCheckpoint, whose files are not looked at.
  std::vector<std::string> damage_of_set(const fs::path& set) {
    std::vector<std::string> wrong;
    try {
      const Manifest manifest = read_manifest(set);
      for (int rank = 0; rank < manifest.identity.ranks; ++rank)
        if (auto damage = damage_of_part(set, manifest, rank)) wrong.push_back(std::move(*damage));
    } catch (const OldCheckpoint&) {
      throw;
    } catch (const std::runtime_error& e) {
      wrong.emplace_back(e.what());
    }
    return wrong;
  }

  /// A set that was to take the place of another when its process was killed.
  bool check_next(const fs::path& next) {
    fs::path place = next;
    place.replace_extension();
    const std::string name = next.filename().string();
    if (is_there(place) || !damage_of_set(next).empty()) {
      add("checkpoint", State::damaged, name + " is left of a save that was broken off",
          "remove it")
          .repairs.push_back({RepairKind::remove, next, {}});
      return false;
    }
    const Manifest manifest = read_manifest(next);
    check_.resumes_at = std::max(check_.resumes_at.value_or(0), manifest.step);
    add("checkpoint", State::damaged, name + " is whole and was not put into its place",
        "put it there")
        .repairs.push_back({RepairKind::move_back, place, next});
    return true;
  }

  void check_weights() {
    const fs::path file = run_.weights();
    if (!is_there(file)) return;
    const std::string name = file.filename().string();
    try {
      verify_shard(file, alive_);
      const std::int64_t step = read_shard_header(file).step;
      const bool earlier = check_.resumes_at && step < *check_.resumes_at;
      add("weights", State::sound,
          earlier ? fmt::format("whole, of an earlier end of the run at step {}", step)
                  : fmt::format("whole, of step {}", step));
    } catch (const CheckpointError& e) {
      add("weights", State::damaged, e.what(),
          "set it aside as .refused; reckon-worker export takes the checkpoint")
          .repairs.push_back({RepairKind::set_aside, file, {}});
    } catch (const FileError& e) {
      add("weights", State::lost, e.what());
    }
  }

  void check_leftovers() {
    RunFinding left{"leftovers", State::damaged, {}, "remove them", {}};
    std::vector<fs::path> directories{run_.root, run_.checkpoints()};
    for (const CheckpointSet& set : list_sets(run_.checkpoints()))
      directories.push_back(set.directory);
    for (const fs::path& directory : directories)
      for (const fs::path& file : entries_of(directory)) {
        if (!is_partial(file)) continue;
        left.details.push_back(file.lexically_relative(run_.root).string());
        left.repairs.push_back({RepairKind::remove, file, {}});
      }
    if (!left.repairs.empty()) check_.findings.push_back(std::move(left));
  }

  RunDirectory run_;
  const RunLock::Look& lock_;
  const std::function<void()>& alive_;
  RunCheck check_;
};

void do_repair(const RunRepair& r) {
  switch (r.kind) {
    case RepairKind::set_lines_aside:
      if (const auto read = take_up_measurement_log(r.path); !read)
        throw FileError(format(read.error()));
      return;
    case RepairKind::set_aside:
      return set_aside(r.path);
    case RepairKind::remove:  // it may have been in a set that another repair has moved
      if (fs::remove_all(r.path) > 0) flush_directory(r.path.parent_path());
      return;
    case RepairKind::move_back:
      fs::rename(r.from, r.path);
      return flush_directory(r.path.parent_path());
  }
}

}  // namespace

bool RunCheck::sound() const {
  return std::ranges::all_of(findings, [](const RunFinding& f) { return f.state == State::sound; });
}

bool RunCheck::lost() const {
  return std::ranges::any_of(findings, [](const RunFinding& f) { return f.state == State::lost; });
}

bool is_run_directory(const fs::path& directory) {
  const RunDirectory run{directory};
  // Not its weights: people have files of that name elsewhere.
  const std::array parts{run.plan(), run.measurements(), run.checkpoints()};
  return std::ranges::any_of(parts, is_there);
}

RunCheck check_run(const fs::path& directory, const RunLock::Look& lock,
                   const std::function<void()>& alive) {
  return RunChecker(directory, lock, alive).check();
}

void repair(const RunFinding& finding) {
  for (const RunRepair& r : finding.repairs) do_repair(r);
}

}  // namespace reckon
