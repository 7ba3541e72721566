#include <cmath>
#include <numeric>
#include <thread>

#include <catch2/catch.hpp>

#include "executor/comm/all_reduce_exchange.h"
#include "executor/comm/server_job.h"
#include "executor/comm/thread_communicator.h"

// Embedding tables on parameter servers: of each step the touched rows alone travel.
namespace {
using namespace reckon;

/// 5 weights, a table of 37 rows of 4, one of 3 rows of 2, and 7 weights.
constexpr std::size_t kRows = 37, kWidth = 4, kSmallRows = 3, kSmallWidth = 2;
constexpr std::size_t kTable = 5, kSmall = kTable + kRows * kWidth,
                      kEnd = kSmall + kSmallRows * kSmallWidth, kCount = kEnd + 7;

ServerJob table_job(int workers, int servers, OptimizerRule rule, RowPartition partition) {
  const std::vector<ParameterRange> layers{
      {0, kTable}, {kTable, kSmall - kTable}, {kSmall, kEnd - kSmall}, {kEnd, kCount - kEnd}};
  const std::vector<TableKeys> tables{
      {}, {kRows, kWidth, partition}, {kSmallRows, kSmallWidth, partition}, {}};
  return {.keys = server_keys(layers, std::vector<double>(std::size_t(servers), 1), tables),
          .workers = workers,
          .optimizer = rule,
          .trained = {{0, kTable, false}, {kTable, kCount - kTable, true}}};
}

/// Ids of a worker's step, some of them twice; low ones more often.
std::vector<std::int64_t> ids_of(int worker, int step, std::size_t rows) {
  std::vector<std::int64_t> ids;
  std::uint64_t state = std::uint64_t(worker * 7919 + step * 104'729 + 17);
  for (int k = 0; k < 6; ++k) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double u = double(state >> 40) / double(1 << 24);
    ids.push_back(std::int64_t(double(rows) * u * u));
  }
  return ids;
}

/// A worker's weights and what it does with them: gradients follow from the values that it reads.
struct Learner {
  std::vector<float> values = std::vector<float>(kCount), gradients = std::vector<float>(kCount);
  explicit Learner(float start) {
    for (std::size_t k = 0; k < kCount; ++k) values[k] = start + 0.01F * float(k % 29);
  }
  void step(GradientExchange& exchange, int worker, int workers, int step) {
    std::ranges::fill(gradients, 0.0F);
    const auto read = [&](std::size_t first, std::size_t rows, std::size_t width) {
      const auto ids = ids_of(worker, step, rows);
      // In two micro-batches, which name some rows both.
      exchange.need_rows(first, std::span(ids).first(4));
      exchange.need_rows(first, std::span(ids).subspan(2));
      for (const std::int64_t id : ids)
        for (std::size_t j = 0; j < width; ++j) {
          const std::size_t k = first + std::size_t(id) * width + j;
          gradients[k] += (std::sin(values[k] * 3) + 0.1F * values[j]) / float(workers);
        }
    };
    read(kTable, kRows, kWidth);
    read(kSmall, kSmallRows, kSmallWidth);
    for (std::size_t k = 0; k < kTable; ++k) gradients[k] = values[k] / float(workers);
    for (std::size_t k = kEnd; k < kCount; ++k) gradients[k] = -values[k] / float(workers);
    exchange.gradient_ready({kEnd, kCount - kEnd});
    exchange.gradient_ready({kSmall, kEnd - kSmall});
    exchange.gradient_ready({kTable, kSmall - kTable});
    exchange.gradient_ready({0, kTable});
  }
  std::string digest() const {
    std::string text;
    for (const float v : values) text += fmt::format("{:a} ", v);
    return text;
  }
};

std::string dense_digest(int workers, OptimizerRule rule, int steps) {
  std::string digest;
  auto communicators = make_thread_communicators(workers, Seconds{20});
  std::vector<std::jthread> threads;
  for (auto& c : communicators)
    threads.emplace_back([&, mine = std::move(c)] {
      Learner learner(1);
      const auto exchange = make_all_reduce_exchange(
          *mine,
          {.optimizer = rule, .trained = {{0, kTable, false}, {kTable, kCount - kTable, true}}});
      exchange->start({learner.values, learner.gradients});
      for (int s = 0; s < steps; ++s) {
        learner.step(*exchange, mine->rank(), workers, s);
        exchange->finish_step(s, 0.05);
      }
      if (mine->rank() == 0) digest = learner.digest();
    });
  threads.clear();
  return digest;
}

/// Different ids of a step.
double distinct(int worker, int step, std::size_t rows) {
  auto ids = ids_of(worker, step, rows);
  std::ranges::sort(ids);
  return double(std::unique(ids.begin(), ids.end()) - ids.begin());
}

/// Bytes that a worker sends in a step, by the forecast's rule (sim/step/server_placement.h): all
/// dense gradients, of each different row its gradient and its id, and the id once more before.
double forecast_sent(int worker, int step) {
  const double dense = 4.0 * double(kTable + kCount - kEnd);
  return dense + distinct(worker, step, kRows) * (4.0 * kWidth + 2 * kRowId.v) +
         distinct(worker, step, kSmallRows) * (4.0 * kSmallWidth + 2 * kRowId.v);
}

}  // namespace

