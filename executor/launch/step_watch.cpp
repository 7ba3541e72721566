#include "executor/launch/step_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

// Long enough for a slow machine, short against what a hang would cost.
constexpr double kSlowerThanExpected = 20;
constexpr Seconds kMinute{60};

}  // namespace

Seconds progress_deadline(std::optional<Seconds> hang, Seconds forecast_step) {
  return hang.value_or(std::max(kMinute, kSlowerThanExpected * forecast_step));
}

StepPatience patience_with_program(std::optional<Seconds> hang) {
  if (hang) return {.step = *hang};
  return {.step = 30 * kMinute, .of_longest = kSlowerThanExpected};
}

StepPatience patience_with_pods(std::optional<Seconds> hang, Seconds forecast_step,
                                Seconds forecast_between) {
  constexpr Seconds kSave = 5 * kMinute;
  constexpr double kSlower = 3;
  const Seconds step = progress_deadline(hang, forecast_step);
  if (step == Seconds{0}) return {};
  const Seconds least = std::max({step, kSave, kSlower * forecast_between});
  return {.step = least, .first = 3 * least};
}

void StepWatch::begin() {
  done_ = 0;
  told_ = 0;
  silence_ = longest_ = {};
}

void StepWatch::told(std::int64_t done) {
  if (told_ > 0 && done == done_) return;
  // What the first one took is a start's time, and counts only while there is no other.
  longest_ = told_ < 2 ? silence_ : std::max(longest_, silence_);
  told_ = std::min(told_ + 1, 2);
  done_ = done;
  silence_ = {};
}

Seconds StepWatch::limit() const {
  if (told_ == 0) return patience_.first.value_or(Seconds{0});
  return std::max(patience_.step, patience_.of_longest * longest_);
}

bool StepWatch::hangs() const {
  const Seconds most = limit();
  return most > Seconds{0} && silence_ > most && done_ < steps_;
}

std::string StepWatch::words() const {
  const std::string silent = fmt::format("no step was told for {}", format_duration(limit()));
  return told_ == 0 ? silent + " from the start" : fmt::format("{} behind step {}", silent, done_);
}

}  // namespace reckon
