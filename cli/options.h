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

// Boost.Program_options stays behind this header: it is slow to compile and its messages are not
// ours.
namespace reckon::cli {

/// The command line is wrong: the text says what and what to do. main prints it and exits with 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class OutputFormat { table, json };

struct Options {
  bool help = false;
  std::vector<std::string> files;
  OutputFormat format = OutputFormat::table;
  std::string engine;                  // "": the default network
  std::vector<std::string> overrides;  // --set path=value
  std::vector<std::filesystem::path> layers;
  std::vector<std::string> sweeps;  // --sweep path=values
  std::vector<std::filesystem::path> catalogs, calibrations;
  std::vector<std::string> evidence, without_evidence;  // files; ids or sources
  std::optional<std::uint64_t> seed;
  std::optional<int> replications;
  int threads = 0;
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
std::string describe_options(OptionNames names);

/// The whole number from 1 behind an option of `answers`; 0: not given; else a UsageError.
int count_answer(const Options& options, const std::string& name);

}  // namespace reckon::cli
