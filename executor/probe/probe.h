#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/comm/communicator.h"
#include "executor/probe/repeat.h"
#include "executor/train/products/matrix.h"
#include "executor/train/rounding.h"
#include "executor/train/workers.h"
#include "sim/measurement/probe_record.h"
#include "sim/model/graph.h"
#include "sim/scenario/scenario.h"

// Microbenchmarks of the machine that this process is on: one function and one file each. They
// measure the code that trains (executor/train, executor/comm), so that a model fitted to them is
// one of what will run. Of CPUs; devices are measured by executor/probe/device. No setting of any
// device is changed.
namespace reckon {

/// What all of them need.
struct ProbeBench {
  Workers& workers;
  RepeatRule rule;
};

/// What would take longer for one repetition, in budgets of the rule, is left out.
inline constexpr double kLongestInBudgets = 5;  // times RepeatRule::budget

/// Matrix products by all threads, fp32 and fp64: square ones from 128 on, and some with few rows;
/// those that would take too long are left out.
std::vector<ProbeRecord> probe_matrix_products(const ProbeBench& bench);
/// One fp32 product by all threads.
ProbeRecord probe_product(const ProbeBench& bench, ProductSize size);
/// One fp32 product that every machine does in a moment: to see whether it still runs as fast.
ProbeRecord probe_reference_product(const ProbeBench& bench);

/// STREAM's triad by all threads, over three arrays of `array` bytes: several times the last cache,
/// or it measures that.
std::vector<ProbeRecord> probe_memory(const ProbeBench& bench, Bytes array);
/// memcpy in one thread: within the first cache, the second, and memory.
std::vector<ProbeRecord> probe_copies(const ProbeBench& bench, Bytes largest);
/// What a step on CPUs is made of (sim/scenario/processor_rates.h): fp32 products of all shapes of
/// a small grid, and STREAM's triad from the first cache to memory, by `threads` threads together
/// and by as many at once that each have their own (their records: one thread, `threads`
/// processes). Seconds.
std::vector<ProbeRecord> probe_processor(int threads, const RepeatRule& rule, Bytes largest);
/// Empty where there is one thread: nothing is waited for then.
std::vector<ProbeRecord> probe_dispatch(const ProbeBench& bench);

/// Forward passes of single layers as training runs them: layers_to_probe(). Left out are layers
/// that would take too long at the rate of the reference product, or over 2 GB.
std::vector<ProbeRecord> probe_model(const ProbeBench& bench, const ModelGraph& model,
                                     std::int64_t batch, int most = 4);

/// Whose forward and backward pass is measured: of each of `processes` processes, all at once, with
/// `threads` threads and `batch` samples each.
struct PassesWanted {
  const ModelGraph* model = nullptr;  // that a GraphRuntime can run
  std::int64_t batch = 1;
  Recompute recompute = Recompute::none;
  int threads = 1, processes = 1;
  Rounding rounding = Rounding::none;
  /// What the record says it is of.
  std::string item() const;
};
/// In threads of this process, by the code that trains, on random samples. The record's kind is
/// "passes".
ProbeRecord probe_passes(const PassesWanted& wanted, const RepeatRule& rule);

/// Memory that collectives work on: `count` floats each, zeros, which stay zeros however often they
/// are added up.
struct ProbeBuffers {
  std::span<float> first, second;
  std::shared_ptr<void> owner;
};
ProbeBuffers host_buffers(std::size_t count);

/// Whose collectives are measured, in which memory, and by which the ranks tell each other the
/// times.
struct CollectiveBench {
  Communicator& measured;
  Communicator& control;  // the same ranks, for memory of the host
  RepeatRule rule;
  std::string device;  // "" : CPUs
  std::function<ProbeBuffers(std::size_t count)> allocate = host_buffers;
};
/// Collectives and point-to-point messages from 1 KiB to `largest`; every rank calls it and all get
/// the same records. A repetition's time is that of the slowest rank; behind a size that took too
/// long no larger one is measured. Two ranks or more.
std::vector<ProbeRecord> probe_collectives(const CollectiveBench& bench, Bytes largest);

/// Writes and reads a file in `directory` as checkpoints are: beside, fsync, rename; removed again.
/// Throws FileError.
std::vector<ProbeRecord> probe_checkpoints(const ProbeBench& bench,
                                           const std::filesystem::path& directory, Bytes size);

/// Images from a file of CIFAR-10's format that it writes into `directory` and removes again,
/// through the training's loader: with one reading thread, and with all. From the page cache.
/// Throws FileError, DataError.
std::vector<ProbeRecord> probe_data_loading(const ProbeBench& bench,
                                            const std::filesystem::path& directory);

}  // namespace reckon
