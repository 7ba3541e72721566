#pragma once
#include <span>

#include "cli/command.h"

// The commands by group, each in the order in which `reckon --help` shows them.
namespace reckon::cli {

/// simulate .. self-check
std::span<const Command> commands_that_forecast();
/// run .. history: real runs, and what is learned of them
std::span<const Command> commands_of_runs();
/// export .. schema
std::span<const Command> commands_of_files();
/// doctor .. model: this installation, and what it knows
std::span<const Command> commands_of_installation();

}  // namespace reckon::cli
