#include "executor/comm/rank_groups.h"

#include <set>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <catch2/catch.hpp>

#include "executor/comm/errors.h"
#include "executor/comm/job.h"
#include "executor/comm/thread_communicator.h"

namespace {
using namespace reckon;

constexpr Layout kAllAxes{.data = 4, .tensor = 2, .pipeline = 3, .context = 2, .expert = 2};

/// What this rank has from each group: the sum of the members' numbers in the job, and the first
/// member's by broadcast.
std::string sums(Communicator& job, const Layout& layout) {
  LayoutGroups groups = make_layout_groups(job, layout);
  std::string text;
  for (Communicator* group :
       {groups.tensor.get(), groups.context.get(), groups.expert.get(), groups.state.get(),
        groups.expert_state.get(), groups.pipeline.get(), groups.model.get()}) {
    std::int64_t sum = job.rank(), first = job.rank();
    group->all_reduce(std::span(&sum, 1));
    group->broadcast(std::as_writable_bytes(std::span(&first, 1)), 0);
    text += fmt::format("{}/{}:{}:{} ", group->rank(), group->size(), sum, first);
  }
  job.barrier();
  return text;
}

/// The same by the definition.
std::string expected_sums(int rank, const Layout& layout) {
  std::string text;
  for (const RankAxis axis :
       {RankAxis::tensor, RankAxis::context, RankAxis::expert, RankAxis::state,
        RankAxis::expert_state, RankAxis::pipeline, RankAxis::model}) {
    const std::vector<int> ranks = ranks_along(axis, layout, rank);
    int sum = 0, index = 0;
    for (std::size_t k = 0; k < ranks.size(); ++k) {
      sum += ranks[k];
      if (ranks[k] == rank) index = int(k);
    }
    text += fmt::format("{}/{}:{}:{} ", index, ranks.size(), sum, ranks.front());
  }
  return text;
}
}  // namespace

TEST_CASE("ranks lie tensor innermost, then context, then data, pipeline outermost") {
  CHECK(place_of_rank(kAllAxes, 0) == RankPlace{});
  CHECK(place_of_rank(kAllAxes, 1) == RankPlace{.tensor = 1});
  CHECK(place_of_rank(kAllAxes, 2) == RankPlace{.context = 1});
  CHECK(place_of_rank(kAllAxes, 4) == RankPlace{.data = 1});
  CHECK(place_of_rank(kAllAxes, 16) == RankPlace{.pipeline = 1});
  std::set<int> seen;
  for (int rank = 0; rank < kAllAxes.accelerators(); ++rank) {
    CHECK(rank_at(kAllAxes, place_of_rank(kAllAxes, rank)) == rank);
    seen.insert(rank);
  }
  CHECK(seen.size() == 48);
}

TEST_CASE("the groups of a rank are those that the forecast counts") {
  // Rank 27 = tensor 1, context 1, data 2, pipeline 1.
  CHECK(place_of_rank(kAllAxes, 27) ==
        RankPlace{.tensor = 1, .context = 1, .data = 2, .pipeline = 1});
  const auto along = [](RankAxis axis) { return ranks_along(axis, kAllAxes, 27); };
  CHECK(along(RankAxis::tensor) == std::vector<int>{26, 27});
  CHECK(along(RankAxis::context) == std::vector<int>{25, 27});
  CHECK(along(RankAxis::expert) == std::vector<int>{27, 31});
  CHECK(along(RankAxis::state) == std::vector<int>{17, 19, 21, 23, 25, 27, 29, 31});
  CHECK(along(RankAxis::expert_state) == std::vector<int>{17, 19, 25, 27});
  CHECK(along(RankAxis::pipeline) == std::vector<int>{11, 27, 43});
  CHECK(along(RankAxis::model) == std::vector<int>{8, 9, 10, 11, 24, 25, 26, 27, 40, 41, 42, 43});
}

TEST_CASE("groups of threads exchange among their members alone") {
  const int ranks = int(kAllAxes.accelerators());
  std::vector<std::string> got(static_cast<std::size_t>(ranks));
  auto communicators = make_thread_communicators(ranks, Seconds{20});
  std::vector<std::jthread> threads;
  for (auto& c : communicators)
    threads.emplace_back(
        [&, mine = std::move(c)] { got[std::size_t(mine->rank())] = sums(*mine, kAllAxes); });
  threads.clear();
  for (int rank = 0; rank < ranks; ++rank)
    CHECK(got[std::size_t(rank)] == expected_sums(rank, kAllAxes));
}

TEST_CASE("groups of processes over Gloo exchange among their members alone") {
  need_gloo();
  constexpr Layout kLayout{.data = 2, .tensor = 2, .pipeline = 2};
  const auto outcomes =
      run_gloo_job(8, [&](Communicator& c, Membership&) { return sums(c, kLayout); });
  for (int rank = 0; rank < 8; ++rank) {
    CHECK(outcomes[std::size_t(rank)].code == 0);
    CHECK(outcomes[std::size_t(rank)].output == expected_sums(rank, kLayout));
  }
}

