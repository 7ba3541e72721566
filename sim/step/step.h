#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/quantity.h"
#include "sim/base/words.h"
#include "sim/scenario/plan.h"
#include "sim/step/network/network.h"

// One training step at steady state: memory, compute, communication, input (docs/MODELS.md, "The
// step").
namespace reckon {

/// Above this probability of running out of memory a step cannot be run; `reckon plan` allows the
/// second.
inline constexpr double kCannotFit = 0.95, kRiskOfAPlan = 0.01;  // probabilities
inline constexpr double kMoreLikelyThanNot = 0.5;  // probability; what is taken of a run that ran

/// Memory of one accelerator of the worker pool, by part; the peak's median and how far it may lie
/// off (docs/MODELS.md, "Memory").
struct MemoryEstimate {
  Bytes parameters{}, gradients{}, optimizer{}, activations{}, workspace{}, reserve{};
  Bytes gathered{};  // ZeRO: whole parameters and gradients of the block in work; stack's buffers
  Bytes evidence{};  // what comparable runs took more than the model says, or less
  Bytes fragmentation{};      // what a caching allocator holds beyond what it has given out
  Bytes available{};          // that programs find (Accelerator::memory_for_programs)
  double deviation = 0;       // of ln(tensors' peak / median); 0: it is exact
  Bytes reserve_deviation{};  // half of an assumed reserve's 90 % range over 1.645

  /// Tensors by the model alone: what a framework's allocator says.
  Bytes allocated() const {
    return parameters + gradients + optimizer + activations + workspace + gathered;
  }
  Bytes tensors() const { return allocated() + evidence; }
  Bytes required() const { return tensors() + fragmentation + reserve; }
  Bytes margin() const { return available - required(); }

