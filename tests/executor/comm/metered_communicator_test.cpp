#include "executor/comm/metered_communicator.h"

#include <array>
#include <latch>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "executor/comm/thread_communicator.h"

using namespace reckon;

TEST_CASE("a metered communicator hands calls on and counts what a rank sends") {
  constexpr int kRanks = 4;
  auto communicators = make_thread_communicators(kRanks, Seconds{20});
  std::array<CommunicationTaken, kRanks> taken;
  std::array<std::vector<float>, kRanks> sums;
  std::latch others(kRanks - 1);
  std::vector<std::jthread> threads;
  for (auto& c : communicators)
    threads.emplace_back([&, mine = std::move(c)] {
      const auto rank = static_cast<std::size_t>(mine->rank());
      const auto metered = make_metered_communicator(*mine, taken[rank]);
      std::vector<float> one(8, float(rank)), all(32), received(32);
      metered->all_reduce(std::span(one));                            // 8 x 4 B x 2 x 3/4 = 48 B
      metered->all_gather(one, all);                                  // 8 x 4 B x 3 = 96 B
      metered->reduce_scatter(all, one);                              // 96 B
      metered->all_to_all(all, received);                             // 32 x 4 B x 3/4 = 96 B
      metered->broadcast(std::as_writable_bytes(std::span(all)), 2);  // 3 x 128 B of rank 2
      const auto bytes = std::as_writable_bytes(std::span(one));
      if (rank == 0) metered->send(bytes, 1);  // 32 B
      if (rank == 1) metered->receive(bytes, 0);
      if (rank > 0) {
        others.count_down();
      } else {
        others.wait();
        std::this_thread::sleep_for(Seconds{0.2});
      }
      metered->barrier();
      sums[rank] = std::move(one);
    });
  threads.clear();
  // The sum of ranks, gathered and summed over ranks: 6 x 4.
  for (const auto& sum : sums) CHECK(sum == std::vector<float>(8, 24));
  CHECK(taken[0].sent.v == 48 + 3 * 96 + 32);
  CHECK(taken[1].sent.v == 48 + 3 * 96);
  CHECK(taken[2].sent.v == 48 + 3 * 96 + 3 * 128);
  // Waits are in it: the first rank came last.
  for (const std::size_t rank : {1u, 2u, 3u}) CHECK(taken[rank].time > Seconds{0.02});
}
