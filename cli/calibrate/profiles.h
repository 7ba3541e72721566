#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/shared.h"
#include "report/explain/profile.h"
#include "sim/measurement/measured_run.h"

// Files of other tools among the measurements of `reckon calibrate`.
namespace reckon::cli {

struct CalibrateOptions : Files, OutPath, ScenarioChanges, CatalogChoice, AnswerFormat {
  std::string scenario, pattern;  // a file; a regular expression; "": none
  std::int64_t steps = 0;         // in a trace that does not mark them; 0: not said
  bool force = false;

  std::vector<Option> declared();
};

/// Is it one, by what it begins with?
bool is_profile(std::string_view bytes);

/// The run that it is of: its steps, or its all-reduces; none of either where it has none. What the
/// file says is added to `read`. `scenario`: nullptr: not named, which is an error where steps or
/// all-reduces are measured. Errors: the file's; a scenario of another accelerator or of another
/// number of them.
Expected<MeasuredRun> load_profile(const std::filesystem::path& path, std::string bytes,
                                   const ScenarioFile* scenario, const CalibrateOptions& options,
                                   const Catalog& catalog, std::vector<ProfiledFile>& read);

}  // namespace reckon::cli
