#include "gpu/device_layouts.h"

#include "executor/train/parallel/rank_model.h"
#include "executor/train/parallel_networks.h"
#include "sim/model/finetune.h"

// Ranks that cut state or model, against ranks on CPUs and against one rank.
using namespace reckon;
using namespace reckon::test;

namespace {

using enum PipelineSchedule;

/// What another order of sums may move a parameter by, as in zero_test.cpp: each gradient is a sum
/// of `summands` parts that together are at most 1 in size [Higham 2002, Sec. 4.2].
double bound_of_order(const PlannedWorkload& job, std::int64_t steps, int summands) {
  const PlannedOptimizer& o = job.optimizer_settings;
  return double(steps) * o.learning_rate / (1 - o.momentum) * (summands - 1) * 0x1p-24;
}

}  // namespace

TEST_CASE("devices under every stage of ZeRO take the steps of whole state, bit for bit") {
  require_device();
  const Optimizer optimizer = GENERATE(Optimizer::sgd_momentum, Optimizer::adamw);
  const int ranks = GENERATE(2, 4);
  const auto job = small_job(tiny_gpt(), optimizer, optimizer == Optimizer::adamw ? 1e-3 : 0.1, 8);
  const int own = 8 / ranks;
  const auto plain = on_devices(under(job, {.data = ranks}, own), 3);
  CHECK(plain[0].parameters != on_devices(under(job, {.data = ranks}, own), 0)[0].parameters);
  if (optimizer == Optimizer::sgd_momentum)
    check_moved(plain, train_under(under(job, {.data = ranks}, own), 3), under(job, {}, 8));
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage << " on " << ranks << " ranks");
    check_same(on_devices(under(job, {.data = ranks, .zero_stage = stage}, own), 3), plain);
  }
}

TEST_CASE("devices under ZeRO accumulate, clip and recompute as one rank does") {
  require_device();
  auto job = small_job(tiny_gpt(), Optimizer::sgd_momentum, 0.1, 8);
  job.optimizer_settings.clip_norm = 0.5;
  const auto alone = on_devices(under(job, {.data = 1}, 8), 3);
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    const auto cut = under(job, {.data = 2, .zero_stage = stage, .recompute = Recompute::full}, 2);
    CHECK(cut.strategy.layout.micro_batches == 2);
    const auto runs = on_devices(cut, 3);
    for (const LayoutRun& run : runs) {
      CHECK(run.parameters == runs[0].parameters);
      check_losses(run, alone[0], 1e-5);
      CHECK(largest_difference(run.parameters, alone[0].parameters) <= bound_of_order(job, 3, 8));
    }
    check_moved(runs, train_under(cut, 3), under(job, {}, 8));
    check_same(on_devices(cut, 3), runs);  // twice, the same bits
    auto waited = cut;
    waited.strategy.layout.overlap = false;
    check_same(on_devices(waited, 3), runs);
  }
}

TEST_CASE("devices under ZeRO keep frozen weights, batch norms and 16 bits as whole state does") {
  require_device();
  SECTION("frozen") {
    auto model = with_lora(tiny_gpt(0), {.rank = 2});
    REQUIRE(model);
    const auto job = small_job(std::move(*model), Optimizer::adamw, 1e-2, 4);
    const auto plain = on_devices(under(job, {.data = 2}, 2), 3);
    for (const int stage : {1, 2, 3})
      check_same(on_devices(under(job, {.data = 2, .zero_stage = stage}, 2), 3), plain);
  }
  SECTION("convolutions and batch norms") {
    const auto job = small_job(small_resnet(), Optimizer::sgd_momentum, 0.05, 4);
    const auto plain = on_devices(under(job, {.data = 2}, 2), 2);
    for (const int stage : {1, 2, 3})
      check_same(on_devices(under(job, {.data = 2, .zero_stage = stage}, 2), 2), plain);
  }
  SECTION("16 bits") {
    auto job = small_job(tiny_gpt(), Optimizer::adamw, 1e-3, 4);
    job.precision = GENERATE(Precision::bf16, Precision::fp16);
    const auto precision = job.precision == Precision::bf16 ? cuda::DevicePrecision::bf16
                                                            : cuda::DevicePrecision::fp16;
    const auto plain = on_devices(under(job, {.data = 2}, 2), 3, precision);
    for (const int stage : {1, 2, 3})
      check_same(on_devices(under(job, {.data = 2, .zero_stage = stage}, 2), 3, precision), plain);
  }
}

TEST_CASE("stages on devices train what one device trains that accumulates, bit for bit") {
  require_device();
  const auto job = GENERATE(small_job(small_mlp(4), Optimizer::adamw, 1e-2, 8),
                            small_job(small_resnet(), Optimizer::sgd_momentum, 0.05, 4));
  const auto expected = whole_of(on_devices(under(job, {}, 2), 2));
  for (const Layout& layout : {Layout{.pipeline = 2, .schedule = gpipe},
                               Layout{.pipeline = 2, .schedule = one_forward_one_backward}})
    check_close(whole_of(on_devices(under(job, layout, 2), 2)), expected, 0);
}

