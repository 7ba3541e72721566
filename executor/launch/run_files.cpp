#include "executor/launch/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "executor/train/checkpoint/checkpoint_set.h"
#include "sim/base/mapped_file.h"
#include "sim/scenario/artifact/artifact.h"

namespace reckon {
namespace {

namespace fs = std::filesystem;

fs::path made(const fs::path& directory) {
  create_directories_durably(directory);
  return directory;
}

std::string damage_told(const Measurements& read, const fs::path& file) {
  if (read.damaged.empty()) return "";
  return fmt::format("{}set aside in {}; the run goes on without", format(damage_of(read)),
                     damaged_lines_of(file).string());
}

/// Are all steps in the newest checkpoint whose bytes are as they were written, and the weights
/// beside it?
bool holds_all(const RunDirectory& directory, std::int64_t steps) {
  if (!fs::exists(directory.weights())) return false;
  try {
    const GoodSet newest = newest_good_set(directory.checkpoints(), nullptr);
    return newest.set && newest.set->step >= steps;
  } catch (const std::runtime_error&) {
    return false;  // who starts the run says what is wrong with it
  }
}

std::optional<EndRecord> finished_before(const RunFilesOptions& options, const Measurements& read) {
  if (options.steps == 0 || read.ends.empty()) return std::nullopt;
  const EndRecord& last = read.ends.back();
  if (!last.finished || last.steps_done < options.steps) return std::nullopt;
  if (options.leaves_weights && !holds_all(options.directory, options.steps)) return std::nullopt;
  return last;
}

bool can_be_read(const fs::path& plan) {
  try {
    return bool(read_artifact(read_whole(plan), plan.string()));
  } catch (const std::runtime_error&) {
    return false;
  }
}

void refuse_other(const RunDirectory& directory, const Measurements& read,
                  const std::string& started) {
  const auto own = RunClock::parse(started);
  if (!own) return;
  for (const RunRecord& run : read.runs)
    if (const auto clock = RunClock::parse(run.started);
        clock && clock->started() != own->started())
      throw FileError(
          fmt::format("{} holds the records of another run, which started at {} and not at {}; "
                      "--out names another directory",
                      directory.root.string(), run.started, started));
}

EarlierPart look_back(const RunFilesOptions& options) {
  const fs::path file = options.directory.measurements();
  const std::string root = options.directory.root.string();
  const bool there = fs::exists(file) && fs::file_size(file) > 0;
  if (!there && options.earlier == Earlier::needed)
    throw FileError(fmt::format("{} holds no run to resume", root));
  if (!there) return {};
  if (options.earlier == Earlier::refused)
    throw FileError(fmt::format(
        "{} holds a run already; --resume goes on with it, --out names another directory", root));
  const auto read = take_up_measurement_log(file);
  if (!read) throw FileError(format(read.error()));
  refuse_other(options.directory, *read, options.started);
  EarlierPart before;
  const NextStart next = next_start(*read);
  before.attempt = next.attempt;
  before.clock = next.clock;
  before.damage = damage_told(*read, file);
  before.steps = read->steps;
  before.checkpoints = read->checkpoints;
  before.runs = read->runs;
  before.ends = read->ends;
  for (const RunRecord& run : read->runs)
    if (!options.digest.empty() && !run.plan_digest.empty() && run.plan_digest != options.digest)
      before.of_this_plan = std::max(before.of_this_plan, run.attempt + 1);
  before.interruptions = std::int64_t(read->interruptions.size());
  for (const CheckpointRecord& c : read->checkpoints)
    if (c.action == CheckpointAction::save)
      before.checkpoint = std::max(before.checkpoint.value_or(0), c.step);
  before.finished = finished_before(options, *read);
  return before;
}

}  // namespace

void refuse_other_run(const RunDirectory& directory, const std::string& started) {
  const fs::path file = directory.measurements();
  if (!fs::exists(file)) return;
  const auto read = read_measurement_log(file);
  if (read) refuse_other(directory, *read, started);  // else who takes it up says what is wrong
}

RunFiles::RunFiles(const RunFilesOptions& options)
    : directory_(options.directory),
      lock_(made(directory_.root)),
      before_(look_back(options)),
      measurements_(directory_.measurements()) {
  made(directory_.logs());
  for (int k = 0; k < options.processes; ++k) {
    logs_.emplace_back(log_of(k), std::ios::app);
    if (!logs_.back())
      throw FileError(fmt::format("cannot write {}: {}", log_of(k).string(), std::strerror(errno)));
  }
  // Behind the lock: the directory may be another run's.
  if (before_.finished && can_be_read(directory_.plan()) && fs::exists(directory_.forecast()))
    return;
  if (!options.plan.empty()) write_durably(directory_.plan(), options.plan);
  if (!options.forecast_text.empty()) write_durably(directory_.forecast(), options.forecast_text);
}

fs::path RunFiles::log_of(int process) const {
  return directory_.logs() / fmt::format("rank-{}.log", process);
}

std::optional<std::string> RunFiles::line(int process, std::string_view text) {
  std::ofstream& file = logs_[std::size_t(process)];
  if (!file) return std::nullopt;
  file << text << '\n' << std::flush;
  if (file) return std::nullopt;
  return fmt::format("cannot write {}: {}; it ends here", log_of(process).string(),
                     std::strerror(errno));
}

}  // namespace reckon
