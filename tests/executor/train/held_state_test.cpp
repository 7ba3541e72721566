#include "executor/train/held_state.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <set>

#include "executor/comm/errors.h"
#include "executor/train/layout_jobs.h"
#include "executor/train/parallel_networks.h"
#include "sim/scenario/rank_places.h"
#include "sim/scenario/restart.h"

// A data-parallel job goes on from what its ranks have in memory, to the bit, wherever a peer was
// lost.
using namespace reckon;
using namespace reckon::test;

namespace {

/// Its calls end as those with a lost peer do: that of a number before it is done, or behind it
/// (the peer was lost when this rank had what it waited for). Those of subgroups count, too.
class FailingCalls final : public Communicator {
 public:
  struct Plan {
    int failing = 0;
    bool behind = false;
    std::atomic<int> calls{0};
  };
  FailingCalls(Communicator& inner, Plan& plan) : inner_(inner), plan_(plan) {}
  FailingCalls(std::unique_ptr<Communicator> inner, Plan& plan)
      : own_(std::move(inner)), inner_(*own_), plan_(plan) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void all_reduce(std::span<float> values) override {
    call([&] { inner_.all_reduce(values); });
  }
  void all_reduce(std::span<double> values) override {
    call([&] { inner_.all_reduce(values); });
  }
  void all_reduce(std::span<std::int64_t> values) override {
    call([&] { inner_.all_reduce(values); });
  }
  void all_gather(std::span<const float> mine, std::span<float> all) override {
    call([&] { inner_.all_gather(mine, all); });
  }
  void reduce_scatter(std::span<const float> all, std::span<float> mine) override {
    call([&] { inner_.reduce_scatter(all, mine); });
  }
  void all_to_all(std::span<const float> send, std::span<float> receive) override {
    call([&] { inner_.all_to_all(send, receive); });
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    call([&] { inner_.broadcast(bytes, root); });
  }
  void send(std::span<const std::byte> bytes, int to) override {
    call([&] { inner_.send(bytes, to); });
  }
  void receive(std::span<std::byte> bytes, int from) override {
    call([&] { inner_.receive(bytes, from); });
  }
  std::unique_ptr<Communicator> subgroup(std::span<const int> ranks) override {
    return std::make_unique<FailingCalls>(inner_.subgroup(ranks), plan_);
  }
  void barrier() override {
    call([&] { inner_.barrier(); });
  }

 private:
  template <class Do>
  void call(Do done) {
    const int number = plan_.calls++;
    if (number > plan_.failing) throw CommError("the communicator failed before");
    const bool fails = number == plan_.failing;
    if (fails && !plan_.behind) throw CommError("a peer is lost");
    done();
    if (fails) throw CommError("a peer is lost");
  }
  std::unique_ptr<Communicator> own_;
  Communicator& inner_;
  Plan& plan_;
};

struct HeldRank {
  std::optional<HeldState> held;
  std::optional<std::int64_t> goes_on_from;
  std::vector<float> parameters;
  std::map<std::string, std::vector<float>> by_name;
};

/// All ranks go on from what is held, or begin, and take steps up to `steps`; rank 0
/// has one call more than the others.
void start_of(const PlannedWorkload& job, std::int64_t steps, std::vector<HeldRank>& ranks,
              int calls = 1 << 30) {
  auto communicators = make_thread_communicators(job.strategy.workers, Seconds{2});
  std::vector<std::jthread> threads;
  for (auto& c : communicators)
    threads.emplace_back([&, mine = std::move(c)] {
      HeldRank& rank = ranks[std::size_t(mine->rank())];
      const bool first = mine->rank() == 0;
      FailingCalls::Plan plan{.failing = first ? calls + 1 : calls, .behind = !first};
      FailingCalls peers(*mine, plan);
      Workers workers(1);
      const auto data = open_data({}, {}, job.model, 9, 40);
      const RuntimeOptions passes{.batch = job.strategy.layout.micro_batch, .seed = 4};
      LayoutTraining training =
          make_layout_training(job, peers, passes, workers, nullptr, /*goes_on_from_memory=*/true);
      Trainer trainer(job.model,
                      {.share = training.share,
                       .micro_batch = passes.batch,
                       .steps = 6,
                       .seed = 4,
                       .optimizer = job.optimizer_settings,
                       .optimizer_buffers = 2},
                      *data, *training.exchange, workers, std::move(training.runtime));
      bool started = false;
      try {
        rank.goes_on_from = share_held_state(*mine, trainer, rank.held ? &*rank.held : nullptr);
        trainer.start();
        started = true;
        TrainerHooks hooks;
        hooks.mean_loss = [&](double loss) {
          peers.all_reduce(std::span(&loss, 1));
          return loss / peers.size();
        };
        trainer.train_until(steps, hooks);
        LayoutRun run;
        take_tensors(trainer, run);
        rank.parameters = run.parameters;
        rank.by_name = run.by_name;
      } catch (const CommError&) {
        if (started) rank.held.emplace(trainer);
      }
    });
  threads.clear();
}

}  // namespace

