#pragma once
#include <fmt/format.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/options/usage_error.h"
#include "cli/output.h"

// The command line of a command as its own struct, which derives from Files and has
//   std::vector<Option> declared();           what it takes, bound to its fields
//   void check() const;                       optional: throws UsageError where they contradict
//   bool file_is_elsewhere() const;           optional: a missing file is no mistake
namespace reckon::cli {

/// What help and completion show.
template <class Options>
std::vector<OptionText> shown_options() {
  Options options;
  std::vector<OptionText> texts = option_texts(options.declared());
  texts.push_back({"help", "", "show this help"});
  return texts;
}

/// nullopt: help was asked for, and printed. Throws UsageError.
template <class Options>
std::optional<Options> parse(const Command& self, std::span<const std::string> arguments) {
  std::optional<Options> options(std::in_place);
  if (!read_words(options->declared(), options->files, arguments)) {
    print(help_text(self));
    return std::nullopt;
  }
  bool needs_file = self.needs_file;
  if constexpr (requires { options->file_is_elsewhere(); })
    needs_file = needs_file && !options->file_is_elsewhere();
  if (needs_file && options->files.empty())
    throw UsageError(fmt::format("a file is missing: {}", self.usage));
  if constexpr (requires { options->check(); }) options->check();
  return options;
}

}  // namespace reckon::cli
