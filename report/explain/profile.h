#pragma once
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "sim/measurement/profiles/dcgm.h"
#include "sim/measurement/profiles/profile.h"
#include "sim/measurement/step_log.h"
#include "sim/step/step.h"

namespace reckon {

/// What the models say of the job that was profiled.
struct ProfileForecast {
  StepEstimate step;
  MemoryEstimate memory;
  int watts = 0;  // printed, of one accelerator; 0: not known
};

/// A file of another tool and what is in it.
struct ProfiledFile {
  std::string file;
  std::variant<Profile, DeviceActivity, CollectiveLog> what;
  std::optional<ProfileForecast> forecast;  // of the scenario
};

/// What each says, beside its forecast; a section a file, "" for none.
std::string profile_sections(std::span<const ProfiledFile> files, int width = 100);

}  // namespace reckon
