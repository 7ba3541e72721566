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

TEST_CASE("what a slow rank is said to be") {
  const SlowRank slow{3, Seconds{0.9}, Seconds{0.5}};
  CHECK(to_text(slow, 3) ==
        "takes 900 ms for its own part of a step, 1.8 times what the other 3 ranks like it take");
  CHECK(to_text(slow, 1) ==
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
