#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "executor/launch/run_tracker.h"
#include "sim/measurement/own_runs.h"

// A run as a person follows it: one line while it goes on, a few at its end. Values in, text out.
namespace reckon {

/// "14:20", with seconds where the end is near, with the day where it is another. Local time.
std::string time_of_day(std::chrono::system_clock::time_point at,
                        std::chrono::system_clock::time_point now, bool seconds);

/// "step 1,234/10,000  loss 0.532  987 samples/s  step 12.1 ms (forecast 11.8 ms)  finishes
/// 14:20-14:50  0.42 USD". `now`: the wall clock at the status; times of day are local ones.
/// At most `width` characters: what matters least is left out first.
std::string run_line(const RunStatus& status, std::chrono::system_clock::time_point now, int width);

/// A run from its first start on, whoever resumed it.
struct WholeRun {
  Seconds time{};           // in which it went on
  Seconds paused{};         // between a stop and the start that resumed it
  std::int64_t starts = 0;  // of its processes
  std::optional<Usd> cost;  // nullopt: a price is unknown
};
/// The answer of the run against its forecast.
std::string run_summary(const RunEnd& end, const Forecast& forecast, const WholeRun& whole);
std::string run_json(const RunEnd& end, const Forecast& forecast, const WholeRun& whole);
/// Below a summary: what the step's forecast rested on, where this machine was probed.
std::string own_evidence_sentence(const OwnEvidence& evidence);

}  // namespace reckon