TEST_CASE("every schedule on devices gives the same bits, with parts of stages and 16 bits") {
  require_device();
  auto job = small_job(small_mlp(8), Optimizer::sgd_momentum, 0.05, 8);
  const auto expected = whole_of(on_devices(under(job, {}, 2), 2));
  for (const Layout& layout : {Layout{.pipeline = 4, .schedule = one_forward_one_backward},
                               Layout{.pipeline = 2, .schedule = interleaved, .interleave = 2},
                               Layout{.pipeline = 4, .schedule = interleaved, .interleave = 2}})
    check_close(whole_of(on_devices(under(job, layout, 2), 2)), expected, 0);
  job.precision = Precision::bf16;
  constexpr auto bf16 = cuda::DevicePrecision::bf16;
  check_close(whole_of(on_devices(under(job, {.pipeline = 2}, 2), 2, bf16)),
              whole_of(on_devices(under(job, {}, 2), 2, bf16)), 0);
}

TEST_CASE("a table that stages on devices share is one, under ZeRO and recomputation, too") {
  require_device();
  const auto job = small_job(tiny_gpt(), Optimizer::sgd_momentum, 0.1, 8);
  const auto alone = on_devices(under(job, {}, 8), 2);
  for (const int stage : {0, 1, 2, 3})
    for (const bool again : {false, true}) {
      if (again && stage < 3) continue;
      INFO("stage " << stage);
      const Layout layout{.data = 2,
                          .pipeline = 2,
                          .zero_stage = stage,
                          .recompute = again ? Recompute::full : Recompute::none};
      const auto cut = under(job, layout, 2);
      const auto runs = on_devices(cut, 2);
      // 8 samples, which two stages have gradients of.
      check_close(whole_of(runs), whole_of(alone), bound_of_order(job, 2, 16));
      check_losses(runs[0], alone[0], 1e-5);
      if (again) check_close(whole_of(on_devices(cut, 2)), whole_of(runs), 0);  // the same bits
      if (!again) check_moved(runs, train_under(cut, 2), under(job, {}, 8));
    }
}

namespace {

/// Two steps of tensor ranks on devices: those of one device, and of tensor ranks on CPUs.
void check_tensor(const ModelGraph& model, int tensor, bool sequence_parallel) {
  const auto job = small_job(model, Optimizer::sgd_momentum, 0.1, 2);
  const auto alone = on_devices(under(job, {}, 2), 2);
  const auto cut = under(job, {.tensor = tensor, .sequence_parallel = sequence_parallel}, 2);
  const auto runs = on_devices(cut, 2);
  check_moved(runs, alone, under(job, {}, 2));
  check_moved(runs, train_under(cut, 2), under(job, {}, 2));
  if (sequence_parallel) check_close(whole_of(on_devices(cut, 2)), whole_of(runs), 0);  // twice
}

/// Two steps of a product are one device's.
void check_product(const Layout& layout, int micro_batch,
                   const ModelGraph& model = parallel_llama(2)) {
  auto job = small_job(model, Optimizer::sgd_momentum, 0.1, 4);
  job.optimizer_settings.clip_norm = 0.5;
  check_moved(on_devices(under(job, layout, micro_batch), 2), on_devices(under(job, {}, 4), 2),
              under(job, {}, 4));
}

}  // namespace

TEST_CASE("two tensor ranks on devices have the steps of one device, and of ranks on CPUs: GPT") {
  require_device();
  check_tensor(parallel_gpt2(), 2, false);
  check_tensor(parallel_gpt2(1), 2, true);  // one key-value head, which both have
}

TEST_CASE("four tensor ranks on devices have the steps of one device: GPT") {
  require_device();
  check_tensor(parallel_gpt2(), 4, true);
}

TEST_CASE("two tensor ranks on devices have the steps of one device, and of ranks on CPUs: Llama") {
  require_device();
  check_tensor(parallel_llama(2), 2, true);
  check_tensor(parallel_qwen(), 2, false);
}

TEST_CASE("four tensor ranks on devices have the steps of one device: Llama, two share a head") {
  require_device();
  check_tensor(parallel_llama(2), 4, true);
}

