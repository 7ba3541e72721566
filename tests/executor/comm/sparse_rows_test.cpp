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
/// A step names at most so many rows of a table.
constexpr std::size_t kNamed = 6;

/// Where a worker has its weights and the rows of its step.
struct Places {
  std::size_t table = kTable, small = kTable + kNamed * kWidth,
              end = small + kSmallRows * kSmallWidth, count = end + 7;
};
/// Where one that has whole tables has them.
constexpr Places kWhole{kTable, kSmall, kEnd, kCount};
/// Where one that pulls rows has them.
constexpr Places kPulled{};

ServerJob table_job(int workers, int servers, OptimizerRule rule, RowPartition partition,
                    const Places& at = kPulled) {
  const std::vector<ParameterRange> layers{{0, at.table},
                                           {at.table, at.small - at.table},
                                           {at.small, at.end - at.small},
                                           {at.end, at.count - at.end}};
  const std::vector<TableKeys> tables{
      {}, {kRows, kWidth, partition}, {kSmallRows, kSmallWidth, partition}, {}};
  return {.keys = server_keys(layers, std::vector<double>(std::size_t(servers), 1), tables),
          .workers = workers,
          .optimizer = rule,
          .trained = {{0, at.table, false}, {at.table, at.count - at.table, true}}};
}

/// Ids of a worker's step, some of them twice; low ones more often.
std::vector<std::int64_t> ids_of(int worker, int step, std::size_t rows) {
  std::vector<std::int64_t> ids;
  std::uint64_t state = std::uint64_t(worker * 7919 + step * 104'729 + 17);
  for (std::size_t k = 0; k < kNamed; ++k) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const double u = double(state >> 40) / double(1 << 24);
    ids.push_back(std::int64_t(double(rows) * u * u));
  }
  return ids;
}

/// First weights: those of a flat buffer with whole tables.
float first_weight(float start, std::size_t k) { return start + 0.01F * float(k % 29); }

/// A worker's weights and what it does with them: gradients follow from the values that it reads.
struct Learner {
  Places at;
  float start;
  std::vector<float> values = std::vector<float>(at.count),
                     gradients = std::vector<float>(at.count);

  Learner(float first, const Places& places) : at(places), start(first) {
    for (std::size_t k = 0; k < at.count; ++k)
      values[k] = first_weight(first, k < at.end ? k : k - at.end + kEnd);
  }
  void begin(GradientExchange& exchange) {
    exchange.draw_tables_by([this](std::size_t table, std::span<float> all) {
      for (std::size_t k = 0; k < all.size(); ++k)
        all[k] = first_weight(start, (table == at.table ? kTable : kSmall) + k);
    });
    exchange.start({values, gradients});
  }
  /// In the table's room; of a whole table the row itself.
  std::vector<std::size_t> places_of(GradientExchange& exchange, std::size_t first,
                                     std::span<const std::int64_t> ids) const {
    if (!exchange.pulls_rows()) return {ids.begin(), ids.end()};
    // In two micro-batches, which name some rows both.
    auto places = exchange.need_rows(first, ids.first(4));
    const auto rest = exchange.need_rows(first, ids.subspan(2));
    places.insert(places.end(), rest.begin() + 2, rest.end());
    return places;
  }
  void step(GradientExchange& exchange, int worker, int workers, int step) {
    std::ranges::fill(gradients, 0.0F);
    const auto read = [&](std::size_t first, std::size_t rows, std::size_t width) {
      const auto ids = ids_of(worker, step, rows);
      for (const std::size_t place : places_of(exchange, first, ids))
        for (std::size_t j = 0; j < width; ++j) {
          const std::size_t k = first + place * width + j;
          gradients[k] += (std::sin(values[k] * 3) + 0.1F * values[j]) / float(workers);
        }
    };
    read(at.table, kRows, kWidth);
    read(at.small, kSmallRows, kSmallWidth);
    for (std::size_t k = 0; k < at.table; ++k) gradients[k] = values[k] / float(workers);
    for (std::size_t k = at.end; k < at.count; ++k) gradients[k] = -values[k] / float(workers);
    exchange.gradient_ready({at.end, at.count - at.end});
    exchange.gradient_ready({at.small, at.end - at.small});
    exchange.gradient_ready({at.table, at.small - at.table});
    exchange.gradient_ready({0, at.table});
  }
  /// Of all weights, whole tables among them.
  std::string digest(GradientExchange& exchange) const {
    std::vector<float> all = values;
    if (exchange.pulls_rows()) {
      all.assign(values.begin(), values.begin() + std::ptrdiff_t(at.table));
      for (const WholeTable& table : exchange.fetch_tables(false))
        all.insert(all.end(), table.values.begin(), table.values.end());
      all.insert(all.end(), values.begin() + std::ptrdiff_t(at.end), values.end());
    }
    std::string text;
    for (const float v : all) text += fmt::format("{:a} ", v);
    return text;
  }
};

