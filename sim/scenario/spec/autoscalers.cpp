#include "sim/scenario/spec/autoscalers.h"

#include <regex>

namespace reckon {

bool is_regular_expression(const std::string& text) {
  try {
    const std::regex expression(text);
    return true;
  } catch (const std::regex_error&) {
    return false;
  }
}

}  // namespace reckon
