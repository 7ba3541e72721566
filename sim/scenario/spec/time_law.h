#pragma once
#include <variant>
#include <vector>

#include "sim/base/quantity.h"

// A time as written: one, a list of which each is as likely as the next, or a law.
namespace reckon {

struct ExponentialTime {
  Seconds mean{};
};
struct LognormalTime {
  Seconds median{}, p95{};
};
using TimeLaw = std::variant<Seconds, ExponentialTime, LognormalTime, std::vector<Seconds>>;

}  // namespace reckon
