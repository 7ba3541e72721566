#include "executor/launch/seating.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "sim/scenario/restart.h"

// Who has which rank in the next start, for processes and pods alike.
using namespace reckon;

namespace {

constexpr int kNew = Seating::kNew;

StandingMember waits_in(int rank) { return {.rank = rank, .waits = true}; }
const StandingMember kReady{.rank = -1, .waits = true}, kStarts{.rank = -1, .waits = false};

SeatingRules rules_of(RestartKind kind, int wanted, int spares = 0) {
  return {.kind = kind, .wanted = wanted, .spares = spares};
}

}  // namespace

TEST_CASE("in place a new process has the rank of the lost one, and the others keep theirs") {
  const SeatingRules rules = rules_of(RestartKind::in_place, 3);
  const std::vector<StandingMember> left{waits_in(2), waits_in(0)};
  CHECK(seats_of_start(left, rules, false).seats == std::vector{1, kNew, 0});
  CHECK(!seats_of_start(left, rules, false).is_complete());
  const std::vector<StandingMember> all{waits_in(2), waits_in(0), kStarts};
  CHECK(seats_of_start(all, rules, false).seats == std::vector{1, 2, 0});
  CHECK(seats_of_start({}, rules, true).seats == std::vector{kNew, kNew, kNew});
}

TEST_CASE("a spare that waits takes the rank of the lost one, before one that still starts") {
  const SeatingRules rules = rules_of(RestartKind::warm_spare, 3, 1);
  CHECK(rules.most() == 4);
  const std::vector<StandingMember> there{waits_in(0), kStarts, kReady, waits_in(1)};
  const Seating next = seats_of_start(there, rules, false);
  CHECK(next.seats == std::vector{0, 3, 2});
  CHECK(next.beside == std::vector{1});
}

TEST_CASE("an elastic job goes on in whole copies of those that wait, as long as they are enough") {
  SeatingRules rules = rules_of(RestartKind::elastic, 8);
  rules.of_copy = 2;
  rules.least = 4;
  std::vector<StandingMember> left;
  for (const int rank : {0, 1, 3, 4, 5, 6, 7}) left.push_back(waits_in(rank));
  const Seating smaller = seats_of_start(left, rules, false);
  CHECK(smaller.seats == std::vector{0, 1, 2, 3, 4, 5});  // by their ranks before
  CHECK(smaller.beside == std::vector{6});
  CHECK(!could_grow(rules, 6, 1));
  CHECK(could_grow(rules, 6, 2));
  CHECK(!could_grow(rules, 8, 2));
  CHECK(!could_grow(rules_of(RestartKind::in_place, 8), 6, 2));
  left.resize(3);  // too few: it waits for all
  const Seating waiting = seats_of_start(left, rules, false);
  CHECK(waiting.seats.size() == 8);
  CHECK(!waiting.is_complete());
  // Its first start is of all ranks.
  CHECK(seats_of_start(std::vector(6, kReady), rules, true).seats.size() == 8);
}

TEST_CASE("in random worlds no rank is given twice, nobody is left out, and sizes keep the rules") {
  std::mt19937 random(20261129);
  const auto below = [&](int end) {
    return int(std::uniform_int_distribution<int>(0, end - 1)(random));
  };
  constexpr int kWorlds = 20'000;
  for (int world = 0; world < kWorlds; ++world) {
    constexpr std::array kKinds{RestartKind::in_place, RestartKind::warm_spare,
                                RestartKind::elastic};
    SeatingRules rules{.kind = kKinds[std::size_t(below(3))]};
    rules.of_copy = 1 + below(3);
    rules.wanted = rules.of_copy * (1 + below(6));
    rules.least = rules.of_copy * (1 + below(rules.wanted / rules.of_copy));
    if (rules.kind == RestartKind::warm_spare) rules.spares = below(4);
    const bool first = below(8) == 0;
    // Of the last start, which may have been a smaller one, some are left; some stand by.
    std::vector<StandingMember> there;
    const int before = first ? 0 : 1 + below(rules.wanted);
    for (int rank = 0; rank < before; ++rank)
      if (below(3) > 0) there.push_back(waits_in(rank));
    while (int(there.size()) < rules.most() && below(3) > 0)
      there.push_back(below(2) == 0 ? kReady : kStarts);
    std::ranges::shuffle(there, random);

    const Seating next = seats_of_start(there, rules, first);
    const int ranks = int(next.seats.size());
    const int waiting = int(std::ranges::count_if(there, &StandingMember::waits));
    INFO("world " << world << ": " << ranks << " ranks of " << rules.wanted << ", " << waiting
                  << " of " << there.size() << " wait");
    // Each that is there has one rank, or stands by.
    std::set<int> placed;
    for (const int k : next.seats)
      if (k != kNew) REQUIRE(placed.insert(k).second);
    for (const int k : next.beside) REQUIRE(placed.insert(k).second);
    REQUIRE(placed.size() == there.size());
    REQUIRE((placed.empty() || (*placed.begin() >= 0 && *placed.rbegin() < int(there.size()))));
    // Nobody new is wanted while somebody stands by.
    if (!next.is_complete()) REQUIRE(next.beside.empty());
    // Sizes.
    REQUIRE(ranks <= rules.wanted);
    if (first || rules.kind != RestartKind::elastic) {
      REQUIRE(ranks == rules.wanted);
    } else if (ranks < rules.wanted) {
      REQUIRE(ranks >= rules.least);
      REQUIRE(ranks % rules.of_copy == 0);
      REQUIRE(ranks == usable_workers(waiting, rules.of_copy, rules.least));
      REQUIRE(next.is_complete());
      for (const int k : next.seats) REQUIRE(there[std::size_t(k)].waits);
      REQUIRE(waiting - ranks < rules.of_copy);
    }
    // Where the job is whole, whoever had a rank keeps it.
    for (int rank = 0; rank < ranks && ranks == rules.wanted; ++rank) {
      const auto had_it = std::ranges::find(there, rank, &StandingMember::rank);
      if (had_it != there.end()) REQUIRE(next.seats[std::size_t(rank)] == had_it - there.begin());
    }
    // Those that wait are used before those that still start.
    const bool a_ready_one_is_beside =
        std::ranges::any_of(next.beside, [&](int k) { return there[std::size_t(k)].waits; });
    if (a_ready_one_is_beside)
      for (const int k : next.seats) REQUIRE(there[std::size_t(k)].waits);
    // To grow is to come nearer to the whole job, by whole copies.
    const int more = below(5);
    if (could_grow(rules, ranks, more)) {
      REQUIRE(rules.kind == RestartKind::elastic);
      REQUIRE(ranks < rules.wanted);
      REQUIRE(more >= rules.of_copy);
    }
  }
}

