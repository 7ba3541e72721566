#pragma once
#include <string>

namespace reckon {

/// The hint under "unknown model" (names_like() of sim/base/text/names_like.h).
std::string models_like(const std::string& name);

}  // namespace reckon
