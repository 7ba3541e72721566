#include "executor/data/input_meter.h"

#include <time.h>

namespace reckon::data {

/// Of one thread, until it goes.
class InputMeter::Waiting {
 public:
  explicit Waiting(InputMeter& meter) : meter_(meter) {
    const std::lock_guard lock(meter_.mutex_);
    if (meter_.waiting_++ == 0) meter_.since_ = since_;
  }
  ~Waiting() {
    const std::lock_guard lock(meter_.mutex_);
    const auto now = std::chrono::steady_clock::now();
    meter_.work_.requests += now - since_;
    if (--meter_.waiting_ == 0) meter_.work_.reading += now - meter_.since_;
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  InputMeter& meter_;
  const std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

void InputMeter::read(const Store& store, const StoredObject& object, std::int64_t offset,
                      std::span<std::uint8_t> bytes) {
  {
    const Waiting waiting(*this);
    store.read(object, offset, bytes);
  }
  const std::lock_guard lock(mutex_);
  work_.read += Bytes{static_cast<double>(bytes.size())};
}

void InputMeter::count(Seconds decode_cpu) {
  const std::lock_guard lock(mutex_);
  ++work_.samples;
  work_.decode_cpu += decode_cpu;
}

void InputMeter::count_skipped(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (work_.skipped++ == 0) work_.first_skipped = why;
}

InputWork InputMeter::work() const {
  const std::lock_guard lock(mutex_);
  InputWork work = work_;
  if (waiting_ > 0) work.reading += std::chrono::steady_clock::now() - since_;
  return work;
}

Seconds processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace reckon::data
