#pragma once
#include <vector>

#include "sim/scenario/plan.h"
#include "sim/step/element_sizes.h"
#include "sim/step/step.h"

// Time of the arithmetic of one step on one accelerator (docs/MODELS.md, "Compute").
namespace reckon {

/// What computes: one accelerator, or the vCPUs of a worker without one.
struct Processor {
  FlopsPerSecond peak{};  // dense, at the precision that the multiplications run in
  BytesPerSecond memory_bandwidth{};
  int cores = 1;  // independent cores, each with its share of peak, bandwidth and batch
  Efficiency efficiency;
  /// Of CPUs that were probed: what a layer takes is then its products' and passes' times
  /// (measured_compute.h). Owned by the plan's pool.
  const WorkerRates* measured = nullptr;
};
/// A precision that the hardware lacks runs at its fp32 rate, as tf32 does on GPUs older than
/// Ampere.
Processor processor_of(const PlannedPool& pool, Precision precision);

/// What a framework's host does is apart from the device: it issues each layer's passes and runs
/// ahead, so that a pass over the network takes no less than the host needs to issue it, and
/// otherwise what the device needs. `dispatches` layers were issued.
Seconds host_time(double dispatches, const Processor& processor);

/// One core's view of a chip: its share of peak and bandwidth.
Processor one_core(const Processor& processor);

/// What one rank does of a layer for one sample: the layer's counts, or its share of them where the
/// layer is cut.
struct LayerWork {
  Flops forward{}, backward{};
  double elements_in = 0, elements_out = 0;  // numbers of activations read and written, forward
  double weights_read = 0;                   // numbers
  WorkKind work = WorkKind::memory;
  bool has_backward = true, frozen = false, four_bit = false, depthwise = false,
       small_square = false, in_fp32 = false;
  double steps = 1;  // kernels that wait for each other, of those that others have one of
};
LayerWork work_of(const LayerCount& count);

struct LayerCost {
  Seconds forward{}, backward{};  // without recomputation
  bool forward_by_memory = false, backward_by_memory = false;
  int forward_kernels = 0, backward_kernels = 0;  // that the host issues
};
/// Roofline [Williams et al. 2009, "Roofline", CACM 52(4)] for each pass over `batch` samples on
/// one core:
///   t = max((F + k H) / (peak e_kind), bytes / (bandwidth e_memory)) + k launch
/// F: FLOPs of the pass; k: kernels it takes (backward of a layer with weights: 2, else 1; of a
/// recurrence one a step, backward one more for the gradient of all steps' weights); H:
/// `half_size`, so that a kernel of H FLOPs reaches half of its kind's efficiency e_kind. Bytes:
/// activations and weights read and written once by each kernel. Layers of kind memory, and
/// depthwise convolutions, have the second term only. Convolutions of 3 x 3 with stride 1 are
/// faster by Efficiency::winograd.
LayerCost cost_of(const LayerWork& work, const ElementSizes& size, const Processor& core,
                  double batch);
/// Is the layer computed again in the backward pass? Full: with the others of its group.
bool recomputed(const Layer& layer, WorkKind work, Recompute mode);
/// The optimizer's pass over `parameters`, bound by memory bandwidth, and its products.
Seconds update_time(double parameters, const ElementSizes& size, const Processor& core);

struct ComputeTimes {
  std::vector<LayerTime> layers;  // recomputation is part of the backward time
  Seconds forward{}, backward{};
  Seconds update{};           // the optimizer's pass over all parameters, bound by memory bandwidth
  Seconds bound_by_memory{};  // part of forward and backward in layers that wait for memory
  Seconds waiting_for_host{};  // part of them in which the device has nothing to do
  Seconds total() const { return forward + backward; }
};

/// All layers, one after the other (cost_of), for `batch` samples; where the host is slower
/// (host_time), every layer as much longer.
ComputeTimes compute_times(const PlannedWorkload& job, const Processor& processor, double batch);

/// A pass forward only, as a served model runs it: the same roofline of each layer (cost_of), and
/// no less than the host needs to issue its forward kernels.
/// `batch`: samples.
Seconds forward_time(const ModelGraph& model, Precision precision, const Processor& processor,
                     double batch);

}  // namespace reckon
