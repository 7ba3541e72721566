#pragma once
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity.h"

// How busy GPUs were, as DCGM samples it (docs.nvidia.com/datacenter/dcgm, "Feature Overview",
// "Profiling Metrics"; fields 1001..1005, 155 and 252).
namespace reckon {

/// Of samples while GPUs worked; absent: the file does not have the field.
struct DeviceActivity {
  int gpus = 0;
  int samples = 0, idle_samples = 0;  // of all GPUs; idle: no work, left out of the means
  /// Shares of the time: any work, multiprocessors with a warp, warps over the most, tensor cores,
  /// memory interface.
  std::optional<double> active, multiprocessors, occupancy, tensor, memory;
  std::optional<double> watts, watts_most;  // of one GPU
  std::optional<Bytes> memory_used;         // the most of any GPU
};

/// `dcgmi dmon -e 1001,1002,1003,1004,1005,155,252`, as it prints, or the same as CSV: by a header
/// with GRACT, SMACT or their names DCGM_FI_PROF_*. Or pages of dcgm-exporter, one after another.
bool is_dcgm(std::string_view text);
/// N/A is no value. Errors, at their line: numbers that are none or out of their range.
Expected<DeviceActivity> parse_dcgm(std::string_view file, std::string_view text);

}  // namespace reckon
