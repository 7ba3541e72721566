#include "executor/launch/standing_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "executor/train/recipe/recipe.h"
#include "executor/train/records/orders.h"
#include "sim/scenario/restart.h"

namespace reckon {

StandingProcesses::StandingProcesses(const PlannedWorkload& job, int spares)
    : job_(job),
      of_worker_(ranks_of_worker(job.strategy)),
      rules_(seating_rules(job, spares, Seated::ranks)) {}

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

  const int last = seats();
  end_broken_workers();
  Processes there = std::exchange(seats_, {});
  const std::set<std::shared_ptr<WatchedProcess>> seated(there.begin(), there.end());
  std::ranges::move(std::exchange(beside_, {}), std::back_inserter(there));
  std::erase_if(there, [](const auto& p) { return !p || p->look_for_end().has_value(); });
  std::vector<StandingMember> members;
  for (const auto& p : there)
    members.push_back({.rank = p->rank, .of = seated.contains(p) ? last : 0, .waits = p->waits()});
  const Seating next = seats_of_start(members, rules_, !begun_);
  const int seats = int(next.seats.size());
  for (int rank = 0; rank < seats; ++rank) {
    const int own = next.seats[std::size_t(rank)];
    if (own == Seating::kNew) {
      seats_.push_back(start(local, {.rank = rank, .workers = seats}, attempt, gang.rendezvous));
      continue;
    }
    const auto& process = seats_.emplace_back(there[std::size_t(own)]);
    process->seat(rank, name_of_rank(job_.strategy, rank));
    send_order(
        process->orders.get(),
        {.attempt = attempt, .rank = rank, .workers = seats, .master = gang.rendezvous.local()},
        rank == 0 ? gang.rendezvous.fd() : -1);
  }
  for (const int k : next.beside) beside_.push_back(there[std::size_t(k)]);
  while (seats + int(beside_.size()) < most())
    beside_.push_back(start(local, {.rank = 0, .workers = rules_.wanted, .stands_by = true},
                            attempt, gang.rendezvous));
  begun_ = true;
  told_ = false;
  gang.running = seats_;
  gang.beside = beside_;
  return gang;
}

bool StandingProcesses::could_grow() const {
  const auto ready = std::ranges::count_if(beside_, [](const auto& p) { return p->waits(); });
  return !told_ && reckon::could_grow(rules_, seats(), int(ready));
}

void StandingProcesses::regroup() { told_ = send_regroup(seats_.front()->orders.get()); }

std::span<const std::shared_ptr<WatchedProcess>> StandingProcesses::ranks_with(int rank) const {
  const int first = rank - rank % of_worker_;
  return std::span(seats_).subspan(std::size_t(first), std::size_t(of_worker_));
}

std::int64_t StandingProcesses::held_steps() const {
  std::map<int, std::int64_t> of_part;
  for (int rank = 0; rank < seats(); ++rank) {
    std::int64_t& most = of_part[rules_.part ? rules_.part(rank, seats()) : 0];
    const auto& process = seats_[std::size_t(rank)];
    const auto ended = [](const auto& p) { return p->end.has_value(); };
    if (process->waits() && std::ranges::none_of(ranks_with(rank), ended))
      most = std::max(most, process->last->step);
  }
  return std::ranges::min_element(of_part, {}, [](const auto& part) { return part.second; })
      ->second;
}

int spare_processes(const Plan& plan) {
  return spare_workers(plan) * ranks_of_worker(plan.only_job().strategy);
}

}  // namespace reckon
