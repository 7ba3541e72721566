#pragma once
#include <string_view>

#include "sim/measurement/profiles/profile.h"

// What torch.profiler exports (export_chrome_trace): the Chrome trace event format, with the
// categories and arguments of Kineto (github.com/pytorch/kineto, libkineto/src/output_json.cpp).
namespace reckon {

/// Is it JSON with trace events, by its begin?
bool is_kineto(std::string_view bytes);

/// Steps are spans "ProfilerStep#N" of the host; kernels have the categories kernel, gpu_memcpy and
/// gpu_memset; of NCCL's kernels the arguments "Collective name", "In msg nelems" and "dtype" are
/// read where they stand. Errors, at their line: no JSON, events without time, no steps.
Expected<Profile> parse_kineto(std::string_view file, std::string_view bytes);

}  // namespace reckon
