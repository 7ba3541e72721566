#include "sim/base/overflow.h"

#include <fmt/format.h>

namespace reckon {

void throw_overflow(std::string_view quantity, double value, double limit, std::string_view unit) {
  throw Overflow(fmt::format("{} of {:.3g} {} is beyond the {:.3g} {} that reckon can count",
                             quantity, value, unit, limit, unit));
}

void throw_overflow(std::string_view quantity) {
  throw Overflow(fmt::format("{} is beyond what reckon can count (128 bits)", quantity));
}

}  // namespace reckon
