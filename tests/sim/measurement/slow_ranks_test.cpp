#include "sim/measurement/slow_ranks.h"

#include <catch2/catch.hpp>

using namespace reckon;

namespace {

/// So many steps of all ranks; who was said to be slow.
std::vector<int> told(SlowRanks& ranks, int steps, const std::vector<double>& own) {
  std::vector<int> slow;
  for (int step = 0; step < steps; ++step)
    for (std::size_t k = 0; k < own.size(); ++k)
      for (const SlowRank& found : ranks.add(int(k), Seconds{own[k] * (1 + 0.01 * (step % 3))}))
        slow.push_back(found.rank);
  return slow;
}

}  // namespace

TEST_CASE("a rank that is slow beyond its kind is named once, when 20 steps have shown it") {
  SlowRanks ranks({0, 0, 0, 0});
  const std::vector<double> own{1, 1.02, 1.9, 0.98};
  CHECK(told(ranks, 19, own).empty());
  CHECK(told(ranks, 1, own) == std::vector<int>{2});
  CHECK(told(ranks, 100, own).empty());
  ranks.begin();
  CHECK(told(ranks, 19, own).empty());
  CHECK(told(ranks, 5, own) == std::vector<int>{2});
}

TEST_CASE("ranks are compared with those of their kind alone") {
  // Two stages of a pipeline: the second has more to do.
  SlowRanks ranks({0, 0, 1, 1});
  CHECK(told(ranks, 40, {1, 1.1, 3, 3.1}).empty());
  SlowRanks slow_stage({0, 0, 1, 1});
  CHECK(told(slow_stage, 40, {1, 1, 3, 4.5}) == std::vector<int>{3});
  SlowRanks alone({0, 1});
  CHECK(told(alone, 40, {1, 9}).empty());
}

TEST_CASE("a rank within the spread of the others is not slow") {
  SlowRanks ranks({0, 0, 0, 0, 0});
  CHECK(told(ranks, 40, {1, 1.6, 0.7, 1.2, 1.7}).empty());
  SlowRanks little({0, 0, 0});
  CHECK(told(little, 40, {1, 1, 1.2}).empty());
}

TEST_CASE("a single slow step is none") {
  SlowRanks ranks({0, 0});
  CHECK(told(ranks, 30, {1, 1}).empty());
  CHECK(told(ranks, 3, {1, 50}).empty());
  CHECK(told(ranks, 30, {1, 1}).empty());
}

TEST_CASE("ranks that never tell a step are left out, when the others have done 40") {
  // Of eight the logs of four are read.
  SlowRanks ranks({0, 0, 0, 0, 0, 0, 0, 0});
  const std::vector<double> own{1, 1.02, 1.9, 0.98};
  CHECK(told(ranks, 39, own).empty());
  std::vector<SlowRank> found;
  for (std::size_t k = 0; k < own.size(); ++k)
    for (const SlowRank& slow : ranks.add(int(k), Seconds{own[k]})) found.push_back(slow);
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 2);
  CHECK(found[0].others == 3);
  CHECK(told(ranks, 40, own).empty());
}

TEST_CASE(
    "a rank is not judged by one other of several, nor by less than half of those that tell") {
  SlowRanks one_of_two({0, 0, 0});
  CHECK(told(one_of_two, 100, {1, 1.9}).empty());
  // Two others have done 20 steps, three have only begun.
  SlowRanks few({0, 0, 0, 0, 0, 0});
  CHECK(told(few, 1, {1, 1, 1.9, 1, 1, 1}).empty());
  CHECK(told(few, 100, {1, 1, 1.9}).empty());
}

TEST_CASE("what a slow rank is said to be") {
  SlowRank slow{3, Seconds{0.9}, Seconds{0.5}, 3};
  CHECK(to_text(slow) ==
        "takes 900 ms for its own part of a step, 1.8 times what the other 3 ranks like it take");
  slow.others = 1;
  CHECK(to_text(slow) ==
        "takes 900 ms for its own part of a step, 1.8 times what the other rank like it takes");
}

TEST_CASE("a rank's own part of a step is what it does not wait for others") {
  StepRecord step;
  step.compute = Seconds{2};
  step.input = Seconds{0.5};
  step.update = Seconds{0.25};
  step.other = Seconds{0.125};
  step.exposed_communication = Seconds{7};
  step.wait = Seconds{9};
  CHECK(own_time(step) == Seconds{2.875});
}
