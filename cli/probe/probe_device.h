#pragma once
#include <optional>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/probe/repeat.h"
#include "executor/train/device/wish.h"
#include "sim/measurement/probe_record.h"
#include "sim/model/graph.h"

// The part of `reckon probe` that runs on a GPU, where this build has CUDA and this machine a
// device.
namespace reckon::cli {

/// Why this machine's GPU cannot be measured by this build; "": it can.
std::string why_no_gpu();

struct DeviceProbe {
  std::vector<ProbeRecord> records;
  std::optional<double> drift;  // as MachineRecord::device_drift
};

/// Memory, copies, launches, products and the model's layers (if there is one) on the first device.
/// Throws cuda::DeviceError. why_no_gpu() must be "".
DeviceProbe probe_device(const RepeatRule& rule, const ModelGraph* model, std::int64_t batch);

/// Collectives by NCCL, each rank on the device of its number on its machine; every rank calls it.
/// Empty where one of them has no device, or this build no NCCL.
std::vector<ProbeRecord> probe_between_devices(Communicator& control, int local_rank,
                                               const RepeatRule& rule, Bytes largest);

}  // namespace reckon::cli
