#include "executor/train/data/loader.h"

#include <algorithm>
#include <chrono>

#include "executor/train/data/order.h"
#include "sim/base/check.h"

namespace reckon {

namespace {
std::int64_t rounded_up(std::int64_t count, std::int64_t of) { return (count + of - 1) / of; }

/// As many batches as asked for, of which all threads together need some at a time.
std::size_t batches_ahead(const LoaderOptions& options) {
  const std::int64_t at_once = rounded_up(options.threads, options.micro_batch);
  return static_cast<std::size_t>(options.prefetch - 1 + at_once);
}
}  // namespace

DataLoader::DataLoader(const DataSource& source, const SampleFormat& format, LoaderOptions options)
    : source_(source),
      options_(options),
      batches_of_step_(options.own / options.micro_batch),
      part_(rounded_up(options.micro_batch, options.threads)),
      slots_(batches_ahead(options) + 1),
      next_to_fill_{options.first_step * batches_of_step_, 0},
      next_to_give_(next_to_fill_.batch) {
  RECKON_CHECK(options.own % options.micro_batch == 0);
  RECKON_CHECK(options.first_of_step + options.own <= options.global_batch);
  RECKON_CHECK(options.prefetch >= 1 && options.threads >= 1);
  for (Slot& slot : slots_) slot.batch = SampleBatch(format, options.micro_batch);
  for (int i = 0; i < options.threads; ++i) threads_.emplace_back([this] { serve(); });
}

DataLoader::~DataLoader() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

void DataLoader::fill(const Part& part, SampleBatch& batch) const {
  const std::int64_t step = part.batch / batches_of_step_, of_step = part.batch % batches_of_step_;
  const std::int64_t first =
      step * options_.global_batch + options_.first_of_step + of_step * options_.micro_batch;
  const std::int64_t samples = source_.samples();
  const std::int64_t end = std::min(part.first + part_, options_.micro_batch);
  for (std::int64_t i = part.first; i < end; ++i)
    source_.read_visit(sample_at(options_.seed, samples, first + i), (first + i) / samples, batch,
                       i);
}

void DataLoader::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    // One slot is in the caller's hands: the batch before next_to_give_.
    const auto free = [this] {
      return next_to_fill_.batch - next_to_give_ < static_cast<std::int64_t>(slots_.size()) - 1;
    };
    changed_.wait(lock, [&] { return stopping_ || free(); });
    if (stopping_) return;
    const Part part = next_to_fill_;
    Slot& slot = slot_of(part.batch);
    if (part.first == 0) slot.failed = nullptr;
    next_to_fill_.first += part_;
    if (next_to_fill_.first >= options_.micro_batch) next_to_fill_ = {part.batch + 1, 0};
    lock.unlock();
    std::exception_ptr failed;
    try {
      fill(part, slot.batch);
    } catch (const std::exception&) {
      failed = std::current_exception();
    }
    lock.lock();
    if (failed && (!slot.failed || part.first < slot.failed_at)) {
      slot.failed = failed;
      slot.failed_at = part.first;
    }
    slot.filled += std::min(part_, options_.micro_batch - part.first);
    if (slot.filled < options_.micro_batch) continue;
    slot.filled = 0;
    slot.ready = part.batch;
    changed_.notify_all();
  }
}

std::vector<std::span<float>> DataLoader::memory() {
  std::vector<std::span<float>> all;
  const std::size_t inputs = slots_.front().batch.view().inputs.size();
  for (Slot& slot : slots_)
    for (std::size_t k = 0; k < inputs; ++k) all.push_back(slot.batch.inputs(k));
  return all;
}

DataLoader::Next DataLoader::next() {
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  const std::int64_t number = next_to_give_;
  Slot& slot = slot_of(number);
  changed_.wait(lock, [&] { return slot.ready == number; });
  if (slot.failed) std::rethrow_exception(slot.failed);
  ++next_to_give_;
  changed_.notify_all();
  return {&slot.batch, std::chrono::steady_clock::now() - begin};
}

}  // namespace reckon
