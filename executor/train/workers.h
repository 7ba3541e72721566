#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

// The threads of one rank. They live as long as the rank: starting a thread costs more than a small
// layer.
namespace reckon {

/// Tasks are numbered and each writes where no other writes, so neither the number of threads nor
/// their order can change a result.
class Workers {
 public:
  /// threads = 0: one a core.
  explicit Workers(int threads = 0);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Threads that compute, the caller's among them.
  int count() const { return static_cast<int>(threads_.size()) + 1; }

  /// body(task, worker) for every task in [0, tasks); worker < count() says whose scratch memory to
  /// use. Returns when all are done and throws the first exception of any. Not to be called from a
  /// body. Callers on several threads take turns where there are threads to share; where there are
  /// none each computes on its own.
  template <class Body>
  void run(std::int64_t tasks, Body&& body) {
    if (tasks <= 1 || threads_.empty()) {
      for (std::int64_t task = 0; task < tasks; ++task) body(task, 0);
      return;
    }
    Job job;
    job.tasks = tasks;
    job.body = &body;
    job.call = [](void* f, std::int64_t task, int worker) {
      (*static_cast<std::remove_reference_t<Body>*>(f))(task, worker);
    };
    run_job(job);
  }

  /// body(begin, end) over pieces of [0, n) of `piece` elements.
  template <class Body>
  void run_pieces(std::int64_t n, std::int64_t piece, Body&& body) {
    run((n + piece - 1) / piece, [&](std::int64_t task, int) {
      const std::int64_t begin = task * piece;
      body(begin, begin + piece < n ? begin + piece : n);
    });
  }

 private:
  struct Job {
    std::int64_t tasks = 0;
    void* body = nullptr;
    void (*call)(void*, std::int64_t, int) = nullptr;
    std::atomic<std::int64_t> next{0};
    std::exception_ptr first;  // guarded by mutex_
  };
  void run_job(Job& job);
  void work_on(Job& job, int worker);
  void serve(int worker);

  std::mutex turn_;  // of run_job: whose job it is
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  Job* job_ = nullptr;            // guarded by mutex_
  std::uint64_t generation_ = 0;  // of jobs
  int busy_ = 0;                  // threads that still work on job_
  bool stopping_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace reckon
