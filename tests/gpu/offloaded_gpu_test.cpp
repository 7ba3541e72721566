#include "executor/cuda/exchange/offload.h"
#include "executor/cuda/exchange/zero.h"
#include "executor/cuda/runtime/runtime.h"
#include "executor/train/layouts/exchange_blocks.h"
#include "gpu/device_layouts.h"
#include "sim/model/finetune.h"

// Layout::offload_optimizer on a device: against the optimizer that is there, and against CPUs.
using namespace reckon;
using namespace reckon::test;

namespace {

using cuda::DevicePrecision;

PlannedWorkload offloaded(PlannedWorkload job) {
  job.strategy.layout.offload_optimizer = true;
  return job;
}

DevicePrecision precision_of(const PlannedWorkload& job) {
  if (job.precision == Precision::bf16) return DevicePrecision::bf16;
  return job.precision == Precision::fp16 ? DevicePrecision::fp16 : DevicePrecision::fp32;
}

std::vector<LayoutRun> train_there(const PlannedWorkload& job, std::int64_t steps) {
  return on_devices(job, steps, precision_of(job));
}

PlannedWorkload offloading_gpt(Optimizer optimizer, std::int64_t batch) {
  return small_job(tiny_gpt(), optimizer, optimizer == Optimizer::adamw ? 1e-3 : 0.1, batch);
}

}  // namespace

TEST_CASE("an offloaded optimizer takes the steps of the device's own, bit for bit") {
  require_device();
  auto job = offloading_gpt(GENERATE(Optimizer::sgd_momentum, Optimizer::adamw), 4);
  job.precision = GENERATE(Precision::fp32, Precision::bf16, Precision::fp16);
  for (const int ranks : {1, 2}) {
    const int own = 4 / ranks;
    const auto whole = under(job, {.data = ranks}, own);
    const auto plain = train_there(whole, 3);
    CHECK(plain[0].parameters != train_there(whole, 0)[0].parameters);
    for (const int stage : {0, 1, 2, 3}) {
      INFO("stage " << stage << " on " << ranks << " ranks");
      const auto cut = under(job, {.data = ranks, .zero_stage = stage}, own);
      check_same(train_there(offloaded(cut), 3), plain);
    }
  }
}

TEST_CASE("an offloaded optimizer accumulates and clips as that of one rank, and as CPUs do") {
  require_device();
  auto job = offloading_gpt(Optimizer::sgd_momentum, 8);
  job.optimizer_settings.clip_norm = 0.5;
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    const auto cut = under(job, {.data = 2, .zero_stage = stage, .recompute = Recompute::full}, 2);
    const auto runs = train_there(offloaded(cut), 3);
    // The norm's squares have another order, in double: the float that gradients are multiplied by
    // is the same or its neighbour, so clipped gradients differ by 0.5 2^-23, what they move
    // weights by as often the learning rate as momentum sums up; a weight of at most 2 is rounded
    // to 2^-23 in each step.
    const PlannedOptimizer& o = job.optimizer_settings;
    const double bound = 3 * (o.learning_rate / (1 - o.momentum) * 0x1p-24 + 0x1p-23);
    const auto own = train_there(cut, 3);
    for (const LayoutRun& run : runs) {
      CHECK(run.parameters == runs[0].parameters);
      CHECK(largest_difference(run.parameters, own[0].parameters) <= bound);
    }
    check_moved(runs, train_under(offloaded(cut), 3), under(job, {}, 8));
    check_same(train_there(offloaded(cut), 3), runs);  // twice, the same bits
    auto waited = offloaded(cut);
    waited.strategy.layout.overlap = false;
    check_same(train_there(waited, 3), runs);
  }
}

TEST_CASE("an offloaded optimizer leaves frozen weights, and has convolutions in 16 bits") {
  require_device();
  auto model = with_lora(tiny_gpt(0), {.rank = 2});
  REQUIRE(model);
  for (auto job : {small_job(std::move(*model), Optimizer::adamw, 1e-2, 4),
                   small_job(small_resnet(), Optimizer::sgd_momentum, 0.05, 4)}) {
    job.precision = Precision::bf16;
    const auto plain = train_there(under(job, {.data = 2}, 2), 2);
    for (const int stage : {0, 1, 2, 3})
      check_same(train_there(offloaded(under(job, {.data = 2, .zero_stage = stage}, 2)), 2), plain);
  }
}

TEST_CASE("an offloaded optimizer skips a step whose gradients overflow") {
  require_device();
  auto job = offloading_gpt(Optimizer::adamw, 4);
  job.precision = Precision::fp16;
  constexpr float kTooLarge = 0x1p26F;
  const auto train = [&](const PlannedWorkload& cut) {
    return train_under(cut, 8, {}, kTooLarge, device_maker(DevicePrecision::fp16));
  };
  const auto plain = train(under(job, {.data = 2}, 2));
  REQUIRE(plain[0].skipped.front());
  REQUIRE(!plain[0].skipped.back());
  for (const int stage : {0, 1, 2, 3}) {
    const auto runs = train(offloaded(under(job, {.data = 2, .zero_stage = stage}, 2)));
    check_same(runs, plain);
    CHECK(runs[0].skipped == plain[0].skipped);
  }
}

