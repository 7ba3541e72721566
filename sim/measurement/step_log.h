#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity.h"
#include "sim/measurement/calibration/waiting_times.h"

// Measurements of programs that are not ours, as they print them.
namespace reckon {

/// What a log says of each step, in its order.
struct StepLog {
  enum class Unit { seconds, samples_per_second } unit = Unit::seconds;
  std::vector<double> values;  // in `unit`
  /// Seconds a step, of `batch` samples where the log has rates.
  std::vector<double> seconds(double batch) const;  // batch: samples
};

/// Comma-separated values with a header. One column is of the step: seconds (step_seconds,
/// step_time, step_time_s, seconds), milliseconds (step_ms, step_time_ms, milliseconds) or a rate
/// (samples_per_second, images_per_second, examples_per_second). The others are passed over.
Expected<StepLog> parse_step_csv(std::string_view file, std::string_view text);

/// Any text: each line in which `pattern` (ECMAScript's regular expressions, groups named
/// (?<name>...) or (?P<name>...)) finds something is a step. One group is called seconds,
/// milliseconds or samples_per_second; others, such as step and loss, are passed over.
Expected<StepLog> parse_pattern_log(std::string_view file, std::string_view text,
                                    const std::string& pattern);

/// One size of an nccl-tests run.
struct CollectiveSample {
  Bytes size{};
  Seconds time{};      // out of place
  Seconds in_place{};  // 0: not measured
  double error = 0;    // of the time's logarithm, as the two tell it
};
/// What nccl-tests measured of one collective.
struct CollectiveLog {
  std::string collective;  // "all_reduce"
  std::string type;        // "float"
  int ranks = 0;           // by algorithm and bus bandwidth; 0: not known
  std::vector<CollectiveSample> samples;
};
/// Output of nccl-tests (its doc/PERFORMANCE.md): columns size, count, type, redop, root, then
/// time (us), algbw, busbw, errors out of place and in place. The collective is that of the line
/// "Collective test starting"; before there was one, all-reduces are known by their operation and a
/// bus bandwidth above their own. Errors, at their line: times that are none.
Expected<CollectiveLog> parse_nccl_tests(std::string_view file, std::string_view text);
/// The line through them, time = latency + size / bandwidth, by least squares of relative errors.
struct CollectiveLine {
  Seconds latency{};
  BytesPerSecond bandwidth{};
};
CollectiveLine line_through(const std::vector<CollectiveSample>& samples);
/// Is it the output of nccl-tests?
bool is_nccl_tests(std::string_view text);

/// Comma-separated values with the header kind,seconds,censored[,pool]: kind is provisioning,
/// reclaim or restart; censored 1 (or yes, true) where it had not come after those seconds.
struct WaitRecord {
  enum class Kind { provisioning, reclaim, restart } kind = Kind::provisioning;
  std::string pool;  // "" : the only one
  WaitingSample sample;
};
Expected<std::vector<WaitRecord>> parse_waiting_csv(std::string_view file, std::string_view text);
/// Does the first line have the columns kind and seconds?
bool is_waiting_csv(std::string_view text);

}  // namespace reckon
