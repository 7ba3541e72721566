#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace reckon::cli {

/// Threads that make answers in the order in which they were asked for. Ends with what is being
/// made; what still waits is forgotten.
class AnswerQueue {
 public:
  AnswerQueue(std::size_t threads, std::size_t most_waiting);
  ~AnswerQueue();
  AnswerQueue(const AnswerQueue&) = delete;
  AnswerQueue& operator=(const AnswerQueue&) = delete;
  /// False: too many wait already, and `job` will not be called.
  bool push(std::function<void()> job);

 private:
  void work();

  const std::size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace reckon::cli