TEST_CASE("tensor ranks on devices drop the features that one device drops, as ranks on CPUs do") {
  require_device();
  const ModelGraph model = parallel_inner_dropout();
  const auto rank = make_rank_model(model, place_in_model({.tensor = 2}, {}));
  REQUIRE(rank);
  CHECK(std::ranges::any_of(rank->layers, [](const RankLayer& layer) {
    return std::holds_alternative<Dropout>(layer.layer.op) && layer.part.features.total == 30;
  }));
  check_tensor(model, 2, false);
  check_tensor(model, 2, true);
  check_tensor(model, 4, true);  // of 8, 8, 7 and 7 features
  auto job = small_job(model, Optimizer::sgd_momentum, 0.1, 4);
  const auto cut = under(job, {.tensor = 2, .context = 2, .recompute = Recompute::full}, 2);
  check_moved(on_devices(cut, 2), on_devices(under(job, {}, 4), 2), under(job, {}, 4));
  check_moved(on_devices(cut, 2), train_under(cut, 2), under(job, {}, 4));
}

TEST_CASE("tensor ranks under ZeRO 3 on devices are one device's training") {
  require_device();
  check_product({.data = 2, .tensor = 2, .zero_stage = 3}, 2);
}

TEST_CASE("stages of tensor ranks on devices are one device's training") {
  require_device();
  check_product(
      {.tensor = 2, .pipeline = 2, .sequence_parallel = true, .recompute = Recompute::full}, 1);
}

TEST_CASE("data x tensor x stages under ZeRO 1 on devices are one device's training") {
  require_device();
  check_product({.data = 2, .tensor = 2, .pipeline = 2, .zero_stage = 1}, 1);
}

TEST_CASE("tensor ranks of a stage that ZeRO shards sum what they share once a step") {
  require_device();
  check_product({.data = 2, .tensor = 2, .pipeline = 2, .zero_stage = 2}, 1, parallel_gpt2());
}

TEST_CASE("devices evaluate as CPUs do, and train on as without") {
  require_device();
  const auto job = small_job(parallel_llama(2), Optimizer::sgd_momentum, 0.1, 4);
  auto evaluated = job;
  evaluated.dataset.samples = Fact<Samples>{Samples{4}};
  evaluated.steps = 2;
  evaluated.evaluate_every_epochs = 1;
  for (const Layout& layout : {Layout{.data = 2, .zero_stage = 3}, Layout{.pipeline = 2}}) {
    const auto here = on_devices(under(evaluated, layout, 2), 2);
    check_same(here, on_devices(under(job, layout, 2), 2));
    const auto on_cpus = train_under(under(evaluated, layout, 2), 2);
    REQUIRE(here[0].evaluations.size() == 2);
    for (std::size_t k = 0; k < 2; ++k)
      CHECK(here[0].evaluations[k] == Approx(on_cpus[0].evaluations[k]).epsilon(1e-4));
  }
}

TEST_CASE("stages of tensor ranks on devices in bf16 are those on CPUs, to its rounding") {
  require_device();
  auto job = small_job(parallel_llama(2), Optimizer::sgd_momentum, 0.1, 4);
  job.precision = Precision::bf16;
  const auto cut = under(job, {.tensor = 2, .pipeline = 2}, 2);
  check_moved(on_devices(cut, 2, cuda::DevicePrecision::bf16), train_under(cut, 2),
              under(job, {}, 4), 0x1p-8);
}

TEST_CASE("what devices save goes on under another layout, on devices and on CPUs, bit for bit") {
  require_device();
  const RankMaker device = device_maker(cuda::DevicePrecision::fp32);
  const auto job = small_job(tiny_gpt(), Optimizer::adamw, 1e-3, 4);
  const std::vector<PlannedWorkload> layouts{
      under(job, {.data = 2, .zero_stage = 3}, 2), under(job, {.data = 2, .zero_stage = 1}, 2),
      under(job, {.data = 4, .zero_stage = 2}, 1), under(job, {.data = 2}, 2),
      under(job, {.data = 2, .pipeline = 2}, 1),   under(job, {.tensor = 2}, 4)};
  const Scratch scratch;
  std::int64_t step = 0;
  for (const PlannedWorkload& layout : layouts) {
    const auto runs = go_on(layout, scratch.path(), step, step + 1, device);
    ++step;
    const PlannedWorkload& next = layouts[static_cast<std::size_t>(step) % layouts.size()];
    for (const RankMaker& maker : {device, RankMaker{}}) {
      const Scratch copy;
      std::filesystem::copy(scratch.path(), copy.path(), std::filesystem::copy_options::recursive);
      // Read again without a step: the same parameters.
      CHECK((whole_of(go_on(next, copy.path(), step, step, maker)) == whole_of(runs)));
    }
  }
  // A run that was saved and read under ZeRO 3 has the moments of one that was not.
  const Scratch whole, parts;
  const auto straight = go_on(layouts[0], whole.path(), 0, 3, device);
  go_on(layouts[0], parts.path(), 0, 1, device);
  CHECK((whole_of(go_on(layouts[0], parts.path(), 1, 3, device)) == whole_of(straight)));
}
