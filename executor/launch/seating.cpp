#include "executor/launch/seating.h"

#include <algorithm>
#include <climits>
#include <numeric>
#include <utility>

#include "executor/train/recipe/recipe.h"
#include "sim/scenario/rank_places.h"
#include "sim/scenario/restart.h"

namespace reckon {
namespace {

int ranks_of_next(int waiting, const SeatingRules& rules, bool first) {
  if (first || rules.kind != RestartKind::elastic) return rules.wanted;
  const int usable = usable_workers(waiting, rules.of_copy, rules.least);
  return usable > 0 ? std::min(usable, rules.wanted) : rules.wanted;
}

}  // namespace

SeatingRules seating_rules(const PlannedWorkload& job, int spares, Seated who) {
  const int of_worker = who == Seated::ranks ? ranks_of_worker(job.strategy) : 1;
  const Layout l = job.strategy.layout;
  const int ranks_of_seat = who == Seated::ranks ? 1 : ranks_of_worker(job.strategy);
  const auto part = [l, ranks_of_seat](int seat, int seats) {
    Layout smaller = l;
    smaller.data = static_cast<int>(seats * ranks_of_seat / l.replica());
    const RankPlace place = place_of_rank(smaller, seat * ranks_of_seat);
    return (place.pipeline * l.expert + place.expert(l)) * l.tensor + place.tensor;
  };
  const bool parts = copies_hold_all(job) && (l.replica() > 1 || l.expert > 1);
  return {.kind = job.restart->kind,
          .wanted = job.strategy.workers * of_worker,
          .of_copy = workers_of_a_copy(job) * of_worker,
          .least = job.restart->min_workers * of_worker,
          .spares = job.restart->kind == RestartKind::warm_spare ? spares * of_worker : 0,
          .part = parts ? std::function<int(int, int)>(part) : nullptr};
}

Seating seats_of_start(std::span<const StandingMember> there, const SeatingRules& rules,
                       bool first) {
  std::vector<int> order(there.size());
  std::iota(order.begin(), order.end(), 0);
  const auto rank_of = [&](int k) { return there[std::size_t(k)].rank; };
  std::ranges::stable_sort(order, {}, [&](int k) {
    return std::pair(!there[std::size_t(k)].waits, rank_of(k) < 0 ? INT_MAX : rank_of(k));
  });
  const int waiting = int(std::ranges::count_if(there, &StandingMember::waits));
  const int ranks = ranks_of_next(waiting, rules, first);
  Seating seating;
  seating.seats.assign(std::size_t(ranks), Seating::kNew);
  // The seats of a start of another size hold other parts, where copies are shared out.
  const auto holds_another = [&](int k) {
    const StandingMember& m = there[std::size_t(k)];
    return rules.part && m.of > 0 && rules.part(m.rank, m.of) != rules.part(m.rank, ranks);
  };
  const auto keeps_rank = [&](int k) {
    if (ranks != rules.wanted || rank_of(k) < 0 || rank_of(k) >= ranks) return false;
    int& own = seating.seats[std::size_t(rank_of(k))];
    if (own != Seating::kNew || holds_another(k)) return false;
    own = k;
    return true;
  };
  std::erase_if(order, keeps_rank);
  const auto held_part_of = [&](int k, int seat) {
    const StandingMember& m = there[std::size_t(k)];
    return m.waits && m.of > 0 && rules.part(m.rank, m.of) == rules.part(seat, ranks);
  };
  for (int seat = 0; rules.part && seat < ranks; ++seat) {
    if (seating.seats[std::size_t(seat)] != Seating::kNew) continue;
    const auto held = std::ranges::find_if(order, [&](int k) { return held_part_of(k, seat); });
    if (held == order.end()) continue;
    seating.seats[std::size_t(seat)] = *held;
    order.erase(held);
  }
  auto next = order.begin();
  for (int& seat : seating.seats)
    if (seat == Seating::kNew && next != order.end()) seat = *next++;
  seating.beside.assign(next, order.end());
  return seating;
}

bool could_grow(const SeatingRules& rules, int training, int waiting) {
  if (rules.kind != RestartKind::elastic) return false;
  const int usable = usable_workers(training + waiting, rules.of_copy, rules.least);
  return std::min(usable, rules.wanted) > training;
}

}  // namespace reckon