TEST_CASE("stages and tensor ranks with an offloaded optimizer train as without") {
  require_device();
  auto job = offloading_gpt(Optimizer::adamw, 4);
  job.precision = GENERATE(Precision::fp32, Precision::bf16);
  for (const Layout& layout : {Layout{.data = 2, .pipeline = 2},  // which share a table
                               Layout{.data = 2, .pipeline = 2, .zero_stage = 1},
                               Layout{.data = 2, .pipeline = 2, .zero_stage = 3},
                               Layout{.data = 2, .tensor = 2, .zero_stage = 2}}) {
    const auto cut = under(job, layout, 2);
    const auto plain = whole_of(train_there(cut, 2));
    check_close(whole_of(train_there(offloaded(cut), 2)), plain, 0);
  }
}

TEST_CASE("what a run with an offloaded optimizer saves goes on without, and the other way round") {
  require_device();
  const auto job = offloading_gpt(Optimizer::adamw, 4);
  const DevicePrecision precision = GENERATE(DevicePrecision::fp32, DevicePrecision::bf16);
  const RankMaker device = device_maker(precision);
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    const auto cut = under(job, {.data = 2, .zero_stage = stage}, 2);
    const Scratch straight, there, back;
    const auto whole = whole_of(go_on(cut, straight.path(), 0, 3, device));
    go_on(offloaded(cut), there.path(), 0, 1, device);
    CHECK((whole_of(go_on(cut, there.path(), 1, 3, device)) == whole));
    go_on(cut, back.path(), 0, 1, device);
    go_on(offloaded(cut), back.path(), 1, 2, device);
    CHECK((whole_of(go_on(offloaded(cut), back.path(), 2, 3, device)) == whole));
    // Read by ranks on CPUs, without a step: the weights of the optimizer, not those of layers.
    const auto on_cpus = under(job, {.data = 4, .zero_stage = 3 - stage}, 1);
    CHECK((whole_of(go_on(on_cpus, back.path(), 3, 3)) == whole));
  }
}

namespace {

struct OnDevice {
  std::int64_t parameters = 0, exchange = 0;  // bytes
};

/// Behind two steps of one rank.
OnDevice held_by(const PlannedWorkload& job, bool offloads) {
  const int stage = job.strategy.layout.zero_stage;
  const DevicePrecision precision = precision_of(job);
  const ParameterLayout layout = parameter_layout(job.model);
  const auto blocks = exchange_blocks(job.model, layout);
  const auto alone = make_thread_communicators(1);
  const auto group = cuda::make_staged_group(*alone[0]);
  cuda::DeviceParameters parameters(layout, blocks, stage, precision, nullptr, offloads);
  const ZeroOptions options{.optimizer = optimizer_rule(job),
                            .trained = trained_ranges(layout),
                            .blocks = blocks,
                            .stage = stage};
  Workers workers(1);
  const auto exchange = offloads
                            ? cuda::make_offloaded_zero_exchange(
                                  *group, nullptr, *alone[0], options, parameters, workers, nullptr)
                            : cuda::make_device_zero_exchange(*group, nullptr, *alone[0], options,
                                                              parameters, nullptr);
  const auto data = open_data({}, {}, job.model, 9, 40);
  auto runtime =
      cuda::make_device_runtime(job.model, {.batch = 2, .seed = 4}, parameters, {},
                                stage == 3 ? exchange.get() : nullptr, precision, nullptr);
  Trainer trainer(job.model,
                  {.share = {.global_batch = 2, .own = 2},
                   .micro_batch = 2,
                   .steps = 2,
                   .seed = 4,
                   .optimizer = job.optimizer_settings,
                   .optimizer_buffers = 2},
                  *data, *exchange, workers, std::move(runtime));
  trainer.start();
  trainer.train({});
  return {std::int64_t(parameters.held().v), std::int64_t(exchange->held().v)};
}

}  // namespace

TEST_CASE("with an offloaded optimizer the device has neither its state nor weights in float") {
  require_device();
  auto job = small_job(tiny_gpt(), Optimizer::adamw, 1e-3, 2);
  job.precision = GENERATE(Precision::fp32, Precision::bf16);
  const ParameterLayout layout = parameter_layout(job.model);
  const auto all = std::int64_t(cuda::device_layout(layout).count);
  std::int64_t largest = 0, trained = 0;
  for (const ZeroBlock& block : exchange_blocks(job.model, layout)) {
    largest = std::max(largest, std::int64_t(block.whole.count));  // none is frozen
    trained += std::int64_t(block.whole.count);
  }
  const std::int64_t each = job.precision == Precision::fp32 ? 4 : 2;  // bytes of a weight
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    job.strategy.layout.zero_stage = stage;
    const OnDevice with = held_by(job, true), without = held_by(job, false);
    // Weights as layers read them, whole gradients of stage 1, and messages of a block.
    CHECK(with.parameters == (stage < 3 ? each * all : 0) + (stage < 2 ? 4 * all : 0));
    CHECK(with.exchange == 2 * 4 * largest + (stage == 3 ? each * trained : 0));
    // Both moments; of stages 2 and 3 sums of gradients; the weights themselves, in float.
    CHECK(without.exchange ==
          2 * 4 * largest + 4 * trained * (2 + int(stage >= 2) + int(stage == 3)));
    const std::int64_t rounded = job.precision == Precision::fp32 ? 0 : 2 * all;
    if (stage < 3) CHECK(without.parameters == 4 * all + rounded + (stage < 2 ? 4 * all : 0));
  }
}
