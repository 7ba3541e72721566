#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/cluster/job_request.h"
#include "sim/queue/pace/placement_pace.h"

// Jobs of many users, recorded or drawn, and the names that their owners have.
namespace reckon {

/// Names in the order in which they were first seen.
class NameTable {
 public:
  /// Number of the name, added if it is new; "": JobOwner::kNotSaid.
  std::int32_t number(std::string_view name) {
    if (name.empty()) return JobOwner::kNotSaid;
    const auto [at, added] =
        numbers_.try_emplace(std::string(name), static_cast<std::int32_t>(names_.size()));
    if (added) names_.emplace_back(name);
    return at->second;
  }
  const std::vector<std::string>& names() const { return names_; }
  /// "" where nothing is said.
  const std::string& name(std::int32_t number) const {
    static const std::string kNone;
    return number < 0 ? kNone : names_[static_cast<std::size_t>(number)];
  }

 private:
  std::map<std::string, std::int32_t, std::less<>> numbers_;
  std::vector<std::string> names_;
};

struct JobNames {
  NameTable users, teams, queues, qos, topologies, resources;
  NameTable trainings;  // files of a list's own jobs, which `pace` names until they are known
};

struct JobList {
  std::vector<JobRequest> jobs;
  JobNames names;
  std::vector<PlacementPace> paces;  // that jobs name by number
  /// Seconds since 1970 of the time 0 of the jobs; nullopt: the list has no calendar.
  std::optional<std::int64_t> epoch;
  std::vector<std::pair<int, std::string>> left_out;  // rows, and what they are
};

}  // namespace reckon