TEST_CASE("tables are groups of their own; their rows go to servers as the forecast says") {
  for (const RowPartition rule : {RowPartition::mod, RowPartition::div}) {
    const ServerJob job = table_job(1, 3, SgdMomentum{}, rule);
    REQUIRE(job.keys.groups.size() == 4);
    CHECK(job.keys.is_table(1));
    CHECK(job.keys.is_table(2));
    CHECK_FALSE(job.keys.is_table(3));
    std::vector<float> all(kCount), back(kCount);
    for (std::size_t k = 0; k < kCount; ++k) all[k] = float(k);
    const RowParts parts(kRows, 3, rule);
    for (std::size_t g = 0; g < 4; ++g)
      for (int s = 0; s < 3; ++s) {
        const std::vector<float> mine = job.keys.gather(g, s, all);
        CHECK(mine.size() == job.keys.count_on(g, s));
        job.keys.scatter(g, s, mine, back);
        if (g != 1) continue;
        for (std::size_t k = 0; k < mine.size(); k += kWidth)
          CHECK(parts.part_of(std::int64_t((std::size_t(mine[k]) - kTable) / kWidth)) == s);
      }
    CHECK(back == all);
  }
}

TEST_CASE("without momentum and decay rows alone give the bits of a dense all-reduce") {
  const OptimizerRule sgd = SgdMomentum{.momentum = 0};
  for (const auto& [workers, servers] : {std::pair{1, 1}, {3, 1}, {4, 2}, {2, 5}}) {
    const std::string expected = dense_digest(workers, sgd, 9);
    for (const RowPartition rule : {RowPartition::mod, RowPartition::div}) {
      const auto outcomes =
          run_ps_job(table_job(workers, servers, sgd, rule),
                     [](int rank, Membership& m, const ServerJob& job) -> std::string {
                       Learner learner(rank == 0 ? 1.0F : 77.0F);
                       const auto exchange = make_ps_exchange(m, "reckon", job, Seconds{20});
                       exchange->start({learner.values, learner.gradients});
                       for (int s = 0; s < 9; ++s) {
                         learner.step(*exchange, rank, job.workers, s);
                         const ExchangeTimes t = exchange->finish_step(s, 0.05);
                         if (t.sent.v != forecast_sent(rank, s))
                           return fmt::format("{} bytes, not {}", t.sent.v, forecast_sent(rank, s));
                       }
                       exchange->fetch_values();
                       return learner.digest();
                     });
      for (int w = 0; w < workers; ++w) {
        INFO(workers << " workers, " << servers << " servers: " << outcomes[std::size_t(w)].output);
        CHECK(outcomes[std::size_t(w)].output == expected);
      }
    }
  }
}