TEST_CASE("pods are seated by workers, processes by ranks, and both are as many in the end") {
  PlannedWorkload job;
  job.strategy.kind = StrategyKind::multi_worker_mirrored;
  job.strategy.workers = 6;
  job.strategy.accelerators_per_worker = 8;
  job.restart = {.kind = RestartKind::warm_spare, .min_workers = 2};
  const SeatingRules ranks = seating_rules(job, 1, Seated::ranks);
  CHECK((ranks.wanted == 48 && ranks.of_copy == 8 && ranks.least == 16 && ranks.spares == 8));
  const SeatingRules workers = seating_rules(job, 1, Seated::workers);
  CHECK((workers.wanted == 6 && workers.of_copy == 1 && workers.least == 2 && workers.spares == 1));
  job.restart->kind = RestartKind::elastic;
  CHECK(seating_rules(job, 1, Seated::workers).spares == 0);
}

TEST_CASE("where a job of shared copies shrinks, each goes on with the part that it held") {
  PlannedWorkload job;
  job.strategy.kind = StrategyKind::model_parallel;
  job.strategy.workers = 8;
  job.strategy.layout = {.data = 2, .tensor = 2, .pipeline = 2};
  job.restart = {.kind = RestartKind::elastic, .min_workers = 4};
  const SeatingRules rules = seating_rules(job, 0, Seated::ranks);
  REQUIRE(rules.of_copy == 4);
  // Tensor innermost, pipeline outermost: ranks 0, 1 | 2, 3 are stage 0 of the two copies.
  std::vector<StandingMember> left;
  for (const int rank : {1, 2, 3, 4, 5, 6}) left.push_back({.rank = rank, .of = 8, .waits = true});
  const Seating next = seats_of_start(left, rules, false);
  std::vector<int> had;
  for (const int k : next.seats) had.push_back(left[std::size_t(k)].rank);
  CHECK(had == std::vector{2, 1, 4, 5});
  // Who stood by holds nothing of it.
  left[1].of = 0;
  const Seating again = seats_of_start(left, rules, false);
  CHECK(left[std::size_t(again.seats[0])].rank == 2);  // somebody has to
  CHECK(left[std::size_t(again.seats[1])].rank == 1);
}

TEST_CASE("where a job of shared copies grows, nobody gives up the part that it holds") {
  PlannedWorkload job;
  job.strategy.kind = StrategyKind::model_parallel;
  job.strategy.workers = 4;
  job.strategy.layout = {.data = 2, .pipeline = 2};
  job.restart = {.kind = RestartKind::elastic, .min_workers = 2};
  const SeatingRules rules = seating_rules(job, 0, Seated::ranks);
  // Of two, ranks 0 and 1 are the two stages; of four, 0 and 1 are the first stage of both copies.
  const std::vector<StandingMember> there{
      {.rank = 0, .of = 2, .waits = true}, {.rank = 1, .of = 2, .waits = true}, kReady, kReady};
  const Seating next = seats_of_start(there, rules, false);
  REQUIRE(next.is_complete());
  CHECK(next.seats[0] == 0);
  CHECK(next.seats[2] == 1);
}
