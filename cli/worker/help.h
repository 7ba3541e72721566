#pragma once
#include <span>
#include <string>

#include "cli/options/option.h"

namespace reckon::cli {

/// The options of a subcommand of reckon-worker, --help among them.
inline std::string described(std::span<const Option> options) {
  std::vector<OptionText> shown = option_texts(options);
  shown.push_back({"help", "", "show this help"});
  return describe(shown, 26);
}

}  // namespace reckon::cli
