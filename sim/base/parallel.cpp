#include "sim/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace reckon {

void parallel_for(std::size_t n, int threads, const std::function<void(std::size_t)>& body) {
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t count = std::min(n, threads > 0 ? static_cast<std::size_t>(threads) : cores);
  std::atomic<std::size_t> next{0};
  std::exception_ptr first;
  std::mutex first_mutex;
  const auto work = [&] {
    try {
      for (std::size_t k = next++; k < n; k = next++) body(k);
    } catch (...) {
      const std::lock_guard lock(first_mutex);
      if (!first) first = std::current_exception();
      next = n;  // the others stop at their next index
    }
  };
  {
    std::vector<std::jthread> workers;
    for (std::size_t t = 1; t < count; ++t) workers.emplace_back(work);
    work();
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace reckon
