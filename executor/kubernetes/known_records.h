#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "sim/measurement/measurements.h"

namespace reckon::kubernetes {

/// The measurements of a run that an earlier watch has written into a file here. Who goes on
/// watching makes them again, from the logs of the pods, and leaves out what is known.
class KnownRecords {
 public:
  /// `foreign`: they are made of what a program of one's own prints. Made again such a record may
  /// have other times (those of a page of metrics, of lines that were read in other pieces), so it
  /// is known by its attempt and step.
  KnownRecords(const std::filesystem::path& file, bool foreign);

  bool contains(const MeasurementRecord& record) const;
  bool has_interruption(std::int64_t attempt) const { return interruptions_.contains(attempt); }
  /// Where the first known attempt behind this one went on.
  std::optional<std::int64_t> first_step_behind(std::int64_t attempt) const;

 private:
  void learn(const Measurements& known);
  bool is_told(const MeasurementRecord& record) const;

  bool foreign_;
  std::set<std::string> lines_;                // as this reckon writes them, whoever wrote them
  std::map<std::int64_t, std::int64_t> runs_;  // first steps, by attempt
  std::map<std::int64_t, std::int64_t> steps_, saves_;  // the last, by attempt
  std::set<std::int64_t> interruptions_;                // by attempt
};

}  // namespace reckon::kubernetes
