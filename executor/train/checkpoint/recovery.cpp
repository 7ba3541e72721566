#include "executor/train/checkpoint/recovery.h"

#include <atomic>
#include <future>
#include <span>

namespace reckon {
namespace {

// What rank 0 says in place of a step.
constexpr std::int64_t kNone = -1, kGotOn = -2, kStill = -3;

}  // namespace

std::optional<std::int64_t> recovered_step(
    Communicator& communicator,
    const std::function<std::optional<std::int64_t>(const std::function<void()>& got_on)>& recover,
    const std::function<void()>& alive, Seconds pace) {
  std::atomic<bool> got_on{false};
  std::future<std::optional<std::int64_t>> search;
  if (communicator.rank() == 0)
    search = std::async(std::launch::async, [&] { return recover([&] { got_on.store(true); }); });
  for (;;) {
    std::int64_t said = kStill;
    if (search.valid()) {
      if (search.wait_for(pace) == std::future_status::ready)
        said = search.get().value_or(kNone);
      else if (got_on.exchange(false))
        said = kGotOn;
    }
    communicator.broadcast(std::as_writable_bytes(std::span(&said, 1)), 0);
    if (said == kNone) return std::nullopt;
    if (said >= 0) return said;
    if (said == kGotOn && alive) alive();
  }
}

}  // namespace reckon
