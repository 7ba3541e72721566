#include <cmath>
#include <cstring>
#include <set>
#include <sstream>
#include <thread>

#include <catch2/catch.hpp>

#include "executor/comm/all_reduce_exchange.h"
#include "executor/comm/server_job.h"
#include "executor/comm/thread_communicator.h"
#include "executor/train/data/order.h"
#include "executor/train/networks.h"
#include "executor/train/pulled_tables.h"
#include "executor/train/recipe/recipe.h"
#include "executor/train/trainer.h"
#include "sim/model/zoo/builder.h"
#include "sim/step/servers/placement.h"

// A small recommender learns from a log of clicks. Parameter servers, in processes of their own,
// hold its embedding tables, and workers ask for the touched rows alone.
namespace {
using namespace reckon;

constexpr double kExponent = 1.1;
constexpr std::int64_t kUsers = 3000, kItems = 700, kBatch = 64, kSteps = 150, kSamples = 4096;
constexpr int kWorkers = 2, kServers = 2;

ModelGraph recommender() { return test::small_recommender(4, kUsers, kItems); }

PlannedWorkload workload(Optimizer optimizer, double momentum) {
  PlannedWorkload job{.model = recommender(),
                      .optimizer = optimizer,
                      .global_batch = kBatch * kWorkers,
                      .zipf_exponent = Fact<double>{kExponent}};
  job.optimizer_settings = {.learning_rate = optimizer == Optimizer::adamw ? 0.01 : 0.5,
                            .momentum = momentum};
  job.strategy.kind = StrategyKind::parameter_server;
  job.strategy.workers = kWorkers;
  job.strategy.accelerators_per_worker = 0;
  job.strategy.layout.micro_batch = int(kBatch / 2);  // two a step
  job.strategy.servers = ParameterServers{.count = kServers};
  return job;
}

ServerJob server_job(const PlannedWorkload& job, bool synchronous) {
  const ParameterLayout layout = pulled_layout(job.model, share_of(job, 0, kWorkers).own);
  std::vector<ParameterRange> layers;
  std::vector<TableKeys> tables;
  for (const ParameterSlot& slot : layout.slots) {
    layers.push_back({slot.first, slot.count});
    TableKeys& keys = tables.emplace_back();
    if (slot.pulled) keys = {std::size_t(slot.global[0]), std::size_t(slot.global[1])};
  }
  return {.keys = server_keys(layers, std::vector<double>(kServers, 1), tables),
          .workers = kWorkers,
          .synchronous = synchronous,
          .staleness = synchronous ? 0 : 2,
          .optimizer = optimizer_rule(job),
          .trained = trained_ranges(layout)};
}

struct RecommenderTrained {
  double loss = 0;             // of this rank's samples, mean of the last steps
  double rows = 0, delay = 0;  // a step, mean
  std::string weights;
};

RecommenderTrained recommender_train(const PlannedWorkload& job, GradientExchange& exchange,
                                     int rank, double dense_bytes) {
  Workers workers(1);
  const auto data =
      open_data({.format = DataFormat::clicks}, {}, job.model, 9, kSamples, kExponent);
  Trainer trainer(job.model,
                  {.share = share_of(job, rank, kWorkers),
                   .micro_batch = job.strategy.layout.micro_batch,
                   .steps = kSteps,
                   .seed = 4,
                   .optimizer = job.optimizer_settings,
                   .optimizer_buffers = job.optimizer == Optimizer::adamw ? 2u : 1u},
                  *data, exchange, workers);
  trainer.start();
  RecommenderTrained result;
  TrainerHooks hooks;
  constexpr std::int64_t kLast = 30;
  hooks.measured = [&](const StepMeasurement& m) {
    if (m.step >= kSteps - kLast) result.loss += m.loss / kLast;
    const double rows = (m.exchange.sent.v - dense_bytes) / (8 * 4 + 2 * kRowId.v);
    if (dense_bytes > 0) CHECK(rows == std::floor(rows));
    result.rows += rows / kSteps;
    result.delay += m.exchange.delay / kSteps;
  };
  trainer.train(hooks);
  for (const StateTensor& tensor : trainer.trained()) {
    result.weights += tensor.slice.name + " ";
    for (std::size_t k = 0; k < tensor.bytes.size(); k += sizeof(float)) {
      float w = 0;
      std::memcpy(&w, tensor.bytes.data() + k, sizeof w);
      result.weights += fmt::format("{:a} ", w);
    }
  }
  return result;
}

/// The ranks' results with servers.
std::vector<RecommenderTrained> with_servers(const PlannedWorkload& job, bool synchronous) {
  const double dense = 4.0 * ((4 * 8 + 8) + (27 * 16 + 16) + (16 + 1));
  const auto outcomes = run_ps_job(
      server_job(job, synchronous), [&](int rank, Membership& m, const ServerJob& servers) {
        const auto exchange = make_ps_exchange(m, "reckon", servers, Seconds{20});
        const RecommenderTrained t = recommender_train(job, *exchange, rank, dense);
        return fmt::format("{} {} {}\n{}", t.loss, t.rows, t.delay, t.weights);
      });
  std::vector<RecommenderTrained> all;
  for (int rank = 0; rank < kWorkers; ++rank) {
    const ProcessOutcome& outcome = outcomes[std::size_t(rank)];
    INFO(outcome.output.substr(0, 400));
    REQUIRE(outcome.code == 0);
    std::istringstream text(outcome.output);
    RecommenderTrained& t = all.emplace_back();
    text >> t.loss >> t.rows >> t.delay >> std::ws;
    std::getline(text, t.weights);
  }
  return all;
}

std::vector<RecommenderTrained> with_all_reduce(const PlannedWorkload& job) {
  std::vector<RecommenderTrained> all(kWorkers);
  auto communicators = make_thread_communicators(kWorkers, Seconds{20});
  std::vector<std::jthread> threads;
  for (auto& c : communicators)
    threads.emplace_back([&, mine = std::move(c)] {
      const auto exchange =
          make_all_reduce_exchange(*mine, {.optimizer = optimizer_rule(job),
                                           .trained = trained_ranges(parameter_layout(job.model))});
      all[std::size_t(mine->rank())] = recommender_train(job, *exchange, mine->rank(), 0);
    });
  threads.clear();
  return all;
}

double mean_loss(const std::vector<RecommenderTrained>& ranks) {
  double sum = 0;
  for (const RecommenderTrained& t : ranks) sum += t.loss / double(ranks.size());
  return sum;
}

}  // namespace

