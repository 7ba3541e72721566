#pragma once
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "executor/train/data/source.h"
#include "sim/base/quantity.h"

namespace reckon {

/// Which samples a rank reads: of each step's `global_batch` consecutive positions the `own` from
/// `first_of_step` on, in `own / micro_batch` batches.
struct LoaderOptions {
  std::uint64_t seed = 1;
  std::int64_t global_batch = 1;
  std::int64_t first_of_step = 0, own = 1;
  std::int64_t micro_batch = 1;  // divides own
  std::int64_t first_step = 0;   // to begin at: a resumed run continues at its exact sample
  int threads = 1;
  int prefetch = 3;  // batches ready or in work; more where they are too small for all threads
};

/// Batches in order, read ahead by threads, which share the samples of each.
class DataLoader {
 public:
  /// `source` must outlive it.
  DataLoader(const DataSource& source, const SampleFormat& format, LoaderOptions options);
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  struct Next {
    const SampleBatch* batch;  // until the next call
    Seconds waited;            // the caller stood still for it
  };
  /// Throws what reading threw (DataError), when the batch's turn comes.
  Next next();
  /// Where the inputs of all batches lie, from the first call of next() to the last.
  std::vector<std::span<float>> memory();

 private:
  struct Slot {
    SampleBatch batch;
    std::int64_t ready = -1;    // number of the batch that it holds
    std::int64_t filled = 0;    // samples of the batch under way
    std::exception_ptr failed;  // of the first part that did
    std::int64_t failed_at = 0;
  };
  /// Samples of a batch that one thread reads.
  struct Part {
    std::int64_t batch = 0, first = 0;
  };
  void serve();
  void fill(const Part& part, SampleBatch& batch) const;
  Slot& slot_of(std::int64_t number) {
    return slots_[static_cast<std::size_t>(number) % slots_.size()];
  }

  const DataSource& source_;
  LoaderOptions options_;
  std::int64_t batches_of_step_, part_;  // samples of a part
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Part next_to_fill_;
  std::int64_t next_to_give_;  // number of the batch, since step 0
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace reckon
