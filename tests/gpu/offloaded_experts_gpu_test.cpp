#include "executor/train/parallel_networks.h"
#include "executor/train/resumed_layouts.h"
#include "gpu/device_layouts.h"

// Layout::offload_optimizer on devices that share experts out: against the optimizer that is there,
// one device, and ranks on CPUs.
using namespace reckon;
using namespace reckon::test;

namespace {

PlannedWorkload offloaded_mixture(PlannedWorkload job) {
  job.strategy.layout.offload_optimizer = true;
  return job;
}

/// Two devices with half of the experts each; four with two of a kind, and with a quarter each.
std::vector<Layout> layouts_of_experts(int stage) {
  return {{.data = 2, .expert = 2, .zero_stage = stage},
          {.data = 4, .expert = 2, .zero_stage = stage},
          {.data = 4, .expert = 4, .zero_stage = stage}};
}

PlannedWorkload mixture_under(PlannedWorkload job, const Layout& layout) {
  return under(std::move(job), layout, 4 / layout.data);
}

}  // namespace

TEST_CASE("an offloaded optimizer of experts takes the steps of the devices' own, bit for bit") {
  require_device();
  const auto job = small_job(parallel_mixture(true), Optimizer::adamw, 1e-3, 4);
  for (const int stage : {0, 1, 2, 3})
    for (const Layout& layout : layouts_of_experts(stage)) {
      INFO("stage " << stage << ", " << layout.data << " ranks, expert " << layout.expert);
      const auto cut = mixture_under(job, layout);
      const auto own = on_devices(cut, 2);
      CHECK(own[0].parameters != on_devices(cut, 0)[0].parameters);
      check_same(on_devices(offloaded_mixture(cut), 2), own);
    }
}

TEST_CASE("an offloaded optimizer of experts clips as one device and as ranks on CPUs do") {
  require_device();
  auto job = small_job(parallel_mixture(false), Optimizer::sgd_momentum, 0.1, 4);
  job.optimizer_settings.clip_norm = 0.5;
  const auto alone = on_devices(under(job, {}, 4), 2);
  for (const int stage : {0, 1, 2, 3})
    for (const Layout& layout : layouts_of_experts(stage)) {
      INFO("stage " << stage << ", " << layout.data << " ranks, expert " << layout.expert);
      const auto cut = offloaded_mixture(mixture_under(job, layout));
      const auto runs = on_devices(cut, 2);
      check_moved(runs, alone, under(job, {}, 4));
      check_moved(runs, train_under(cut, 2), under(job, {}, 4));
      check_same(on_devices(cut, 2), runs);  // twice, the same bits
    }
}

TEST_CASE("an offloaded optimizer of experts accumulates, in passes without overlap too") {
  require_device();
  auto job = small_job(parallel_mixture(false), Optimizer::sgd_momentum, 0.1, 8);
  job.optimizer_settings.clip_norm = 0.5;
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    const Layout layout{.data = 2, .expert = 2, .zero_stage = stage, .recompute = Recompute::full};
    auto cut = offloaded_mixture(under(job, layout, 2));
    CHECK(cut.strategy.layout.micro_batches == 2);
    const auto runs = on_devices(cut, 2);
    check_moved(runs, train_under(cut, 2), under(job, {}, 8));
    cut.strategy.layout.overlap = false;
    check_same(on_devices(cut, 2), runs);
  }
}

TEST_CASE("an offloaded optimizer of experts has the devices' bits in 16 bits, skips like it") {
  require_device();
  auto job = small_job(parallel_mixture(true), Optimizer::adamw, 1e-3, 4);
  job.precision = GENERATE(Precision::bf16, Precision::fp16);
  const bool scaled = job.precision == Precision::fp16;
  const auto precision = scaled ? cuda::DevicePrecision::fp16 : cuda::DevicePrecision::bf16;
  const auto train = [&](const PlannedWorkload& cut) {
    return train_under(cut, 8, {}, 0x1p26F, device_maker(precision));
  };
  for (const int stage : {0, 1, 3})
    for (const int data : {2, 4}) {
      INFO("stage " << stage << ", " << data << " ranks");
      const auto cut = mixture_under(job, {.data = data, .expert = 2, .zero_stage = stage});
      const auto own = train(cut), runs = train(offloaded_mixture(cut));
      CHECK(own[0].skipped.front() == scaled);
      check_same(runs, own);
      CHECK(runs[0].skipped == own[0].skipped);
    }
}

TEST_CASE("an offloaded optimizer of experts trains in stages and with tensor ranks as without") {
  require_device();
  const auto job = small_job(parallel_mixture(true), Optimizer::adamw, 1e-3, 4);
  for (const Layout& layout :
       {Layout{.data = 2, .pipeline = 2, .expert = 2, .zero_stage = 1},
        Layout{.data = 2, .pipeline = 2, .expert = 2, .zero_stage = 3},
        Layout{.data = 2, .tensor = 2, .expert = 2, .sequence_parallel = true}}) {
    const auto cut = under(job, layout, 1);
    const auto own = whole_of(on_devices(cut, 2));
    check_close(whole_of(on_devices(offloaded_mixture(cut), 2)), own, 0);
  }
}

TEST_CASE("what an offloaded optimizer of experts saves goes on without, and on CPUs") {
  require_device();
  const RankMaker device = device_maker(cuda::DevicePrecision::fp32);
  const auto job = small_job(parallel_mixture(false), Optimizer::adamw, 1e-3, 4);
  for (const int stage : {0, 1, 2, 3}) {
    INFO("stage " << stage);
    const auto cut = mixture_under(job, {.data = 4, .expert = 2, .zero_stage = stage});
    const Scratch straight, there, back;
    const auto whole = whole_of(go_on(cut, straight.path(), 0, 2, device));
    go_on(offloaded_mixture(cut), there.path(), 0, 1, device);
    CHECK((whole_of(go_on(cut, there.path(), 1, 2, device)) == whole));
    go_on(cut, back.path(), 0, 1, device);
    CHECK((whole_of(go_on(offloaded_mixture(cut), back.path(), 1, 2, device)) == whole));
    const auto on_cpus = mixture_under(job, {.data = 2, .expert = 2, .zero_stage = 3 - stage});
    CHECK((whole_of(go_on(on_cpus, back.path(), 2, 2)) == whole));
  }
}