TEST_CASE(
    "a job goes on from its ranks' memory with the bits of an undisturbed one, wherever it broke") {
  // Batch norms: a rank has running statistics of its own.
  PlannedWorkload job =
      under(small_job(small_resnet(), Optimizer::adamw, 1e-2, 12), Layout{.data = 3}, 2);
  std::vector<HeldRank> expected(3);
  start_of(job, 4, expected);
  REQUIRE_FALSE(expected[0].parameters.empty());
  int at_one_step = 0, at_two = 0;
  for (int calls = 2; calls < 8; ++calls) {
    INFO("the peers are lost in call " << calls);
    std::vector<HeldRank> ranks(3);
    start_of(job, 4, ranks, calls);
    REQUIRE(ranks[0].held);
    REQUIRE(ranks[1].held);
    const bool same = ranks[0].held->steps_done() == ranks[1].held->steps_done();
    ++(same ? at_one_step : at_two);
    ranks[2].held.reset();  // its process was lost: a new one takes its place
    start_of(job, 4, ranks);
    for (std::size_t k = 0; k < 3; ++k) {
      CHECK((ranks[k].parameters == expected[k].parameters));
      // The new one has the statistics of the rank that gave it the rest.
      if (k < 2) CHECK((ranks[k].by_name == expected[k].by_name));
    }
  }
  CHECK(at_one_step > 0);
  CHECK(at_two > 0);
}

TEST_CASE("copies that several ranks share out go on to the bit, whichever update was agreed on") {
  const auto layout =
      GENERATE(Layout{.data = 2, .tensor = 2}, Layout{.data = 2, .pipeline = 2},
               Layout{.data = 2, .tensor = 2, .pipeline = 2}, Layout{.data = 4, .expert = 2});
  const bool experts = layout.expert > 1;
  const PlannedWorkload job = under(
      small_job(experts ? parallel_mixture(false) : parallel_gpt2(), Optimizer::adamw, 1e-3, 8),
      layout, 2);
  const int ranks = job.strategy.workers;
  INFO("data " << layout.data << ", tensor " << layout.tensor << ", pipeline " << layout.pipeline
               << ", expert " << layout.expert);
  std::vector<HeldRank> expected(static_cast<std::size_t>(ranks));
  start_of(job, 3, expected);
  int agreed_on_some = 0, held_at_once = 0;
  for (int calls = 12; calls < 90; calls += 3) {
    INFO("the peers are lost in call " << calls);
    std::vector<HeldRank> left(static_cast<std::size_t>(ranks));
    start_of(job, 3, left, calls);
    // A copy is lost, all of it: no other rank of it holds its part.
    std::set<std::int64_t> held;
    int holding = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      HeldRank& one = left[static_cast<std::size_t>(rank)];
      const bool of_lost = place_of_rank(job.strategy.layout, rank).data >= layout.data / 2;
      if (of_lost) one.held.reset();
      if (one.held) ++holding, held.insert(one.held->steps_done());
    }
    // Where each rank breaks by its own count, some are done before others begin to fail.
    if (holding < ranks / 2) continue;
    ++(held.size() > 1 ? agreed_on_some : held_at_once);
    start_of(job, 3, left);
    for (int rank = 0; rank < ranks; ++rank) {
      const HeldRank &one = left[static_cast<std::size_t>(rank)],
                     &same = expected[static_cast<std::size_t>(rank)];
      CHECK(one.goes_on_from.has_value());
      CHECK((one.parameters == same.parameters));
    }
  }
  CHECK(held_at_once + agreed_on_some > 2);
}

