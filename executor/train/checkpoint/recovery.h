#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "executor/comm/communicator.h"
#include "sim/base/quantity.h"

namespace reckon {

/// Rank 0 looks for the step to go on from (`recover`, called there only, which calls its argument
/// whenever it has got on); every rank learns it. To read a large checkpoint may take longer than
/// ranks wait for each other in one call, so until it is found they meet every `pace`. `alive` (may
/// be empty) is called on every rank when rank 0 has got on since the last time. Throws CommError,
/// and on rank 0 what `recover` throws.
std::optional<std::int64_t> recovered_step(
    Communicator& communicator,
    const std::function<std::optional<std::int64_t>(const std::function<void()>& got_on)>& recover,
    const std::function<void()>& alive, Seconds pace = Seconds{5});

}  // namespace reckon
