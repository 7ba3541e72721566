#include "executor/launch/standing_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <iterator>
#include <span>
#include <utility>

#include "executor/train/recipe/recipe.h"
#include "executor/train/records/orders.h"
#include "sim/scenario/resolve/training/workers.h"
#include "sim/scenario/restart.h"

namespace reckon {

StandingProcesses::StandingProcesses(const PlannedWorkload& job, int spares)
    : job_(job),
      of_worker_(ranks_of_worker(job.strategy)),
      wanted_(computing_ranks(job.strategy)),
      of_copy_(workers_of_a_copy(job) * of_worker_),
      least_(job.restart->min_workers * of_worker_),
      spares_(job.restart->kind == RestartKind::warm_spare ? spares : 0) {}

int StandingProcesses::seats_of_next(int ready) const {
  if (!begun_ || job_.restart->kind != RestartKind::elastic) return wanted_;
  const int usable = usable_workers(ready, of_copy_, least_);
  return usable > 0 ? std::min(usable, wanted_) : wanted_;
}

std::shared_ptr<WatchedProcess> StandingProcesses::start(const LocalJob& local,
                                                         const RankOfJob& rank,
                                                         std::int64_t attempt,
                                                         const Socket& rendezvous) const {
  OrderSockets orders = make_order_sockets();
  ProcessSpec spec = process_of(job_.strategy, local, rank, attempt, rendezvous);
  spec.inherited.emplace_back(RunEnvironment::kOrdersVariable, orders.process.get());
  auto process = std::make_shared<WatchedProcess>(spec, std::move(orders.watcher));
  process->rank = rank.stands_by ? -1 : rank.rank;
  return process;
}

void StandingProcesses::end_broken_workers() {
  const auto of_worker = static_cast<std::size_t>(of_worker_);
  for (std::size_t first = 0; first < seats_.size(); first += of_worker) {
    const auto ranks = std::span(seats_).subspan(first, of_worker);
    if (std::ranges::any_of(ranks, [](const auto& p) { return p->look_for_end().has_value(); }))
      std::ranges::fill(ranks, nullptr);  // ends and reaps them
  }
}

GangOptions StandingProcesses::seat(const LocalJob& local, std::int64_t attempt) {
  GangOptions gang;
  gang.rendezvous = local_rendezvous();
  gang.attempt = attempt;
  gang.stays = true;

  end_broken_workers();
  Processes there = std::exchange(seats_, {});
  std::ranges::move(std::exchange(beside_, {}), std::back_inserter(there));
  std::erase_if(there, [](const auto& p) { return !p || p->look_for_end().has_value(); });
  // Those that wait before those that still start, and by their ranks.
  const auto order = [](const auto& p) {
    return std::pair(!p->waits(), p->rank < 0 ? INT_MAX : p->rank);
  };
  std::ranges::stable_sort(there, {}, order);
  const int ready = int(std::ranges::count_if(there, [](const auto& p) { return p->waits(); }));
  const int seats = seats_of_next(ready);
  seats_.resize(std::size_t(seats));
  const bool keep_ranks = seats == wanted_;
  for (auto& p : there) {
    if (!keep_ranks || p->rank < 0 || p->rank >= seats) continue;
    auto& own = seats_[std::size_t(p->rank)];
    if (!own) own = std::exchange(p, nullptr);
  }
  std::erase(there, nullptr);
  for (int rank = 0; rank < seats; ++rank) {
    auto& place = seats_[std::size_t(rank)];
    const bool fresh = !place && there.empty();
    if (fresh) place = start(local, {.rank = rank, .workers = seats}, attempt, gang.rendezvous);
    if (!place) {
      place = there.front();
      there.erase(there.begin());
    }
    if (!fresh) {
      place->seat(rank, name_of_rank(job_.strategy, rank));
      send_order(
          place->orders.get(),
          {.attempt = attempt, .rank = rank, .workers = seats, .master = gang.rendezvous.local()},
          rank == 0 ? gang.rendezvous.fd() : -1);
    }
  }
  beside_ = std::move(there);
  while (seats + int(beside_.size()) < most())
    beside_.push_back(
        start(local, {.rank = 0, .workers = wanted_, .stands_by = true}, attempt, gang.rendezvous));
  begun_ = true;
  told_ = false;
  gang.running = seats_;
  gang.beside = beside_;
  return gang;
}

bool StandingProcesses::could_grow() const {
  if (job_.restart->kind != RestartKind::elastic || told_) return false;
  const int ready = int(std::ranges::count_if(beside_, [](const auto& p) { return p->waits(); }));
  return usable_workers(seats() + ready, of_copy_, least_) > seats();
}

void StandingProcesses::regroup() { told_ = send_regroup(seats_.front()->orders.get()); }

std::int64_t StandingProcesses::held_steps() const {
  std::int64_t most = 0;
  for (const auto& p : seats_)
    if (p->waits()) most = std::max(most, p->last->step);
  return most;
}

int spare_processes(const Plan& plan) {
  const PlannedWorkload& job = plan.only_job();
  if (!job.restart || job.restart->kind != RestartKind::warm_spare) return 0;
  const PlannedPool& pool = *computing_pools(plan).front();
  const int workers =
      planning::workers_on(1, pool.accelerators_per_node, job.strategy.accelerators_per_worker);
  return job.restart->spares * std::max(1, workers) * ranks_of_worker(job.strategy);
}

}  // namespace reckon
