#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/options/shared.h"
#include "cli/options/usage_error.h"

// Boost.Program_options stays behind this header: it is slow to compile and its messages are not
// ours.
namespace reckon::cli {

struct Options : AnswerFormat, ScenarioChanges, CatalogChoice, Sampling, NetworkChoice, Sweeps {
  bool help = false;
  std::vector<std::string> files;
  std::string trace, junit, annotations, csv, memo, html;
  /// Options that one command alone takes and judges itself, by name, as written; a switch: "yes".
  std::map<std::string, std::string> answers;
  std::string answer(const std::string& name) const {  // "": not given
    const auto at = answers.find(name);
    return at == answers.end() ? "" : at->second;
  }
};

/// Which options a command takes, by long name.
using OptionNames = std::span<const std::string_view>;

/// Reads them all or throws a UsageError that names every unknown option, with the one that was
/// probably meant.
Options parse_options(const Command& command, OptionNames names,
                      std::span<const std::string> arguments);
std::vector<OptionText> describe_options(OptionNames names);

/// The whole number from 1 behind an option of `answers`; 0: not given; else a UsageError.
int count_answer(const Options& options, const std::string& name);

}  // namespace reckon::cli
