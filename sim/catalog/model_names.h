#pragma once
#include <string>

namespace reckon {

/// The hint under "unknown model": the few of the zoo that the name may stand for, nearest first
/// (nearest() of sim/base/diagnostic.h), and the command that lists all.
std::string models_like(const std::string& name);

}  // namespace reckon
