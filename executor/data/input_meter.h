#pragma once
#include <chrono>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "executor/data/store/store.h"
#include "sim/base/quantity.h"

namespace reckon::data {

/// Adds up what a source's reading takes (InputWork), over all threads that read from it.
class InputMeter {
 public:
  /// From the store, on the clock: seconds in which at least one thread waits for bytes.
  void read(const Store& store, const StoredObject& object, std::int64_t offset,
            std::span<std::uint8_t> bytes);
  /// A sample is ready, and took so much of a processor.
  void count(Seconds decode_cpu);
  void count_skipped(const std::string& why);
  InputWork work() const;

 private:
  class Waiting;
  mutable std::mutex mutex_;
  InputWork work_;
  int waiting_ = 0;  // threads
  std::chrono::steady_clock::time_point since_;
};

/// Processor time of this thread.
Seconds processor_time();

}  // namespace reckon::data
