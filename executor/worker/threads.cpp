#include "executor/worker/threads.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "executor/comm/rendezvous/identity_slurm.h"

namespace reckon::worker {
namespace {

int number_in(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr ? std::atoi(value) : 0;
}

int slurm_tasks_here() {
  const char* tasks = std::getenv("SLURM_STEP_TASKS_PER_NODE");
  return tasks != nullptr ? slurm_tasks_on_node(tasks, number_in("SLURM_NODEID")).value_or(1) : 1;
}

}  // namespace

int cores_of_process() {
  const int all = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  cpu_set_t allowed;
  const int cores = sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : all;
  int sharing = number_in("LOCAL_WORLD_SIZE");
  if (sharing <= 0) sharing = cores < all ? 1 : slurm_tasks_here();
  return std::max(1, cores / sharing);
}

int computing_threads(const JobOptions& options) {
  return options.threads > 0 ? options.threads : cores_of_process();
}

int loading_threads(const JobOptions& options, const DataSpec& data) {
  if (options.data_threads > 0) return options.data_threads;
  if (data.threads) return static_cast<int>(*data.threads);
  return holds_images(data.format) || is_store_location(data.path) ? cores_of_process() : 1;
}

}  // namespace reckon::worker
