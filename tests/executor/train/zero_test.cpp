#include <catch2/catch.hpp>

#include "executor/comm/zero_exchange.h"
#include "executor/train/layout_jobs.h"
#include "executor/train/layouts/exchange_blocks.h"
#include "executor/train/layouts/sharded_runtime.h"
#include "sim/model/finetune.h"

using namespace reckon;
using namespace reckon::test;

namespace {

/// What another order of sums may move a parameter by in `steps` steps of SGD: of each gradient, a
/// sum of `summands` parts that together are at most 1 in size, (summands - 1) 2^-24 [Higham 2002,
/// "Accuracy and stability of numerical algorithms", Sec. 4.2]; of the parameters as often the
/// learning rate as momentum sums up, 1 / (1 - momentum), in each step.
double bound_of_order(const PlannedWorkload& job, std::int64_t steps, int summands) {
  const PlannedOptimizer& o = job.optimizer_settings;
  return double(steps) * o.learning_rate / (1 - o.momentum) * (summands - 1) * 0x1p-24;
}

PlannedWorkload zero_gpt(Optimizer optimizer = Optimizer::sgd_momentum, double clip_norm = 0) {
  auto job = small_job(small_gpt2(0.1), optimizer, optimizer == Optimizer::adamw ? 1e-3 : 0.1);
  job.optimizer_settings.clip_norm = clip_norm;
  return job;
}

void check_same(const std::vector<LayoutRun>& a, const std::vector<LayoutRun>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t rank = 0; rank < a.size(); ++rank) {
    CHECK(a[rank].losses == b[rank].losses);
    CHECK(a[rank].parameters == b[rank].parameters);
  }
}

}  // namespace

TEST_CASE(
    "ZeRO's stages take the steps of data parallelism, bit for bit where a step is one pass") {
  const Optimizer optimizer = GENERATE(Optimizer::sgd_momentum, Optimizer::adamw);
  const int ranks = GENERATE(2, 4);
  const auto job = zero_gpt(optimizer);
  const int own = 16 / ranks;
  const auto plain = train_under(under(job, {.data = ranks}, own), 10);
  CHECK(plain[0].losses.back() < plain[0].losses.front());
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage << " on " << ranks << " ranks");
    check_same(train_under(under(job, {.data = ranks, .zero_stage = stage}, own), 10), plain);
  }
}

TEST_CASE("ZeRO's stages train convolutions and batch norms as data parallelism does") {
  const auto job = small_job(small_resnet(), Optimizer::sgd_momentum, 0.05);
  const auto plain = train_under(under(job, {.data = 2}, 8), 10);
  for (const int stage : {1, 2, 3})
    check_same(train_under(under(job, {.data = 2, .zero_stage = stage}, 8), 10), plain);
}

TEST_CASE(
    "ZeRO with accumulated micro-batches, clipping and recomputation is one rank's training") {
  // 4 ranks x 2 passes of 2 samples, against one rank that sums 16 samples.
  auto job = zero_gpt(Optimizer::sgd_momentum, 0.5);
  const auto alone = train_under(under(job, {.data = 1}, 16), 10);
  const double bound = bound_of_order(job, 10, 16);
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    const Layout layout{.data = 4, .zero_stage = stage, .recompute = Recompute::full};
    const auto cut = under(job, layout, 2);
    CHECK(cut.strategy.layout.micro_batches == 2);
    const auto runs = train_under(cut, 10);
    for (const LayoutRun& run : runs) {
      CHECK(run.parameters == runs[0].parameters);
      CHECK(largest_difference(run.parameters, alone[0].parameters) < bound);
      for (std::size_t k = 0; k < 10; ++k)
        CHECK(run.losses[k] == Approx(alone[0].losses[k]).epsilon(1e-5));
    }
    check_same(train_under(cut, 10), runs);  // twice, the same bits
    auto waited = cut;
    waited.strategy.layout.overlap = false;
    check_same(train_under(waited, 10), runs);
  }
  CHECK(bound < 1e-4);
}

