#pragma once
#include <string>

#include "cli/options/shared.h"

namespace reckon::cli {

/// `reckon doctor RUN`: prints what is whole, damaged and lost in a run's directory, and repairs it
/// unless `check` or a process uses it. The exit code (docs/commands/doctor.md).
int run_doctor_of(const std::string& run, bool check, OutputFormat format);

}  // namespace reckon::cli
