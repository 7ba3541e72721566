#pragma once
#include <string>
#include <vector>

#include "sim/measurement/probe_record.h"

// The GPUs of this machine as their driver describes them. The NVIDIA Management Library belongs to
// the driver and is no library to link: it is loaded when it is asked, by its documented C
// interface [NVIDIA NVML API reference, nvml.h]. Nothing is set.
namespace reckon {

struct NvmlAnswer {
  std::vector<AcceleratorRecord> accelerators;
  std::string problem;  // why there are none: "no NVIDIA driver (libnvidia-ml.so.1)"; else empty
};
NvmlAnswer ask_nvml();

}  // namespace reckon
