#include <unistd.h>

#include <numeric>
#include <thread>

#include <catch2/catch.hpp>

#include "executor/comm/all_reduce_exchange.h"
#include "executor/comm/server_job.h"
#include "executor/comm/thread_communicator.h"

namespace {
using namespace reckon;

std::string all_reduce_digest(int workers, OptimizerRule rule, int steps) {
  std::string digest;
  auto communicators = make_thread_communicators(workers, Seconds{20});
  std::vector<std::jthread> threads;
  for (auto& c : communicators)
    threads.emplace_back([&, mine = std::move(c)] {
      LinearModel model(kLayers);
      const auto exchange =
          make_all_reduce_exchange(*mine, {.optimizer = rule, .trained = model.all_trained()});
      train(model, *exchange, mine->rank(), workers, 2, steps, 0.01);
      if (mine->rank() == 0) digest = model.digest();
    });
  threads.clear();
  return digest;
}
}  // namespace

TEST_CASE("keys are divided in balanced parts, each key once, weights make them unequal") {
  const std::vector<ParameterRange> layers{{0, 1000}, {1000, 1}, {1001, 99'999}};
  for (const std::vector<double>& weights :
       {std::vector<double>{1}, {1, 1, 1}, {3, 1}, {1, 2, 5, 0.5}}) {
    const ServerKeys keys = server_keys(layers, weights);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    CHECK(keys.count() == 101'000);
    std::vector<std::size_t> owned(weights.size());
    for (std::size_t g = 0; g < keys.groups.size(); ++g) {
      std::size_t next = keys.groups[g].first;
      for (int s = 0; s < keys.servers(); ++s) {
        const ParameterRange part = keys.part(g, s);
        CHECK(part.first == next);
        next += part.count;
        owned[std::size_t(s)] += part.count;
      }
      CHECK(next == keys.groups[g].first + keys.groups[g].count);
    }
    for (std::size_t s = 0; s < weights.size(); ++s)
      CHECK(double(owned[s]) ==
            Approx(101'000 * weights[s] / total).margin(double(keys.groups.size())));
  }
  // 16 groups of 101,000 keys hold 6312.5 each: the first layer is too small for one.
  CHECK(server_keys(layers, {1}).groups.size() == 1);
}

TEST_CASE("a synchronous parameter server gives the bits of an all-reduce") {
  for (const OptimizerRule rule : {OptimizerRule{SgdMomentum{}}, OptimizerRule{AdamW{}}})
    for (const auto& [workers, servers] : {std::pair{1, 1}, {3, 1}, {4, 2}}) {
      const std::string expected = all_reduce_digest(workers, rule, 8);
      const auto outcomes = run_ps_job(job_for(workers, servers, rule),
                                       [](int rank, Membership& m, const ServerJob& job) {
                                         return train_worker(rank, m, job, 8);
                                       });
      for (std::size_t i = 0; i < outcomes.size(); ++i) {
        INFO(workers << " workers, " << servers << " servers, process " << i << ": "
                     << outcomes[i].output);
        CHECK(outcomes[i].code == 0);
        if (int(i) < workers) CHECK(outcomes[i].output == expected);
      }
    }
}

TEST_CASE("phases of a step add up, and apart they give the same bits") {
  ServerJob job = job_for(2, 2, SgdMomentum{});
  job.phases_apart = true;
  const std::string expected = all_reduce_digest(2, SgdMomentum{}, 5);
  const auto outcomes = run_ps_job(job, [](int rank, Membership& m, const ServerJob& j) {
    LinearModel model(kLayers);
    const auto exchange = make_ps_exchange(m, "reckon", j, Seconds{20});
    exchange->start(model.view());
    for (int step = 0; step < 5; ++step) {
      model.forward_backward((step * 2 + rank) * 2, 2, 4);
      model.announce(*exchange);
      const ExchangeTimes t = exchange->finish_step(step, 0.01);
      const Seconds parts = t.push + t.wait + t.apply + t.pull;
      if (parts > t.communication * 1.05 + Seconds{1e-3})
        return std::string("parts exceed the whole");
      if (t.push <= Seconds{}) return std::string("a push without time");
      if (t.sent.v != double(model.count * sizeof(float))) return std::string("bytes");
      if (t.next_step != step + 1) return std::string("next step");
    }
    return model.digest();
  });
  CHECK(outcomes[0].output == expected);
  CHECK(outcomes[1].output == expected);
}

TEST_CASE("an asynchronous job ends with what its last worker pushed, too") {
  ServerJob job = job_for(2, 2, SgdMomentum{.momentum = 0});
  job.synchronous = false;
  constexpr int kSteps[] = {2, 5};
  constexpr double kRate = 0.5;
  const auto outcomes = run_ps_job(job, [&](int rank, Membership& m, const ServerJob& j) {
    std::vector<float> values(j.keys.count(), 0), gradients(j.keys.count(), 1);
    const auto exchange = make_ps_exchange(m, "reckon", j, Seconds{20});
    exchange->start({values, gradients});
    for (int step = 0; step < kSteps[rank]; ++step) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      exchange->gradient_ready({0, gradients.size()});
      exchange->finish_step(step, kRate);
    }
    exchange->end_steps();
    if (rank == 1) return std::string();
    while (!exchange->progress()[1].finished)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    exchange->take_final_values();
    return fmt::format("{} {}", values.front(), values.back());
  });
  // Each of 7 gradients of 1 stands for both workers: -7 * 2 * 0.5.
  INFO(outcomes[1].output);
  CHECK(outcomes[0].output == "-7 -7");
}

TEST_CASE(
    "optimizer state goes to a checkpoint and back: the resumed job ends with the same bits") {
  for (const OptimizerRule rule : {OptimizerRule{SgdMomentum{}}, OptimizerRule{AdamW{}}}) {
    const auto run = [&](bool resumed) {
      return run_ps_job(job_for(1, 2, rule), [&](int, Membership& m, const ServerJob& job) {
        LinearModel model(kLayers);
        const auto steps = [&](GradientExchange& exchange, int first, int end) {
          for (int step = first; step < end; ++step) {
            model.forward_backward(step, 1, 1);
            model.announce(exchange);
            exchange.finish_step(step, 0.01);
          }
        };
        const auto exchange = make_ps_exchange(m, "reckon", job, Seconds{20});
        if (!resumed) {
          exchange->start(model.view());
          steps(*exchange, 0, 8);
          return model.digest();
        }
        // Steps 0-4 on this process with the same code as the servers': the checkpoint.
        auto alone = make_thread_communicators(1);
        const auto before = make_all_reduce_exchange(
            *alone[0], {.optimizer = rule, .trained = model.all_trained()});
        before->start(model.view());
        steps(*before, 0, 5);
        exchange->start(model.view());
        const auto saved = before->optimizer_state();
        const auto state = exchange->optimizer_state();
        for (std::size_t b = 0; b < state.size(); ++b)
          std::ranges::copy(saved[b], state[b].begin());
        exchange->restore_optimizer_state();
        steps(*exchange, 5, 8);
        return model.digest();
      });
    };
    const auto whole = run(false), resumed = run(true);
    INFO(resumed[0].output);
    CHECK(resumed[0].code == 0);
    CHECK(whole[0].output == resumed[0].output);
  }
}

TEST_CASE("with a staleness bound no worker leads by more, and the bound is used") {
  constexpr int kBound = 2, kSteps = 30;
  ServerJob job = job_for(3, 2, SgdMomentum{.momentum = 0});
  job.synchronous = false;
  job.staleness = kBound;
  const auto outcomes = run_ps_job(job, [](int rank, Membership& m, const ServerJob& j) {
    LinearModel model(kLayers);
    const auto exchange = make_ps_exchange(m, "reckon", j, Seconds{20});
    exchange->start(model.view());
    for (int step = 0; step < kSteps; ++step) {
      if (rank == 2) usleep(3000);  // the slowest
      model.forward_backward((step * 3 + rank) * 2, 2, 6);
      model.announce(*exchange);
      exchange->finish_step(step, 0.001);
    }
    return std::string();
  });
  for (const ProcessOutcome& outcome : outcomes) CHECK(outcome.code == 0);
  for (const std::size_t server : {3u, 4u}) {
    INFO(outcomes[server].output);
    // Every worker's every step is applied: 3 workers, 30 steps, all groups.
    CHECK_THAT(outcomes[server].output,
               Catch::StartsWith(fmt::format("{} 0 ", 3 * kSteps * int(job.keys.groups.size()))));
    CHECK_THAT(outcomes[server].output, Catch::EndsWith(fmt::format(" {}", kBound)));
  }
}

TEST_CASE("with backup workers all stop behind the same step when one of them is asked to") {
  ServerJob job = job_for(3, 2, SgdMomentum{.momentum = 0});
  job.backup_workers = 1;
  const auto outcomes = run_ps_job(job, [](int rank, Membership& m, const ServerJob& j) {
    LinearModel model(kLayers);
    const auto exchange = make_ps_exchange(m, "reckon", j, Seconds{20});
    exchange->start(model.view());
    std::int64_t step = 0;
    while (!exchange->stop_step() || step < *exchange->stop_step()) {
      if (rank == 2) usleep(10'000);
      if (rank == 1 && step >= 5) exchange->request_stop();
      model.forward_backward((step * 3 + rank) * 2, 2, 6);
      model.announce(*exchange);
      step = exchange->finish_step(step, 0.001).next_step;
    }
    return std::to_string(*exchange->stop_step());
  });
  for (const ProcessOutcome& outcome : outcomes) {
    INFO(outcome.output);
    CHECK(outcome.code == 0);
  }
  CHECK(outcomes[0].output == outcomes[1].output);
  CHECK(outcomes[2].output == outcomes[1].output);
}

TEST_CASE("backup workers: a slow worker does not hold the others up, and all come to the end") {
  constexpr int kSteps = 20;
  ServerJob job = job_for(3, 2, SgdMomentum{.momentum = 0});
  job.backup_workers = 1;
  const auto outcomes = run_ps_job(job, [](int rank, Membership& m, const ServerJob& j) {
    LinearModel model(kLayers);
    const auto exchange = make_ps_exchange(m, "reckon", j, Seconds{20});
    exchange->start(model.view());
    int taken = 0;
    for (std::int64_t step = 0; step < kSteps; ++taken) {
      if (rank == 2) usleep(10'000);
      model.forward_backward((step * 3 + rank) * 2, 2, 6);
      model.announce(*exchange);
      step = exchange->finish_step(step, 0.001).next_step;
    }
    return std::to_string(taken);
  });
  for (const ProcessOutcome& outcome : outcomes) {
    INFO(outcome.output);
    CHECK(outcome.code == 0);
  }
  CHECK(std::stoi(outcomes[2].output) < kSteps);  // it jumped over steps of the others
}
