#include "sim/measurement/slow_ranks.h"

#include <catch2/catch.hpp>
#include <functional>
#include <utility>

using namespace reckon;

namespace {

/// Ranks that tell of one step after the other.
class Steps {
 public:
  explicit Steps(std::vector<int> kinds) : ranks_(std::move(kinds)) {}

  void begin() {
    ranks_.begin();
    step_ = 0;
  }
  /// One more of each; who was said to be slow.
  std::vector<SlowRank> step(const std::vector<double>& own) {
    std::vector<SlowRank> slow;
    for (std::size_t k = 0; k < own.size(); ++k)
      for (const SlowRank& found :
           ranks_.add(int(k), step_, Seconds{own[k] * (1 + 0.01 * (step_ % 3))}))
        slow.push_back(found);
    ++step_;
    return slow;
  }
  /// So many of each; who was.
  std::vector<int> told(int steps, const std::vector<double>& own) {
    std::vector<int> slow;
    for (int k = 0; k < steps; ++k)
      for (const SlowRank& found : step(own)) slow.push_back(found.rank);
    return slow;
  }

 private:
  SlowRanks ranks_;
  int step_ = 0;
};

/// The steps from `first` to `end` of one rank, read at once; who was said to be slow.
std::vector<int> read(SlowRanks& ranks, int rank, int first, int end,
                      const std::function<double(int step)>& own) {
  std::vector<int> slow;
  for (int step = first; step < end; ++step)
    for (const SlowRank& found : ranks.add(rank, step, Seconds{own(step)}))
      slow.push_back(found.rank);
  return slow;
}

}  // namespace

TEST_CASE("a rank that is slow beyond its kind is named once, when 20 steps have shown it") {
  Steps ranks({0, 0, 0, 0});
  const std::vector<double> own{1, 1.02, 1.9, 0.98};
  CHECK(ranks.told(19, own).empty());
  CHECK(ranks.told(1, own) == std::vector<int>{2});
  CHECK(ranks.told(100, own).empty());
  ranks.begin();
  CHECK(ranks.told(19, own).empty());
  CHECK(ranks.told(5, own) == std::vector<int>{2});
}

TEST_CASE("ranks are compared with those of their kind alone") {
  // Two stages of a pipeline: the second has more to do.
  Steps ranks({0, 0, 1, 1});
  CHECK(ranks.told(40, {1, 1.1, 3, 3.1}).empty());
  Steps slow_stage({0, 0, 1, 1});
  CHECK(slow_stage.told(40, {1, 1, 3, 4.5}) == std::vector<int>{3});
  Steps alone({0, 1});
  CHECK(alone.told(40, {1, 9}).empty());
}

TEST_CASE("a rank within the spread of the others is not slow") {
  Steps ranks({0, 0, 0, 0, 0});
  CHECK(ranks.told(40, {1, 1.6, 0.7, 1.2, 1.7}).empty());
  Steps little({0, 0, 0});
  CHECK(little.told(40, {1, 1, 1.2}).empty());
}

TEST_CASE("a single slow step is none") {
  Steps ranks({0, 0});
  CHECK(ranks.told(30, {1, 1}).empty());
  CHECK(ranks.told(3, {1, 50}).empty());
  CHECK(ranks.told(30, {1, 1}).empty());
}

TEST_CASE("ranks that never tell a step are left out, when the others have done 40") {
  // Of eight the logs of four are read.
  Steps ranks({0, 0, 0, 0, 0, 0, 0, 0});
  const std::vector<double> own{1, 1.02, 1.9, 0.98};
  CHECK(ranks.told(39, own).empty());
  const std::vector<SlowRank> found = ranks.step(own);
  REQUIRE(found.size() == 1);
  CHECK(found[0].rank == 2);
  CHECK(found[0].others == 3);
  CHECK(ranks.told(40, own).empty());
}

TEST_CASE(
    "a rank is not judged by one other of several, nor by less than half of those that tell") {
  Steps one_of_two({0, 0, 0});
  CHECK(one_of_two.told(100, {1, 1.9}).empty());
  // Two others have done 20 steps, three have only begun.
  Steps few({0, 0, 0, 0, 0, 0});
  CHECK(few.told(1, {1, 1, 1.9, 1, 1, 1}).empty());
  CHECK(few.told(100, {1, 1, 1.9}).empty());
}

TEST_CASE("ranks are compared over the same steps, in whatever order they are read") {
  // All begin with slow steps, and become slow together later.
  const auto own = [](int step) { return step < 30 ? 3.0 : step < 150 ? 1.0 : 2.0; };
  const int all = GENERATE(2, 4);
  SlowRanks ranks(std::vector<int>(std::size_t(all), 0));
  for (const auto& [first, end] : {std::pair{0, 100}, {100, 160}, {160, 1000}})
    for (int rank = 0; rank < all; ++rank) CHECK(read(ranks, rank, first, end, own).empty());
}

TEST_CASE("a rank that was read first is found to be slow when the last one is read") {
  SlowRanks ranks({0, 0, 0});
  CHECK(read(ranks, 0, 0, 300, [](int) { return 2.0; }).empty());
  CHECK(read(ranks, 1, 0, 300, [](int) { return 1.0; }).empty());
  CHECK(read(ranks, 2, 0, 300, [](int) { return 1.0; }) == std::vector<int>{0});
}

TEST_CASE("a rank whose log is read no more keeps no other from being judged") {
  SlowRanks ranks({0, 0, 0, 0});
  const auto usual = [](int) { return 1.0; };
  for (int rank = 0; rank < 4; ++rank) CHECK(read(ranks, rank, 0, 50, usual).empty());
  std::vector<int> slow;
  for (int step = 50; step < 110; ++step)
    for (int rank = 0; rank < 3; ++rank)
      for (const int found :
           read(ranks, rank, step, step + 1, [&](int) { return rank == 1 ? 2.0 : 1.0; }))
        slow.push_back(found);
  CHECK(slow == std::vector<int>{1});
}

TEST_CASE("workers with steps of their own are compared over the same time") {
  // The second takes twice as long for each.
  SlowRanks ranks({0, 0});
  std::vector<int> slow;
  for (int step = 0; step < 50; ++step) {
    for (const SlowRank& found : ranks.add(0, step, Seconds{1})) slow.push_back(found.rank);
    if (step % 2 == 0)
      for (const SlowRank& found : ranks.add(1, step + 0.5, Seconds{2})) slow.push_back(found.rank);
  }
  CHECK(slow == std::vector<int>{1});
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