TEST_CASE("two groups of a process exchange at the same time from two threads") {
  need_gloo();
  const auto outcomes = run_gloo_job(4, [](Communicator& c, Membership&) {
    LayoutGroups groups = make_layout_groups(c, {.data = 2, .pipeline = 2});
    constexpr std::size_t kCount = 50'000;
    std::vector<float> rows(kCount, float(c.rank()));
    std::jthread other([&] {
      for (int k = 0; k < 20; ++k) {
        std::ranges::fill(rows, float(c.rank()));
        groups.state->all_reduce(std::span(rows));
      }
    });
    std::vector<std::int64_t> passed(1);
    for (int k = 0; k < 200; ++k) {
      const bool first = groups.pipeline->rank() == 0;
      passed[0] = first ? k : -1;
      if (first)
        groups.pipeline->send(std::as_bytes(std::span(passed)), 1);
      else
        groups.pipeline->receive(std::as_writable_bytes(std::span(passed)), 0);
      if (passed[0] != k) return std::string("wrong");
    }
    other.join();
    return fmt::format("{} {}", rows.front(), rows.back());
  });
  for (int rank = 0; rank < 4; ++rank)
    CHECK(outcomes[std::size_t(rank)].output == (rank < 2 ? "1 1" : "5 5"));
}

TEST_CASE("sends that were started are received in their order, while both ranks go on sending") {
  need_gloo();
  const auto body = [](Communicator& c) {
    constexpr int kMessages = 50;
    constexpr std::size_t kCount = 100'000;  // more than a connection holds by itself
    const int other = 1 - c.rank();
    std::vector<float> values(kCount);
    for (int k = 0; k < kMessages; ++k) {
      values.assign(kCount, float(100 * c.rank() + k));
      c.start_send(std::as_bytes(std::span(values)), other);
      c.finish_sends(8);
      if (k < 5) continue;  // each is ahead of the other
      c.receive(std::as_writable_bytes(std::span(values)), other);
      if (values.front() != float(100 * other + k - 5) || values.back() != values.front())
        return fmt::format("message {} is {}", k - 5, values.front());
    }
    for (int k = kMessages - 5; k < kMessages; ++k) {
      c.receive(std::as_writable_bytes(std::span(values)), other);
      if (values.back() != float(100 * other + k)) return std::string("wrong at the end");
    }
    c.finish_sends();
    return std::string("right");
  };
  for (const ProcessOutcome& outcome :
       run_gloo_job(2, [&](Communicator&c, Membership&) { return body(c); }))
    CHECK(outcome.output == "right");
  auto communicators = make_thread_communicators(2, Seconds{20});
  std::vector<std::string> of_threads(2);
  {
    std::vector<std::jthread> threads;
    for (auto& c : communicators)
      threads.emplace_back(
          [&, mine = std::move(c)] { of_threads[std::size_t(mine->rank())] = body(*mine); });
  }
  CHECK(of_threads == std::vector<std::string>{"right", "right"});
}

TEST_CASE("a rank that ends is told to those that wait for others in another group") {
  need_gloo();
  const auto begin = std::chrono::steady_clock::now();
  const auto outcomes = run_gloo_job(4, [](Communicator& c, Membership&) -> std::string {
    try {
      LayoutGroups groups = make_layout_groups(c, {.data = 2, .pipeline = 2});
      if (c.rank() == 3) _exit(9);  // some may still be on their way out of the line above
      // 0 and 1 reduce, 1 waits for 3; 0 waits for 1 and 2 for 3.
      if (c.rank() == 1) {
        std::int64_t got = 0;
        groups.pipeline->receive(std::as_writable_bytes(std::span(&got, 1)), 1);
      }
      groups.state->barrier();
      return "done";
    } catch (const CommError& error) {
      return fmt::format("{}", fmt::join(error.peers(), ","));
    }
  });
  for (int rank = 0; rank < 3; ++rank) CHECK(outcomes[std::size_t(rank)].output == "3");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
}

TEST_CASE("what another thread of a rank waits for in a group ends when another group has failed") {
  need_gloo();
  const auto begin = std::chrono::steady_clock::now();
  const auto outcomes = run_gloo_job(4, [](Communicator& c, Membership&) -> std::string {
    LayoutGroups groups = make_layout_groups(c, {.data = 2, .pipeline = 2});
    if (c.rank() == 3) {
      c.barrier();
      _exit(9);
    }
    std::string of_thread = "none";
    std::jthread other;
    if (c.rank() == 1)
      other = std::jthread([&] {
        try {
          groups.state->barrier();  // 0 never comes
        } catch (const CommError&) {
          of_thread = "failed";
        }
      });
    try {
      c.barrier();
      std::int64_t got = 0;  // 1 waits for 3, which ends; 0 and 2 for all
      if (c.rank() == 1) groups.pipeline->receive(std::as_writable_bytes(std::span(&got, 1)), 1);
      c.barrier();
      return "done";
    } catch (const CommError& error) {
      if (other.joinable()) other.join();
      return fmt::format("{} {}", fmt::join(error.peers(), ","), of_thread);
    }
  });
  CHECK(outcomes[0].output == "3 none");
  CHECK(outcomes[1].output == "3 failed");
  CHECK(outcomes[2].output == "3 none");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30));
}
