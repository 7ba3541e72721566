#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "sim/base/quantity.h"

namespace reckon {

/// A thread that does one thing after the other, in the order in which they were asked for. After
/// one has thrown nothing more is done, and every wait throws that.
class WorkQueue {
 public:
  WorkQueue() : thread_([this] { serve(); }) {}
  ~WorkQueue() {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  /// What to wait for.
  std::int64_t push(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    changed_.notify_all();
    return ++pushed_;
  }
  /// Until that, and all before it, is done; how long it took.
  Seconds wait(std::int64_t ticket) {
    const auto begin = Clock::now();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || done_ >= ticket; });
    if (failed_) std::rethrow_exception(failed_);
    return Clock::now() - begin;
  }
  Seconds wait_for_all() {
    std::unique_lock lock(mutex_);
    const std::int64_t last = pushed_;
    lock.unlock();
    return wait(last);
  }
  /// Time that it worked since the last call.
  Seconds take_busy() {
    const std::lock_guard lock(mutex_);
    return std::exchange(busy_, {});
  }

 private:
  using Clock = std::chrono::steady_clock;

  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stop_ || (!queue_.empty() && !failed_); });
      if (stop_) return;
      const std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      const auto begin = Clock::now();
      std::exception_ptr failed;
      try {
        work();
      } catch (const std::exception&) {
        failed = std::current_exception();
      }
      lock.lock();
      busy_ += Clock::now() - begin;
      failed_ = failed;
      if (!failed) ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::int64_t pushed_ = 0, done_ = 0;
  bool stop_ = false;
  std::exception_ptr failed_;
  Seconds busy_{};
  std::jthread thread_;
};

}  // namespace reckon