  /// P(peak > available), the peak being reserve + held e^(s z), held = tensors + fragmentation, z
  /// standard normal and s the deviation with the reserve's (over the room) added in squares:
  ///   Phi(ln(held / (available - reserve)) / s)
  double out_of_memory() const;
  /// out_of_memory() <= risk.
  bool fits_at(double risk) const;  // a probability
  bool fits() const { return fits_at(kCannotFit); }
};
/// Reserve (of a job with so many kinds of ranks that talk to each other), what evidence says,
/// fragmentation, and what is there.
void set_limits(MemoryEstimate& memory, const FrameworkRules& framework, int communicators,
                Bytes available);
/// "61.00 GiB of 79.65 GiB, P(out of memory) 0.3 %"; below a tenth of a percent "< 0.1 %".
std::string memory_text(const MemoryEstimate& memory);
std::string probability_text(double probability);

MemoryEstimate estimate_memory(const Plan& plan, const PlannedWorkload& job);
/// Of a pass forward only, of a model that is served: parameters in the working precision without
/// gradients or optimizer, and of the activations those that the largest layer reads and writes.
MemoryEstimate estimate_forward_memory(const PlannedPool& pool, const FrameworkRules& framework,
                                       const ModelGraph& model, Precision precision, int batch);
/// nullopt: it may fit, on parameter servers too. Else the error with the numbers by part and what
/// would make it fit (the largest batch that does, recomputation, an accelerator of the catalog
/// with enough memory). `places` points at the batch or the model.
std::optional<Diagnostic> check_memory(const Plan& plan, const PlannedWorkload& job,
                                       const Catalog& catalog, const Places& places);

enum class Bottleneck { compute, communication, input, parameter_server, memory, host };
constexpr auto words_of(Bottleneck) {
  return std::array{Word<Bottleneck>{"compute", Bottleneck::compute},
                    Word<Bottleneck>{"communication", Bottleneck::communication},
                    Word<Bottleneck>{"input", Bottleneck::input},
                    Word<Bottleneck>{"parameter_server", Bottleneck::parameter_server},
                    Word<Bottleneck>{"memory", Bottleneck::memory},
                    Word<Bottleneck>{"host", Bottleneck::host}};
}

struct LayerTime {
  LayerId layer{};
  Seconds forward{}, backward{};
  bool bound_by_memory = false;
};

/// What a step waits for others, by what it waits for.
struct ExposedCommunication {
  Seconds gradients{};   // all-reduce (the loss's, too), or ZeRO's reduce-scatter
  Seconds parameters{};  // ZeRO's all-gathers
  Seconds tensor{};      // tensor and sequence parallelism
  Seconds context{};     // keys and values
  Seconds expert{};      // all-to-all
  Seconds pipeline{};    // activations and their gradients between stages
  Seconds servers{};     // parameter servers
  Seconds stragglers{};  // the slowest worker
  Seconds contention{};  // arithmetic that transfers beside it slow down
  Seconds total() const {
    return gradients + parameters + tensor + context + expert + pipeline + servers + stragglers +
           contention;
  }
};

/// Of a step that asks nothing of a network.
inline constexpr std::string_view kNoEngine = "none";

struct StepEstimate {
  Seconds step{};     // wall time of one optimizer step
  Seconds compute{};  // forward and backward of one accelerator (of the slowest pipeline stage)
  Seconds communication{};          // all of it, hidden or not
  Seconds exposed_communication{};  // what is not hidden behind the backward pass: exposed.total()
  ExposedCommunication exposed;
  /// Synchronous parameter servers: all gradients to them, all values back, each by itself.
  Seconds push{}, pull{};
  Seconds input{};             // what the input pipeline needs for a step's samples
  Seconds exposed_input{};     // step time above what compute and communication alone need
  Seconds bubble{};            // pipeline stages that wait for the first or the last micro-batches
  Seconds forward{};           // one pass of one batch, forward only, with what it waits for
  Seconds update{};            // optimizer; of asynchronous servers it is in what is exposed
  Seconds host{};              // a worker's own time outside all that
  Seconds waiting_for_host{};  // part of compute in which a device has nothing to do yet
  Bottleneck bottleneck = Bottleneck::compute;
  /// Model FLOP/s over the printed peak of the same precision, dense. 0: computed on CPUs, of which
  /// nobody prints one (the catalog's rate of a vCPU is what is achieved, and may be exceeded).
  double mfu = 0;
  SamplesPerSecond samples_per_second{};
  Bytes sent_per_worker{};        // bytes on the wire out of one worker, a step
  double server_utilization = 0;  // 0..1, of parameter servers' NICs, busiest direction
  /// Asynchronous parameter servers: mean number of other workers' updates between a worker's pull
  /// and its own update.
  double delay = 0;
  std::string all_reduce;  // algorithm that was taken: "ring", "tree", "hierarchical", ""
  /// Who answered for the network: NetworkModel::name(), or closed forms
  /// (NetworkModel::by_formula).
  std::string_view engine = kNoEngine;
  std::vector<LayerTime> layers;
};

/// `live_workers`: how many of the strategy's workers take part (asynchronous training goes on with
/// fewer; 0 = all).
StepEstimate estimate_step(const Plan& plan, const PlannedWorkload& job,
                           const NetworkModel& network, int live_workers = 0);

/// Time to run the validation set once, forward only, on all accelerators.
Seconds evaluation_time(const Plan& plan, const PlannedWorkload& job, const StepEstimate& step);

/// Bytes of one checkpoint (weights and optimizer state), and the time to save or to load it
/// through the job's storage.
Bytes checkpoint_bytes(const PlannedWorkload& job);
Seconds checkpoint_save_time(const Plan& plan, const PlannedWorkload& job);
/// Nodes that save their parts side by side.
int checkpoint_writers(const Plan& plan, const PlannedWorkload& job);
/// How long training stands still for a save, and how long its write goes on behind that.
struct SaveTimes {
  Seconds stall{};
  Seconds write{};  // 0: blocking
};
/// Blocking: all of checkpoint_save_time() is a stall. Asynchronous: the stall is the copy to the
/// host's memory, and what the write costs the steps beside it. The write has the NIC for itself
/// while a step does not use it and half of it while it does; of `step` the transfers between nodes
/// and what waits for input take as much longer as the write takes of the NIC, and nothing of that
/// is hidden (an upper bound).
SaveTimes save_times(const Plan& plan, const PlannedWorkload& job, const StepEstimate& step);
Seconds checkpoint_restore_time(const Plan& plan, const PlannedWorkload& job);

/// Of the checkpoints on the job's own nodes (PlannedCheckpoint::local). The stall is the copy to
/// the host's memory and what the steps beside the write lose, as for an asynchronous save; the
/// write goes to `replicas` - 1 peers through the NIC, and to disks through each of them.
struct LocalSaveTimes {
  Seconds stall{}, write{};
  Seconds restore{};  // of one node, from a peer where there is one, else from itself
};
LocalSaveTimes local_save_times(const Plan& plan, const PlannedWorkload& job,
                                const StepEstimate& step);
/// A host's memory that the tier peer_memory takes: of each of `replicas` parts the complete copy
/// and the one that is being made [Wang et al. 2023, "Gemini", SOSP '23, Sec. 4]. 0: no such tier.
Bytes local_tier_memory(const Plan& plan, const PlannedWorkload& job);
/// All state of one node, from a peer's processes through its NIC.
Seconds peer_restore_time(const Plan& plan, const PlannedWorkload& job);

/// Step times by number of live workers, solved once and looked up after.
class StepCache {
 public:
  StepCache(const Plan& plan, const PlannedWorkload& job, const NetworkModel& network)
      : plan_(plan), job_(job), network_(network) {}
  const StepEstimate& at(int live_workers);

 private:
  const Plan& plan_;
  const PlannedWorkload& job_;
  const NetworkModel& network_;
  std::vector<std::optional<StepEstimate>> by_workers_;
};

}  // namespace reckon
