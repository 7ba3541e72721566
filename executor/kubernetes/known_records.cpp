#include "executor/kubernetes/known_records.h"

#include <algorithm>
#include <fstream>
#include <iterator>

namespace reckon::kubernetes {
namespace {

using Last = std::map<std::int64_t, std::int64_t>;

std::string text_of_file(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
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

KnownRecords::KnownRecords(const std::filesystem::path& file, bool foreign) : foreign_(foreign) {
  // Damaged lines are not known: the logs of the pods may still have them.
  if (const auto parsed = parse_measurements(file.string(), text_of_file(file))) learn(*parsed);
}

void KnownRecords::learn(const Measurements& known) {
  for_each_record(known, [this](const auto& record) { lines_.insert(to_line(record)); });
  for (const RunRecord& run : known.runs) runs_.emplace(run.attempt, run.first_step);
  for (const StepRecord& step : known.steps) raise(steps_, step.attempt, step.step);
  for (const CheckpointRecord& save : known.checkpoints)
    if (save.action == CheckpointAction::save) raise(saves_, save.attempt, save.step);
  for (const InterruptionRecord& r : known.interruptions) interruptions_.insert(r.attempt);
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