TEST_CASE("on CPUs an offloaded optimizer is where it was: the same bits, on one rank, too") {
  auto job = zero_gpt(Optimizer::adamw, 0.5);
  job.precision = GENERATE(Precision::fp32, Precision::bf16);
  for (const int ranks : {1, 2}) {
    const auto plain = train_under(under(job, {.data = ranks}, 16 / ranks), 5);
    for (const int stage : {0, 1, 2, 3}) {
      INFO("stage " << stage << " on " << ranks << " ranks");
      const Layout layout{.data = ranks, .zero_stage = stage, .offload_optimizer = true};
      const auto runs = train_under(under(job, layout, 16 / ranks), 5);
      auto stays = layout;
      stays.offload_optimizer = false;
      check_same(runs, train_under(under(job, stays, 16 / ranks), 5));
      if (ranks == 1) check_same(runs, plain);
    }
  }
}

TEST_CASE("frozen weights stay what they are under every stage") {
  auto made = make_transformer("gpt2", {.layers = 2,
                                        .hidden = 32,
                                        .heads = 4,
                                        .vocabulary = 61,
                                        .sequence_length = 24,
                                        .positions = 24});
  auto model = with_lora(*made, {.rank = 4});
  REQUIRE(model);
  const auto job = small_job(std::move(*model), Optimizer::adamw, 1e-2);
  const auto plain = train_under(under(job, {.data = 2}, 8), 5);
  for (const int stage : {1, 2, 3})
    check_same(train_under(under(job, {.data = 2, .zero_stage = stage}, 8), 5), plain);
}

TEST_CASE("a block that is used again before it would be gathered again stays") {
  const ModelGraph model = small_gpt2(0);
  const ParameterLayout layout = parameter_layout(model);
  const auto blocks = exchange_blocks(model, layout);
  std::size_t covered = 0;
  for (const ZeroBlock& block : blocks) {
    CHECK(block.whole.first == covered);
    covered += block.whole.count;
  }
  CHECK(covered == layout.count);
  const RankModel rank = whole_model(model);
  const Schedule schedule = make_schedule(rank, 1, Recompute::none, 16);
  const auto uses = block_uses(rank, layout, blocks, schedule, schedule.actions.size());
  // Embeddings, two blocks, the last norm; then the embeddings' table, which is tied to the head,
  // at the end of the forward and the begin of the backward pass at once; and back.
  std::vector<std::size_t> order;
  for (const BlockUse& use : uses) order.push_back(use.block);
  CHECK(order == std::vector<std::size_t>{0, 1, 2, 3, 0, 3, 2, 1, 0});
  for (std::size_t k = 1; k < uses.size(); ++k) CHECK(uses[k].first > uses[k - 1].first);
  CHECK(uses[4].first < schedule.forward_count);
  CHECK(uses[4].last >= schedule.forward_count);
}

namespace {

/// Asks what is held whenever a block is about to go.
class Watched final : public ZeroExchange {
 public:
  Watched(std::unique_ptr<ZeroExchange> exchange) : to_(std::move(exchange)) {}
  void start(ParameterView view) override { to_->start(view); }
  std::vector<ParameterRange> blocks_to_take() override { return to_->blocks_to_take(); }
  void take_block(std::size_t k) override { look(), to_->take_block(k); }
  bool exchanges_every_pass() const override { return to_->exchanges_every_pass(); }
  void begin_backward() override { to_->begin_backward(); }
  ExchangeWaits take_waited() override { return to_->take_waited(); }
  void gradient_ready(ParameterRange range) override { look(), to_->gradient_ready(range); }
  ExchangeTimes finish_step(std::int64_t step, double rate) override {
    return to_->finish_step(step, rate);
  }
  std::vector<std::span<float>> optimizer_state() override { return {}; }
  void restore_optimizer_state() override { to_->restore_optimizer_state(); }
  bool keeps_parts() const override { return true; }
  std::vector<KeptPart> kept_parts() override { return to_->kept_parts(); }
  void take_final_values() override { to_->take_final_values(); }
  void prefetch(std::size_t block) override { to_->prefetch(block); }
  void wait_for(std::size_t block) override { to_->wait_for(block); }
  void release(std::size_t block) override { look(), to_->release(block); }
  Bytes held() const override { return to_->held(); }

