#include "executor/comm/all_reduce_exchange.h"

#include <thread>

#include <catch2/catch.hpp>

#include "executor/comm/job.h"
#include "executor/comm/linear_model.h"
#include "executor/comm/thread_communicator.h"
#include "sim/step/buckets.h"

namespace {
using namespace reckon;

AllReduceOptions options_for(const LinearModel& model, OptimizerRule rule, bool overlap = true) {
  return {.optimizer = rule, .trained = model.all_trained(), .overlap = overlap};
}

/// Parameters after training on `ranks` threads; all ranks must agree to the bit.
std::vector<float> train_on_threads(int ranks, int batch, int steps, OptimizerRule rule,
                                    bool overlap = true) {
  std::vector<std::vector<float>> values(static_cast<std::size_t>(ranks));
  {
    auto communicators = make_thread_communicators(ranks, Seconds{20});
    std::vector<std::jthread> threads;
    for (auto& c : communicators)
      threads.emplace_back([&, mine = std::move(c)] {
        LinearModel model({3, 1, 40, 17});
        const auto exchange = make_all_reduce_exchange(*mine, options_for(model, rule, overlap));
        train(model, *exchange, mine->rank(), ranks, batch, steps, 0.01);
        values[std::size_t(mine->rank())] = model.values;
      });
  }
  for (const auto& of_rank : values) CHECK(of_rank == values.front());
  return values.front();
}
}  // namespace

TEST_CASE("the first bucket closes at 1 MiB, the others at 25 MiB, layers are not split") {
  BucketRule rule;
  CHECK_FALSE(rule.add(Bytes{1048575}));
  CHECK(rule.add(Bytes{1}));
  CHECK_FALSE(rule.add(Bytes{26214399}));
  CHECK(rule.add(Bytes{1e9}));
  CHECK_FALSE(rule.add(Bytes{1048576}));
}

TEST_CASE("four workers with batch B take the steps of one with 4B, to rounding") {
  for (const OptimizerRule rule : {OptimizerRule{SgdMomentum{}}, OptimizerRule{AdamW{}}}) {
    const auto four = train_on_threads(4, 2, 20, rule), one = train_on_threads(1, 8, 20, rule);
    double moved = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      CHECK(four[i] == Approx(one[i]).epsilon(2e-4).margin(2e-5));
      moved += std::abs(double(one[i]) - 0.01 * double(i % 7));
    }
    CHECK(moved > 1);  // it did train
  }
}

TEST_CASE("training repeats bit for bit, with and without overlap") {
  const auto once = train_on_threads(3, 2, 10, SgdMomentum{});
  CHECK(once == train_on_threads(3, 2, 10, SgdMomentum{}));
  CHECK(once == train_on_threads(3, 2, 10, SgdMomentum{}, false));
}

TEST_CASE("processes over Gloo end with the bits of threads") {
  need_gloo();
  const auto threads = train_on_threads(3, 2, 10, AdamW{});
  LinearModel expected({3, 1, 40, 17});
  expected.values = threads;
  for (const ProcessOutcome& outcome : run_gloo_job(3, [](Communicator&c, Membership&) {
         LinearModel model({3, 1, 40, 17});
         const auto exchange = make_all_reduce_exchange(c, options_for(model, AdamW{}));
         train(model, *exchange, c.rank(), 3, 2, 10, 0.01);
         return model.digest();
       }))
    CHECK(outcome.output == expected.digest());
}

TEST_CASE("every rank starts with the parameters of rank 0") {
  auto communicators = make_thread_communicators(2, Seconds{20});
  std::vector<std::jthread> threads;
  std::vector<float> first(2);
  for (auto& c : communicators)
    threads.emplace_back([&, mine = std::move(c)] {
      LinearModel model({4});
      model.values.assign(4, float(10 + mine->rank()));
      const auto exchange = make_all_reduce_exchange(*mine, options_for(model, SgdMomentum{}));
      exchange->start(model.view());
      first[std::size_t(mine->rank())] = model.values[3];
    });
  threads.clear();
  CHECK(first == std::vector<float>{10, 10});
}

TEST_CASE("buckets of several ranges and frozen gaps are summed where they belong") {
  constexpr std::size_t kLayer = 400'000;  // 1.6 MB: the first bucket is full after one layer
  auto communicators = make_thread_communicators(2, Seconds{20});
  std::vector<std::jthread> threads;
  std::vector<std::vector<float>> after(2);
  std::vector<double> sent(2);
  for (auto& c : communicators)
    threads.emplace_back([&, mine = std::move(c)] {
      std::vector<float> values(5 * kLayer, 1), gradients(5 * kLayer, float(1 + mine->rank()));
      AllReduceOptions options{.optimizer = SgdMomentum{.momentum = 0}};
      // Layers 0, 2 and 4 are trained; 1 and 3 are not and are never announced.
      for (const std::size_t layer : {0u, 2u, 4u})
        options.trained.push_back({layer * kLayer, kLayer, true});
      const auto exchange = make_all_reduce_exchange(*mine, options);
      exchange->start({values, gradients});
      for (const std::size_t layer : {4u, 2u, 0u})
        exchange->gradient_ready({layer * kLayer, kLayer});
      const ExchangeTimes times = exchange->finish_step(0, 1);
      sent[std::size_t(mine->rank())] = times.sent.v;
      for (std::size_t layer = 0; layer < 5; ++layer)
        after[std::size_t(mine->rank())].push_back(values[layer * kLayer + kLayer / 2]);
    });
  threads.clear();
  CHECK(sent[1] == 3.0 * kLayer * sizeof(float));  // 2 (n-1)/n = 1 for two ranks
  // 1 - (1 + 2) where trained.
  CHECK(after[0] == std::vector<float>{-2, 1, -2, 1, -2});
  CHECK(after[1] == after[0]);
}

TEST_CASE("the norm of the global gradient is clipped, not that of a rank's part") {
  auto communicators = make_thread_communicators(2, Seconds{20});
  std::vector<std::jthread> threads;
  std::vector<float> after(2);
  for (auto& c : communicators)
    threads.emplace_back([&, mine = std::move(c)] {
      std::vector<float> values{0, 0}, gradients{3, 4};  // sum over two ranks: (6, 8), norm 10
      AllReduceOptions options{
          .optimizer = SgdMomentum{.momentum = 0}, .trained = {{0, 2, true}}, .clip_norm = 5};
      const auto exchange = make_all_reduce_exchange(*mine, options);
      exchange->start({values, gradients});
      exchange->gradient_ready({0, 2});
      exchange->finish_step(0, 1);
      after[std::size_t(mine->rank())] = values[1];
    });
  threads.clear();
  CHECK(after == std::vector<float>{-4, -4});  // half of 8
}

TEST_CASE("a peer that dies in the middle of training is a CommError of finish_step") {
  auto communicators = make_thread_communicators(2, Seconds{20});
  std::string error;
  std::jthread other([&, mine = std::move(communicators[1])]() mutable {
    LinearModel model({4});
    const auto exchange = make_all_reduce_exchange(*mine, options_for(model, SgdMomentum{}));
    exchange->start(model.view());
    mine.reset();
  });
  LinearModel model({4});
  const auto exchange =
      make_all_reduce_exchange(*communicators[0], options_for(model, SgdMomentum{}));
  exchange->start(model.view());
  model.announce(*exchange);
  CHECK_THROWS_AS(exchange->finish_step(0, 0.1), CommError);
}
