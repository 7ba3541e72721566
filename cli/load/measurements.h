#pragma once
#include <filesystem>

#include "sim/measurement/measurements.h"

namespace reckon::cli {

/// All records of a file, for whoever only looks at them; lines that are damaged are left out, and
/// told on standard error. Throws std::runtime_error where the file cannot be read.
Expected<Measurements> load_measurements(const std::filesystem::path& file);

}  // namespace reckon::cli
