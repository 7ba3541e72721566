#include <catch2/catch.hpp>
#include <cstring>
#include <thread>

#include "executor/comm/thread_communicator.h"
#include "executor/train/layers/expert_traffic.h"
#include "executor/train/parallel_cases.h"
#include "executor/train/parallel_networks.h"

using namespace reckon;
using test::check_pass;
using test::check_training;

namespace {

Layout expert_layout(int data, int expert, int tensor = 1, bool sequence_parallel = false) {
  Layout layout;
  layout.data = data;
  layout.expert = expert;
  layout.tensor = tensor;
  layout.sequence_parallel = sequence_parallel;
  return layout;
}

}  // namespace

TEST_CASE("ranks that share experts out have the loss and the gradients of one rank") {
  for (const bool gate : {false, true}) {
    const ModelGraph model = test::parallel_mixture(gate);
    check_pass(model, expert_layout(2, 2));
    check_pass(model, expert_layout(4, 2));
    check_pass(model, expert_layout(4, 4));
    check_pass(model, expert_layout(2, 2), Recompute::full);
    check_pass(model, expert_layout(2, 2, 2));
    check_pass(model, expert_layout(2, 2, 2, true));
  }
}

TEST_CASE("ten steps of ranks that share experts out are those of one rank") {
  const ModelGraph model = test::parallel_mixture(false);
  check_training(model, expert_layout(2, 2), test::kSgd, test::kSgdBound);
  check_training(model, expert_layout(2, 2), test::kAdamW, test::kAdamWBound);
  check_training(model, expert_layout(4, 2), test::kSgd, test::kSgdBound);
}

// Three ranks with two experts each: all of one rank's tokens go to one expert, another's to none
// of it, the third has no tokens.
TEST_CASE(
    "rows arrive sorted by expert and rank, however unevenly they are chosen, and come back") {
  constexpr int kRanks = 3;
  constexpr std::int64_t kExperts = 6, kWidth = 2;
  auto communicators = make_thread_communicators(kRanks, Seconds{20});
  const std::vector<std::vector<std::vector<ExpertRow>>> samples{
      {{{0, 1}, {1, 1}, {2, 1}}, {{0, 1}}}, {{{0, 0}, {1, 3}, {0, 5}, {1, 5}}}, {}};
  std::vector<std::vector<double>> arrived(kRanks), returned(kRanks);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kRanks; ++rank)
      threads.emplace_back([&, rank] {
        const auto r = static_cast<std::size_t>(rank);
        Communicator& group = *communicators[r];
        ExpertTraffic traffic;
        traffic.plan(group, samples[r], kExperts);
        std::vector<double> own;
        for (std::int64_t i = 0; i < traffic.own_rows(); ++i) {
          own.push_back(100 * rank + double(i));
          own.push_back(-own.back());
        }
        arrived[r].resize(static_cast<std::size_t>(traffic.arrived_rows() * kWidth));
        returned[r].resize(own.size());
        traffic.to_experts<double>(group, kWidth, own.data(), arrived[r].data());
        for (double& x : arrived[r]) x *= 2;
        traffic.from_experts<double>(group, kWidth, arrived[r].data(), returned[r].data());
        for (double& x : arrived[r]) x /= 2;
        for (std::size_t i = 0; i < own.size(); ++i) returned[r][i] -= 2 * own[i];
      });
  }
  // Experts 0 and 1: rank 1's first row, then all four of rank 0 in the order of its samples.
  CHECK(arrived[0] == std::vector<double>{100, -100, 0, 0, 1, -1, 2, -2, 3, -3});
  CHECK(arrived[1] == std::vector<double>{101, -101});             // expert 3
  CHECK(arrived[2] == std::vector<double>{102, -102, 103, -103});  // expert 5
  CHECK(returned[0] == std::vector<double>(8));
  CHECK(returned[1] == std::vector<double>(8));
  CHECK(returned[2].empty());
}
