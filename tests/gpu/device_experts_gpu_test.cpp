#include "executor/train/parallel_networks.h"
#include "executor/train/resumed_layouts.h"
#include "gpu/device_layouts.h"

// Mixtures of experts on devices: one rank's against CPUs, and ranks that share experts out against
// one rank.
using namespace reckon;
using namespace reckon::test;

namespace {

/// Two steps: those of one device, those of the same ranks on CPUs, and the same bits again.
void check_experts(const ModelGraph& model, const Layout& layout, int micro_batch,
                   Optimizer optimizer = Optimizer::sgd_momentum) {
  INFO("data " << layout.data << ", expert " << layout.expert << ", tensor " << layout.tensor
               << ", stages " << layout.pipeline << ", ZeRO " << layout.zero_stage);
  auto job = small_job(model, optimizer, optimizer == Optimizer::adamw ? 1e-3 : 0.1, 4);
  job.optimizer_settings.clip_norm = 0.5;
  const auto cut = under(job, layout, micro_batch);
  const auto runs = on_devices(cut, 2), alone = on_devices(under(job, {}, 4), 2);
  check_moved(runs, alone, under(job, {}, 4));
  check_moved(runs, train_under(cut, 2), under(job, {}, 4));
  check_same(on_devices(cut, 2), runs);
}

}  // namespace

TEST_CASE("a mixture of experts on one device has the steps of a CPU") {
  require_device();
  for (const bool gate : {false, true}) {
    const auto job =
        under(small_job(parallel_mixture(gate), Optimizer::sgd_momentum, 0.1, 4), {}, 2);
    const auto runs = on_devices(job, 2);
    check_moved(runs, train_under(job, 2), job);
    check_same(on_devices(job, 2), runs);
  }
}

TEST_CASE("two devices that share experts out have the steps of one, and of ranks on CPUs") {
  require_device();
  check_experts(parallel_mixture(false), {.data = 2, .expert = 2}, 2);
  check_experts(parallel_mixture(true), {.data = 2, .expert = 2, .recompute = Recompute::full}, 1);
}

TEST_CASE("four devices that share experts out have the steps of one: two and four of a kind") {
  require_device();
  check_experts(parallel_mixture(false), {.data = 4, .expert = 4}, 1);
  check_experts(parallel_mixture(true), {.data = 4, .expert = 2}, 1);
}

TEST_CASE("ZeRO on devices cuts experts over their replicas, and all else over all that have it") {
  require_device();
  const auto job = small_job(parallel_mixture(false), Optimizer::adamw, 1e-3, 4);
  const auto plain = on_devices(under(job, {.data = 4, .expert = 2}, 1), 2);
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    const auto cut = under(job, {.data = 4, .expert = 2, .zero_stage = stage}, 1);
    check_same(on_devices(cut, 2), plain);
  }
  check_experts(parallel_mixture(false), {.data = 2, .expert = 2, .zero_stage = 3}, 1);
}

TEST_CASE("experts x tensor ranks, and stages, on devices are one device's training") {
  require_device();
  check_experts(parallel_mixture(true),
                {.data = 2, .tensor = 2, .expert = 2, .sequence_parallel = true}, 2);
  check_experts(parallel_mixture(false), {.data = 2, .pipeline = 2, .expert = 2, .zero_stage = 1},
                1);
}

TEST_CASE("devices that share experts out repeat bit for bit in 16 bits") {
  require_device();
  auto job = small_job(parallel_mixture(true), Optimizer::adamw, 1e-3, 4);
  job.precision = GENERATE(Precision::bf16, Precision::fp16);
  const auto precision =
      job.precision == Precision::bf16 ? cuda::DevicePrecision::bf16 : cuda::DevicePrecision::fp16;
  const auto cut = under(job, {.data = 2, .expert = 2}, 2);
  const auto runs = on_devices(cut, 3, precision);
  check_same(on_devices(cut, 3, precision), runs);
  // Of the first step, before a rounded score sends a row elsewhere.
  const double u = job.precision == Precision::bf16 ? 0x1p-8 : 0x1p-11;
  CHECK(runs[0].losses[0] ==
        Approx(on_devices(under(job, {}, 4), 1, precision)[0].losses[0]).epsilon(4 * u));
}

TEST_CASE("what devices that share experts out save goes on without, and on CPUs, bit for bit") {
  require_device();
  const RankMaker device = device_maker(cuda::DevicePrecision::fp32);
  const auto job = small_job(parallel_mixture(false), Optimizer::adamw, 1e-3, 4);
  const std::vector<PlannedWorkload> layouts{
      under(job, {.data = 2, .expert = 2}, 2),
      under(job, {.data = 4, .expert = 2, .zero_stage = 3}, 1), under(job, {.data = 2}, 2)};
  const Scratch scratch;
  for (std::int64_t step = 0; step < 3; ++step) {
    const auto runs = go_on(layouts[std::size_t(step)], scratch.path(), step, step + 1, device);
    const PlannedWorkload& next = layouts[std::size_t(step + 1) % 3];
    for (const RankMaker& maker : {device, RankMaker{}}) {
      const Scratch copy;
      std::filesystem::copy(scratch.path(), copy.path(), std::filesystem::copy_options::recursive);
      CHECK((whole_of(go_on(next, copy.path(), step + 1, step + 1, maker)) == whole_of(runs)));
    }
  }
}