std::string dense_digest(int workers, OptimizerRule rule, int steps) {
  std::string digest;
  auto communicators = make_thread_communicators(workers, Seconds{20});
  std::vector<std::jthread> threads;
  for (auto& c : communicators)
    threads.emplace_back([&, mine = std::move(c)] {
      Learner learner(1, kWhole);
      const auto exchange = make_all_reduce_exchange(
          *mine,
          {.optimizer = rule, .trained = {{0, kTable, false}, {kTable, kCount - kTable, true}}});
      learner.begin(*exchange);
      for (int s = 0; s < steps; ++s) {
        learner.step(*exchange, mine->rank(), workers, s);
        exchange->finish_step(s, 0.05);
      }
      if (mine->rank() == 0) digest = learner.digest(*exchange);
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

/// Bytes that a worker sends in a step, by the forecast's rule (sim/step/servers/placement.h): all
/// dense gradients, of each different row its gradient and its id, and the id once more before.
double forecast_sent(int worker, int step) {
  const double dense = 4.0 * double(kTable + kCount - kEnd);
  return dense + distinct(worker, step, kRows) * (4.0 * kWidth + 2 * kRowId.v) +
         distinct(worker, step, kSmallRows) * (4.0 * kSmallWidth + 2 * kRowId.v);
}

}  // namespace

TEST_CASE("tables are groups of their own, their rows go to servers as the forecast says") {
  for (const RowPartition rule : {RowPartition::mod, RowPartition::div}) {
    const ServerJob job = table_job(1, 3, SgdMomentum{}, rule);
    REQUIRE(job.keys.groups.size() == 4);
    CHECK(job.keys.is_table(1));
    CHECK(job.keys.is_table(2));
    CHECK_FALSE(job.keys.is_table(3));
    const RowParts parts(kRows, 3, rule);
    for (std::size_t g = 0; g < 4; ++g) {
      const std::size_t size = g == 1   ? kRows * kWidth
                               : g == 2 ? kSmallRows * kSmallWidth
                                        : job.keys.count();
      std::vector<float> all(size), back(size);
      std::iota(all.begin(), all.end(), 0.0F);
      std::size_t taken = 0;
      for (int s = 0; s < 3; ++s) {
        const std::vector<float> mine = job.keys.gather(g, s, all);
        CHECK(mine.size() == job.keys.count_on(g, s));
        job.keys.scatter(g, s, mine, back);
        taken += mine.size();
        for (std::size_t k = 0; g == 1 && k < mine.size(); k += kWidth)
          CHECK(parts.part_of(std::int64_t(std::size_t(mine[k]) / kWidth)) == s);
      }
      if (job.keys.is_table(g)) {
        CHECK(back == all);
      } else {
        CHECK(taken == job.keys.groups[g].count);
        const auto first = std::ptrdiff_t(job.keys.groups[g].first);
        const auto count = std::ptrdiff_t(taken);
        CHECK(std::equal(back.begin() + first, back.begin() + first + count, all.begin() + first));
      }
    }
    CHECK(job.keys.count() == kPulled.count);  // a worker's: rows of a step, not tables
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
                       Learner learner(rank == 0 ? 1.0F : 77.0F, kPulled);
                       const auto exchange = make_ps_exchange(m, "reckon", job, Seconds{20});
                       learner.begin(*exchange);
                       for (int s = 0; s < 9; ++s) {
                         learner.step(*exchange, rank, job.workers, s);
                         const ExchangeTimes t = exchange->finish_step(s, 0.05);
                         if (t.sent.v != forecast_sent(rank, s))
                           return fmt::format("{} bytes, not {}", t.sent.v, forecast_sent(rank, s));
                       }
                       return learner.digest(*exchange);
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
    return run_ps_job(table_job(1, 2, rule, RowPartition::mod, kWhole),
                      [&](int, Membership& m, const ServerJob& job) {
                        Learner learner(1, kWhole);
                        const auto exchange = make_ps_exchange(m, "reckon", job, Seconds{20});
                        learner.begin(*exchange);
                        std::vector<std::int64_t> all(kRows);
                        std::iota(all.begin(), all.end(), 0);
                        for (int s = 0; s < 6; ++s) {
                          if (names_all) {
                            exchange->need_rows(learner.at.table, all);
                            exchange->need_rows(learner.at.small, std::span(all).first(kSmallRows));
                          }
                          learner.step(*exchange, 0, 1, s);
                          exchange->finish_step(s, 0.05);
                        }
                        return learner.digest(*exchange);
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
                        Learner learner(1, kPulled);
                        const auto exchange = make_ps_exchange(m, "reckon", job, Seconds{20});
                        learner.begin(*exchange);
                        for (int s = 0; s < 8; ++s) {
                          if (resumed && s == 4) {  // state is taken, spoilt and put back
                            const auto saved = exchange->fetch_tables(true);
                            auto spoilt = saved;
                            for (auto& buffer : spoilt[0].optimizer)
                              std::ranges::fill(buffer, 9.0F);
                            exchange->restore_tables(spoilt);
                            const auto put = exchange->fetch_tables(true);
                            for (const auto& buffer : put[0].optimizer)
                              if (buffer[5] != 9.0F) return std::string("not put");
                            exchange->restore_tables(saved);
                          }
                          learner.step(*exchange, 0, 1, s);
                          exchange->finish_step(s, 0.05);
                        }
                        return learner.digest(*exchange);
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
    Learner learner(1, kPulled);
    const auto exchange = make_ps_exchange(m, "reckon", j, Seconds{20});
    learner.begin(*exchange);
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
