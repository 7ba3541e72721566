#include "sim/scenario/restart.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/unit_text.h"
#include "sim/scenario/resolve/training/workers.h"

namespace reckon {

int workers_of_a_copy(const PlannedWorkload& job) {
  const Layout& layout = job.strategy.layout;
  const std::int64_t ranks = layout.replica() * std::max(1, layout.expert);
  const std::int64_t per_worker = std::max(1, job.strategy.accelerators_per_worker);
  return static_cast<int>((ranks + per_worker - 1) / per_worker);
}

bool copies_hold_all(const PlannedWorkload& job) {
  const PlannedStrategy& s = job.strategy;
  return s.layout.zero_stage == 0 && traits_of(s.kind).gang;
}

int spare_workers(const Plan& plan) {
  const PlannedWorkload& job = plan.only_job();
  if (!job.restart || job.restart->kind != RestartKind::warm_spare) return 0;
  const PlannedPool& pool = *computing_pools(plan).front();
  const int workers =
      planning::workers_on(1, pool.accelerators_per_node, job.strategy.accelerators_per_worker);
  return job.restart->spares * std::max(1, workers);
}

PlannedWorkload with_fewer_workers(PlannedWorkload job, int workers) {
  const std::int64_t before = layout_of(job).micro_batches;
  const std::int64_t global = job.global_batch;
  job.strategy.workers = workers;
  job.global_batch = 1;
  const Layout layout = layout_of(job);
  const std::int64_t passes = (global + layout.micro_batch - 1) / layout.micro_batch;
  const bool fixed = job.restart->batch == ElasticBatch::fixed;
  job.global_batch =
      std::int64_t{layout.data} * layout.micro_batch *
      (fixed ? std::max<std::int64_t>(1, passes_of_copy(passes, layout.data, 0)) : before);
  job.strategy.layout = layout_of(job);
  return job;
}

std::optional<RestartSpec> parse_restart(std::string_view text) {
  const std::size_t blank = text.find(' ');
  const auto kind = from_text<RestartKind>(text.substr(0, blank));
  if (!kind) return std::nullopt;
  RestartSpec restart{.kind = *kind};
  if (*kind == RestartKind::warm_spare) restart.spares = 1;
  if (blank == std::string_view::npos) return restart;
  const auto number = parse_integer(text.substr(blank + 1));
  constexpr int kMost = 65'536;
  if (!number || *number < 1 || *number > kMost) return std::nullopt;
  const int nodes = static_cast<int>(*number);
  if (*kind == RestartKind::warm_spare)
    restart.spares = nodes;
  else if (*kind == RestartKind::elastic)
    restart.min = nodes;
  else
    return std::nullopt;
  return restart;
}

std::string restart_text(const RestartSpec& restart) {
  const std::string word{to_text(restart.kind)};
  if (restart.spares) return fmt::format("{} {}", word, *restart.spares);
  return restart.min ? fmt::format("{} {}", word, *restart.min) : word;
}

}  // namespace reckon
