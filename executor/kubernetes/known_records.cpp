#include "executor/kubernetes/known_records.h"

#include <algorithm>
#include <fstream>

namespace reckon::kubernetes {
namespace {

using Last = std::map<std::int64_t, std::int64_t>;

std::set<std::string> lines_of(const std::filesystem::path& file) {
  std::set<std::string> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.insert(line + '\n');
  return lines;
}

void raise(Last& last, std::int64_t attempt, std::int64_t step) {
  const auto [at, is_new] = last.emplace(attempt, step);
  if (!is_new) at->second = std::max(at->second, step);
}

bool up_to(const Last& last, std::int64_t attempt, std::int64_t step) {
  const auto at = last.find(attempt);
  return at != last.end() && step <= at->second;
}

}  // namespace

KnownRecords::KnownRecords(const std::filesystem::path& file, bool foreign)
    : foreign_(foreign), lines_(lines_of(file)) {
  if (!lines_.empty()) learn();
}

void KnownRecords::learn() {
  std::string text;
  for (const std::string& line : lines_) text += line;
  const auto parsed = parse_measurements("measurements", text);
  if (!parsed) return;
  for (const RunRecord& run : parsed->runs) runs_.emplace(run.attempt, run.first_step);
  for (const StepRecord& step : parsed->steps) raise(steps_, step.attempt, step.step);
  for (const CheckpointRecord& save : parsed->checkpoints)
    if (save.action == CheckpointAction::save) raise(saves_, save.attempt, save.step);
  for (const InterruptionRecord& r : parsed->interruptions) interruptions_.insert(r.attempt);
}

bool KnownRecords::is_told(const MeasurementRecord& record) const {
  if (const auto* run = std::get_if<RunRecord>(&record)) return runs_.contains(run->attempt);
  if (const auto* step = std::get_if<StepRecord>(&record))
    return up_to(steps_, step->attempt, step->step);
  const auto* save = std::get_if<CheckpointRecord>(&record);
  return save != nullptr && up_to(saves_, save->attempt, save->step);
}

bool KnownRecords::contains(const MeasurementRecord& record) const {
  if (lines_.empty()) return false;
  return lines_.contains(to_line(record)) || (foreign_ && is_told(record));
}

std::optional<std::int64_t> KnownRecords::first_step_behind(std::int64_t attempt) const {
  const auto next = runs_.upper_bound(attempt);
  return next != runs_.end() ? std::optional(next->second) : std::nullopt;
}

}  // namespace reckon::kubernetes
