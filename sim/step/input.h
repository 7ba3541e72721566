#pragma once
#include "sim/scenario/plan.h"

// The input pipeline (docs/MODELS.md, "Input").
namespace reckon {

/// What each stage needs for the samples that one node consumes in a step. Stages run side by side
/// and ahead of the training (prefetching), so the pipeline delivers a step's samples in the time
/// of its slowest stage [Murray et al. 2021, "tf.data", VLDB 14(12)].
struct InputTimes {
  // From storage: bytes / min(storage's rate for a node, the NIC). Where our worker asks a store
  // for each sample by itself (workload.data in s3://) no less than its threads need, each of
  // which asks for a sample, waits for the storage's latency and its bytes, and decodes it.
  Seconds read{};
  // vCPU seconds / vCPUs of the node, or those of them that workload.data.threads of its ranks use.
  Seconds decode{};
  Seconds processors{};  // of all its vCPUs, which decode meanwhile
  Seconds
      copy{};  // decoded samples over each accelerator's bus, as fp32 elements of the model's input
  Seconds slowest() const;
};

/// `samples`: of one accelerator in a step. A TPU slice's chips are fed by its hosts.
InputTimes input_times(const PlannedPool& pool, const PlannedWorkload& job, double samples);

/// InputTimes::copy of a model's input.
Seconds copy_time(const PlannedPool& pool, const ModelGraph& model, double samples);

}  // namespace reckon
