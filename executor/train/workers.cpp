#include "executor/train/workers.h"

#include <algorithm>

namespace reckon {

Workers::Workers(int threads) {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int count = threads > 0 ? threads : cores;
  for (int worker = 1; worker < count; ++worker)
    threads_.emplace_back([this, worker] { serve(worker); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
}

void Workers::work_on(Job& job, int worker) {
  try {
    for (std::int64_t task = job.next++; task < job.tasks; task = job.next++)
      job.call(job.body, task, worker);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!job.first) job.first = std::current_exception();
    job.next = job.tasks;  // the others stop at their next task
  }
}

void Workers::run_job(Job& job) {
  const std::lock_guard turn(turn_);
  {
    const std::lock_guard lock(mutex_);
    job_ = &job;
    ++generation_;
    busy_ = static_cast<int>(threads_.size());
  }
  wake_.notify_all();
  work_on(job, 0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return busy_ == 0; });
  job_ = nullptr;
  if (job.first) std::rethrow_exception(job.first);
}

void Workers::serve(int worker) {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
    if (stopping_) return;
    seen = generation_;
    Job* job = job_;
    lock.unlock();
    work_on(*job, worker);
    lock.lock();
    if (--busy_ == 0) done_.notify_one();
  }
}

}  // namespace reckon
