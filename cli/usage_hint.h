#pragma once
#include <string>
#include <utility>

#include "cli/options.h"

namespace reckon::cli {

/// A UsageError with what to do in lines of its own. What is wrong is one line, whatever the names
/// in it hold.
struct UsageErrorWithHint : UsageError {
  UsageErrorWithHint(const std::string& what, std::string what_to_do)
      : UsageError(what), hint(std::move(what_to_do)) {}
  std::string hint;
};

}  // namespace reckon::cli