TEST_CASE("a job that grows gives each rank its part, also from ranks that now need another") {
  const auto small =
      under(small_job(parallel_gpt2(), Optimizer::adamw, 1e-3, 8), {.pipeline = 2}, 2);
  const auto whole =
      under(small_job(parallel_gpt2(), Optimizer::adamw, 1e-3, 8), {.data = 2, .pipeline = 2}, 2);
  std::vector<HeldRank> left(2);
  for (int calls = 8; calls < 40 && !(left[0].held && left[1].held); ++calls) {
    left = std::vector<HeldRank>(2);
    start_of(small, 3, left, calls);
  }
  REQUIRE((left[0].held && left[1].held));
  std::vector<HeldRank> grown(4);
  for (std::size_t k = 0; k < 2; ++k) grown[k].held = left[k].held;  // rank 1 was the second stage
  start_of(whole, 3, grown);
  for (const HeldRank& rank : grown) {
    CHECK(rank.goes_on_from == grown[0].goes_on_from);
    CHECK(rank.goes_on_from.has_value());
    CHECK_FALSE(rank.parameters.empty());
  }
  CHECK((grown[0].parameters == grown[1].parameters));
  CHECK((grown[2].parameters == grown[3].parameters));
}

TEST_CASE("a part of the model that nobody holds is not made up: the checkpoint has it") {
  const PlannedWorkload job =
      under(small_job(parallel_gpt2(), Optimizer::adamw, 1e-3, 8), {.data = 2, .tensor = 2}, 4);
  std::vector<HeldRank> ranks(4);
  start_of(job, 3, ranks, 20);
  REQUIRE((ranks[0].held && ranks[3].held));
  ranks[1].held.reset();  // the same part of both copies
  ranks[3].held.reset();
  start_of(job, 3, ranks);
  for (const HeldRank& rank : ranks) CHECK_FALSE(rank.goes_on_from);
}

TEST_CASE("where no rank holds anything nothing is restored") {
  PlannedWorkload job =
      under(small_job(small_gpt2(0.1), Optimizer::adamw, 1e-2), Layout{.data = 2}, 4);
  std::vector<HeldRank> ranks(2);
  start_of(job, 3, ranks);
  const auto straight = train_under(job, 3);
  CHECK((ranks[0].parameters == ranks[1].parameters));
  CHECK_FALSE((ranks[0].parameters.empty() || straight[0].parameters.empty()));
}

TEST_CASE("an elastic job's copies share a global batch out that does not come out even") {
  const auto layout = GENERATE(Layout{.data = 4}, Layout{.data = 4, .zero_stage = 3},
                               Layout{.data = 4, .zero_stage = 2});
  INFO("stage " << layout.zero_stage);
  PlannedWorkload planned =
      under(small_job(small_gpt2(0), Optimizer::sgd_momentum, 1e-2, 16), layout, 2);
  planned.strategy.kind =
      layout.zero_stage > 0 ? StrategyKind::sharded : StrategyKind::multi_worker_mirrored;
  planned.restart = PlannedRestart{.kind = RestartKind::elastic, .min_workers = 1};
  PlannedWorkload job = with_fewer_workers(planned, 3);
  CHECK(job.global_batch == 18);  // what the forecast's slowest rank makes of it: 3 passes
  job.global_batch = planned.global_batch;
  std::int64_t samples = 0;
  double weight = 0;
  for (int rank = 0; rank < 3; ++rank) {
    const RankShare share = share_of(job, rank, 3, 2);
    CHECK(share.first_of_step == samples);
    CHECK(share.own / 2 + share.idle_passes == (layout.zero_stage >= 2 ? 3 : share.own / 2));
    samples += share.own;
    weight += share.weight / 3;
  }
  CHECK(samples == 16);
  CHECK(weight == Approx(1));
  // The same samples a step as with all: 6 steps, rate 0.01, momentum 0.9, 16 summands that are at
  // most 100 in sum, as in zero_test.cpp.
  constexpr double kBound = 6 * 0.01 * 10 * 16 * 0x1p-24 * 100;
  const auto all = train_under(planned, 6), fewer = train_under(job, 6);
  const auto expected = whole_of(all), got = whole_of(fewer);
  for (const auto& [name, values] : expected) {
    INFO(name);
    CHECK(largest_difference(values, got.at(name)) < kBound);
  }
  for (std::size_t k = 0; k < 6; ++k)
    CHECK(fewer[0].losses[k] == Approx(all[0].losses[k]).epsilon(1e-5));
}