TEST_CASE("a row without a gradient stays as it is, with its momentum") {
  // Both rules are dense where every row is named: then the bits are those of a dense sum again.
  const auto run = [](const OptimizerRule& rule, bool names_all) {
    return run_ps_job(table_job(1, 2, rule, RowPartition::mod),
                      [&](int, Membership& m, const ServerJob& job) {
                        Learner learner(1);
                        const auto exchange = make_ps_exchange(m, "reckon", job, Seconds{20});
                        exchange->start({learner.values, learner.gradients});
                        std::vector<std::int64_t> all(kRows);
                        std::iota(all.begin(), all.end(), 0);
                        for (int s = 0; s < 6; ++s) {
                          if (names_all) {
                            exchange->need_rows(kTable, all);
                            exchange->need_rows(kSmall, std::span(all).first(kSmallRows));
                          }
                          learner.step(*exchange, 0, 1, s);
                          exchange->finish_step(s, 0.05);
                        }
                        exchange->fetch_values();
                        return learner.digest();
                      })[0]
        .output;
  };
  for (const OptimizerRule rule : {OptimizerRule{SgdMomentum{}}, OptimizerRule{AdamW{}}}) {
    const std::string dense = dense_digest(1, rule, 6);
    CHECK(run(rule, true) == dense);
    CHECK(run(rule, false) != dense);
  }
}

TEST_CASE("servers' optimizer state of tables goes to a checkpoint and back") {
  const OptimizerRule rule = AdamW{};
  const auto run = [&](bool resumed) {
    return run_ps_job(table_job(1, 2, rule, RowPartition::mod),
                      [&](int, Membership& m, const ServerJob& job) {
                        Learner learner(1);
                        const auto exchange = make_ps_exchange(m, "reckon", job, Seconds{20});
                        exchange->start({learner.values, learner.gradients});
                        std::vector<std::vector<float>> saved;
                        for (int s = 0; s < 8; ++s) {
                          if (resumed && s == 4) {  // state is taken, spoilt and put back
                            const auto state = exchange->optimizer_state();
                            for (const auto buffer : state)
                              saved.emplace_back(buffer.begin(), buffer.end());
                            for (const auto buffer : state) std::ranges::fill(buffer, 9.0F);
                            exchange->restore_optimizer_state();
                            const auto spoilt = exchange->optimizer_state();
                            for (std::size_t b = 0; b < spoilt.size(); ++b) {
                              if (spoilt[b][kTable + 5] != 9.0F) return std::string("not put");
                              std::ranges::copy(saved[b], spoilt[b].begin());
                            }
                            exchange->restore_optimizer_state();
                          }
                          learner.step(*exchange, 0, 1, s);
                          exchange->finish_step(s, 0.05);
                        }
                        exchange->fetch_values();
                        return learner.digest();
                      })[0]
        .output;
  };
  CHECK(run(true) == run(false));
}

TEST_CASE("asynchronous rows: all updates arrive, and the measured delay is about W - 1") {
  ServerJob job = table_job(3, 2, SgdMomentum{.momentum = 0}, RowPartition::mod);
  job.synchronous = false;
  constexpr int kSteps = 40;
  const auto outcomes = run_ps_job(job, [](int rank, Membership& m, const ServerJob& j) {
    Learner learner(1);
    const auto exchange = make_ps_exchange(m, "reckon", j, Seconds{20});
    exchange->start({learner.values, learner.gradients});
    double delay = 0;
    for (int s = 0; s < kSteps; ++s) {
      learner.step(*exchange, rank, 3, s);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      const double of_step = exchange->finish_step(s, 0.01).delay;
      if (s >= 5) delay += of_step / (kSteps - 5);
    }
    exchange->end_steps();
    return fmt::format("{}", delay);
  });
  double mean = 0;
  for (int w = 0; w < 3; ++w) {
    INFO(outcomes[std::size_t(w)].output);
    REQUIRE(outcomes[std::size_t(w)].code == 0);
    mean += std::stod(outcomes[std::size_t(w)].output) / 3;
  }
  CHECK(mean > 1);
  CHECK(mean < 2.5);
  CHECK_THAT(outcomes[3].output,
             Catch::StartsWith(fmt::format("{} 0 ", 3 * kSteps * int(job.keys.groups.size()))));
}
