#pragma once
#include <chrono>

#include "sim/base/quantity.h"

namespace reckon {

/// Time since the last call.
class Lap {
 public:
  Seconds next() {
    const auto now = Clock::now();
    const Seconds lap = now - last_;
    last_ = now;
    return lap;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point last_ = Clock::now();
};

}  // namespace reckon
