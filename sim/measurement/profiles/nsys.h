#pragma once
#include <string_view>

#include "sim/measurement/profiles/profile.h"

// What Nsight Systems exports (docs.nvidia.com/nsight-systems, "SQLite Export Schema Reference" and
// "nsys stats").
namespace reckon {

/// Does it begin like a database of SQLite?
bool is_sqlite(std::string_view bytes);

/// Of `nsys export --type sqlite`: tables CUPTI_ACTIVITY_KIND_KERNEL, _MEMCPY, _MEMSET, StringIds,
/// NVTX_EVENTS, TARGET_INFO_GPU. Steps are the NVTX ranges of one thread whose text, apart from
/// its digits, says step or iteration (of several such texts the one with the most ranges); without
/// such ranges the windows_between_launches() of `steps` above 1. The database is only read, within
/// bounds on time and rows; nothing in it is run. Errors: what lacks, with its table, column or
/// row.
Expected<Profile> parse_nsys_sqlite(std::string_view file, std::string_view bytes,
                                    std::int64_t steps);

/// `nsys stats --report cuda_gpu_trace --format csv`, or cuda_gpu_kern_sum, by the header's
/// columns.
bool is_nsys_csv(std::string_view text);

/// Neither table knows steps. `steps` is how many are in the trace (windows_between_launches()).
/// 0, and any sum: no step, only what the time of all went to. Errors, at their line: numbers that
/// are none, no kernel that was launched `steps` times.
Expected<Profile> parse_nsys_csv(std::string_view file, std::string_view text, std::int64_t steps);

}  // namespace reckon