  ShardedRuntime* runtime = nullptr;
  Bytes most{};

 private:
  void look() {
    if (runtime) most = std::max(most, runtime->parameter_memory());
  }
  std::unique_ptr<ZeroExchange> to_;
};

struct MemoryOfRank {
  Bytes whole_at_most{}, whole_after{}, parts{};
};

MemoryOfRank memory_of_rank(const PlannedWorkload& job, Communicator& peers, int stage) {
  Workers workers(1);
  const auto data = open_data({}, {}, job.model, 9, 40);
  const ParameterLayout layout = parameter_layout(job.model);
  Watched exchange(make_zero_exchange(peers, {.optimizer = optimizer_rule(job),
                                              .trained = trained_ranges(layout),
                                              .blocks = exchange_blocks(job.model, layout),
                                              .stage = stage}));
  const RankShare share = share_of(job, peers.rank(), peers.size());
  auto runtime = make_sharded_runtime(job.model, {.batch = share.own, .seed = 4}, workers,
                                      stage == 3 ? &exchange : nullptr);
  exchange.runtime = runtime.get();
  const ShardedRuntime& memory = *runtime;
  Trainer trainer(job.model,
                  {.share = share,
                   .micro_batch = share.own,
                   .steps = 2,
                   .seed = 4,
                   .optimizer = job.optimizer_settings,
                   .optimizer_buffers = 2},
                  *data, exchange, workers, std::move(runtime));
  trainer.start();
  trainer.train({});
  return {exchange.most, memory.parameter_memory(), exchange.held()};
}

}  // namespace

TEST_CASE("stages 2 and 3 hold in memory what the forecast counts, not whole state") {
  auto made = make_transformer("gpt2", {.layers = 8,
                                        .hidden = 128,
                                        .heads = 4,
                                        .vocabulary = 64,
                                        .sequence_length = 16,
                                        .positions = 16});
  const auto job = under(small_job(std::move(*made), Optimizer::adamw, 1e-3, 4), {.data = 4}, 1);
  const double whole = double(parameter_layout(job.model).count) * sizeof(float);
  const double block = 12 * 128 * 128 * sizeof(float);  // and biases and norms
  REQUIRE(whole > 8 * block);
  for (const int stage : {2, 3}) {
    auto communicators = make_thread_communicators(4, Seconds{60});
    std::vector<MemoryOfRank> ranks(4);
    {
      std::vector<std::jthread> threads;
      for (auto& c : communicators)
        threads.emplace_back([&, mine = std::move(c)] {
          ranks[std::size_t(mine->rank())] = memory_of_rank(job, *mine, stage);
        });
    }
    for (const MemoryOfRank& m : ranks) {
      INFO("stage " << stage << ": " << m.whole_at_most.v << " " << m.whole_after.v << " "
                    << m.parts.v << " of " << whole);
      if (stage == 2) {
        // All values, and gradients of two blocks.
        CHECK(m.whole_at_most.v < 1.05 * whole + 2.5 * block);
        CHECK(m.whole_after.v < 1.05 * whole);
        // A quarter of gradients and moments; a message of the largest block and a part of it.
        CHECK(m.parts.v < 3 * whole / 4 + 1.3 * block);
      } else {
        // The block in work, the next one, and one that goes; gradients of two.
        CHECK(m.whole_at_most.v < 5.5 * block);
        CHECK(m.whole_after.v < 0.1 * whole);  // pages that blocks share
        CHECK(m.parts.v < 4 * whole / 4 + 1.3 * block);
      }
    }
  }
}
