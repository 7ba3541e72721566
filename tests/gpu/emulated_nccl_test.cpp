#include <numeric>
#include <thread>

#include "executor/comm/thread_communicator.h"
#include "executor/cuda/exchange/all_reduce.h"
#include "executor/cuda/exchange/nccl_communicator.h"
#include "executor/cuda/memory/buffers.h"
#include "executor/cuda/memory/parameters.h"
#include "gpu/device_layouts.h"

// Our side of NCCL, over the emulator's: whether the ranks' calls match, and what becomes of ranks
// whose peer is lost. Of NCCL itself nccl_test.cpp asks, where it is.
using namespace reckon;
using namespace reckon::test;

namespace {

/// In place of Membership: a rank is lost when the test says so.
class Losses {
 public:
  std::function<void(std::function<void()>)> watch() {
    return [this](std::function<void()> act) {
      const std::lock_guard lock(mutex_);
      acts_.push_back(std::move(act));
    };
  }
  static CommError error(const std::string& what) {
    return CommError(what + ": rank 2 is lost", {2});
  }
  void lose() {
    const std::lock_guard lock(mutex_);
    for (const auto& act : acts_) act();
  }

 private:
  std::mutex mutex_;
  std::vector<std::function<void()>> acts_;
};

/// `body` of each rank in a thread of its own.
template <class Body>
void on_ranks(int ranks, const Body& body) {
  auto control = make_thread_communicators(ranks, Seconds{60});
  std::vector<std::string> problems(control.size());
  {
    std::vector<std::jthread> threads;
    for (auto& mine : control)
      threads.emplace_back([&, mine = mine.get()] {
        try {
          body(*mine);
        } catch (const std::exception& error) {
          problems[static_cast<std::size_t>(mine->rank())] = error.what();
        }
      });
  }
  for (const std::string& problem : problems) CHECK(problem.empty());
}

}  // namespace

TEST_CASE("NCCL's collectives of several ranks bring each what it is to have") {
  constexpr int kRanks = 3;
  constexpr std::size_t kCount = 1025;
  on_ranks(kRanks, [](Communicator& control) {
    const auto nccl = cuda::make_nccl_communicator(control, 0);
    const int rank = nccl->rank();
    std::vector<std::int64_t> sum(kCount, rank + 1);
    nccl->all_reduce(std::span(sum));
    std::vector<float> mine(kCount, float(rank)), all(kRanks * kCount);
    nccl->all_gather(mine, all);
    std::vector<float> parts(kRanks * kCount, float(rank)), part(kCount);
    nccl->reduce_scatter(parts, part);
    std::vector<float> from(kRanks), to(kRanks);
    std::iota(from.begin(), from.end(), float(10 * rank));
    nccl->all_to_all(from, to);
    std::vector<std::byte> said(7, std::byte(rank));
    nccl->broadcast(said, 1);
    nccl->barrier();
    const bool right = sum == std::vector<std::int64_t>(kCount, 6) && all[kCount] == 1 &&
                       all.back() == 2 && part == std::vector<float>(kCount, 3) &&
                       to == std::vector<float>{float(rank), float(10 + rank), float(20 + rank)} &&
                       said == std::vector<std::byte>(7, std::byte(1));
    if (!right) throw std::runtime_error("wrong on rank " + std::to_string(rank));
  });
}

TEST_CASE("layouts over NCCL take the steps that they take through their hosts, bit for bit") {
  const auto over_nccl = [](const PlannedWorkload& job) {
    return train_under(job, 3, {}, LossScale::kFirst, [] {
      return cuda::make_device_layouts(
          cuda::DevicePrecision::fp32, nullptr,
          [](Communicator& hosts) { return cuda::make_nccl_communicator(hosts, 0); });
    });
  };
  const auto job = small_job(tiny_gpt(), Optimizer::sgd_momentum, 0.1, 8);
  for (const Layout& layout :
       {Layout{.data = 2}, Layout{.data = 2, .zero_stage = 1}, Layout{.data = 2, .zero_stage = 3},
        Layout{.data = 1, .tensor = 2}, Layout{.data = 1, .context = 2},
        Layout{.data = 2, .offload_optimizer = true}}) {
    const auto cut = under(job, layout, 4);
    check_same(over_nccl(cut), on_devices(cut, 3));
  }
}

TEST_CASE("a lost rank ends what waits for NCCL, and no sum of that step is in the weights") {
  constexpr int kRanks = 3;
  ParameterLayout layout;
  layout.slots = {{.first = 0, .count = 100}};
  layout.count = 100;
  const std::size_t padded = cuda::device_layout(layout).count;
  Losses losses;
  std::atomic<int> waiting{0}, told{0};
  on_ranks(kRanks, [&](Communicator& control) {
    cuda::PeerLoss loss(losses.watch(), Losses::error, 0);
    const auto nccl = cuda::make_nccl_communicator(control, 0, &loss);
    const bool lost = control.rank() == 2;
    std::vector<float> values(padded, 1), gradients(padded, 1);
    const auto exchange = cuda::make_device_exchange(
        nccl.get(),
        {.optimizer = SgdMomentum{.learning_rate = 0.5F, .momentum = 0.9F}, .trained = {}}, layout,
        nullptr);
    exchange->start({.values = values, .gradients = gradients});
    exchange->gradient_ready({0, padded});
    exchange->finish_step(0, 0.5);
    const std::vector<float> before = values;
    if (before[0] == 1) throw std::runtime_error("the first step changed nothing");
    control.barrier();
    if (lost) {
      while (waiting < 2) std::this_thread::yield();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      losses.lose();
      while (told < 2) std::this_thread::yield();
      return;
    }
    std::string what;
    try {
      ++waiting;
      exchange->gradient_ready({0, padded});
      exchange->finish_step(1, 0.5);
    } catch (const CommError& error) {
      what = error.what();
    }
    ++told;
    if (!what.starts_with("NCCL all-reduce") || !what.ends_with("rank 2 is lost"))
      throw std::runtime_error("no loss, but: " + what);
    if (values != before) throw std::runtime_error("a sum of two of three ranks was taken");
    std::string again;
    try {
      nccl->barrier();
    } catch (const CommError& error) {
      again = error.what();
    }
    if (again.empty()) throw std::runtime_error("a broken communicator was used again");
  });
}

TEST_CASE("who comes to meet over NCCL is freed when another is lost that has not come") {
  Losses losses;
  std::atomic<bool> meets{false};
  on_ranks(2, [&](Communicator& control) {
    cuda::PeerLoss loss(losses.watch(), Losses::error, 0);
    if (control.rank() == 1) {
      std::array<std::byte, 128> id{};
      // It is there for what goes before: the ranks' seats and NCCL's id.
      for (int r = 0; r < 2; ++r) {
        std::array<std::byte, 80> seat{};
        control.broadcast(seat, r);
      }
      control.introduce(id, 0);
      meets = true;
      losses.lose();
      return;
    }
    std::string what;
    try {
      cuda::make_nccl_communicator(control, 0, &loss);
    } catch (const CommError& error) {
      what = error.what();
    }
    if (what.empty() || !meets) throw std::runtime_error("it met nobody: " + what);
  });
}