TEST_CASE("a recommender on servers of sparse rows ends with the bits of a dense all-reduce") {
  const PlannedWorkload job = workload(Optimizer::sgd_momentum, 0);
  const auto dense = with_all_reduce(job), sparse = with_servers(job, true);
  REQUIRE(dense[0].weights == dense[1].weights);
  CHECK(sparse[0].weights == dense[0].weights);
  CHECK(sparse[1].weights == dense[0].weights);
  CHECK(mean_loss(sparse) == mean_loss(dense));
  // It learns: a coin's loss is ln 2, and plain SGD is slow.
  CHECK(mean_loss(sparse) < 0.9 * std::log(2.0));
  // What travels is what the forecast's formula says of Zipf's ids, in the mean of many draws.
  const double forecast = DrawnRows(kUsers, kExponent).distinct(kBatch) +
                          DrawnRows(kItems, kExponent).distinct(3 * kBatch);
  for (const RecommenderTrained& t : sparse) CHECK(t.rows == Approx(forecast).epsilon(0.02));
}

TEST_CASE("AdamW on touched rows alone learns: a row without a gradient has no momentum") {
  // Dense AdamW goes on moving rows that a step did not name, and is further at the same step.
  const PlannedWorkload job = workload(Optimizer::adamw, 0);
  const double dense = mean_loss(with_all_reduce(job)), sparse = mean_loss(with_servers(job, true));
  CHECK(dense < sparse);
  CHECK(sparse < 0.6 * std::log(2.0));
}

TEST_CASE("asynchronous workers of a recommender come at least as far with the same samples") {
  const PlannedWorkload job = workload(Optimizer::sgd_momentum, 0);
  const auto late = with_servers(job, false);
  // An update of the other worker falls into at most one step of this one, and there are as many of
  // them as own steps: at most 1 in the mean, however the two processes are scheduled. Where both
  // run at once some updates come between; how many is the machine's business.
  double delays = 0;
  for (const RecommenderTrained& t : late) {
    CHECK(t.delay < 1 + 1e-9);
    delays += t.delay;
  }
  CHECK(delays > 0);
  // Twice the updates of half the batch, each one late: no worse by the law of delayed updates.
  CHECK(mean_loss(late) < 1.05 * mean_loss(with_all_reduce(job)));
}

TEST_CASE("clicks need ids and a label, and are drawn by Zipf's law") {
  const ModelGraph model = recommender();
  const auto data = open_data({.format = DataFormat::clicks}, {}, model, 9, kSamples, kExponent);
  const SampleFormat format = sample_format(model);
  SampleBatch batch(format, 1);
  double clicked = 0, first = 0;
  std::set<std::int64_t> users;
  for (std::int64_t k = 0; k < kSamples; ++k) {
    data->read(k, batch, 0);
    const auto id = std::int64_t(batch.input(0, 0)[4]);
    REQUIRE(id >= 0);
    REQUIRE(id < kUsers);
    users.insert(id);
    first += id == 0 ? 1 : 0;
    clicked += batch.target(0, 0)[0];
  }
  double norm = 0;
  for (std::int64_t r = 1; r <= kUsers; ++r) norm += std::pow(double(r), -kExponent);
  const double expected = double(kSamples) / norm;
  CHECK(first == Approx(expected).margin(4 * std::sqrt(expected)));
  const double distinct = DrawnRows(kUsers, kExponent).distinct(double(kSamples));
  CHECK(double(users.size()) == Approx(distinct).margin(4 * std::sqrt(distinct)));
  CHECK(clicked > 0.2 * double(kSamples));
  CHECK(clicked < 0.8 * double(kSamples));
  LayerList net(4);
  const LayerId x = net.add("record", InputLayer{}, std::vector<LayerId>{});
  net.add("loss", MeanSquaredError{}, net.add("out", Linear{3, 1}, x));
  const ModelGraph plain = ModelGraph::make("plain", SampleUnit::record, {3}, net.take()).value();
  CHECK_THROWS_WITH(open_data({.format = DataFormat::clicks}, {}, plain, 9, 10, 1),
                    Catch::Contains("takes no ids of embedding tables"));
}
