#include "executor/cuda/device_layouts.h"

#include "executor/train/layout_jobs.h"
#include "gpu/device.h"
#include "sim/model/finetune.h"

// Ranks that cut state or model, as threads that share one device (or its emulator) and exchange
// through the host's memory, against ranks on CPUs and against one rank.
using namespace reckon;
using namespace reckon::test;

namespace {

std::vector<LayoutRun> on_device(const PlannedWorkload& job, std::int64_t steps,
                                 cuda::DevicePrecision precision = cuda::DevicePrecision::fp32,
                                 const AtEnd& at_end = {}) {
  return train_under(job, steps, at_end, LossScale::kFirst, [precision] {
    return cuda::make_device_layouts(
        precision, nullptr, [](Communicator& hosts) { return cuda::make_staged_group(hosts); });
  });
}

ModelGraph tiny_gpt(double dropout = 0.1, int layers = 2) {
  auto made = make_transformer("gpt2", {.layers = layers,
                                        .hidden = 16,
                                        .heads = 2,
                                        .vocabulary = 29,
                                        .sequence_length = 8,
                                        .positions = 8,
                                        .dropout = dropout});
  return std::move(*made);
}

void check_same(const std::vector<LayoutRun>& a, const std::vector<LayoutRun>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t rank = 0; rank < a.size(); ++rank) {
    CHECK(a[rank].losses == b[rank].losses);
    CHECK(a[rank].parameters == b[rank].parameters);
  }
}

void check_losses(const LayoutRun& a, const LayoutRun& b, double relative) {
  REQUIRE(a.losses.size() == b.losses.size());
  for (std::size_t k = 0; k < a.losses.size(); ++k)
    CHECK(a.losses[k] == Approx(b.losses[k]).epsilon(relative));
}

/// What another order of sums may move a parameter by, as in zero_test.cpp: each gradient is a sum
/// of `summands` parts that together are at most 1 in size [Higham 2002, Sec. 4.2].
double bound_of_order(const PlannedWorkload& job, std::int64_t steps, int summands) {
  const PlannedOptimizer& o = job.optimizer_settings;
  return double(steps) * o.learning_rate / (1 - o.momentum) * (summands - 1) * 0x1p-24;
}

/// A device's gradient has the share of an error that device_runtime_gpu_test.cpp derives: forty
/// tensors rounded on the way there and back. A few steps of SGD move straight on, so what they
/// have moved has that share of an error, too.
void check_moved(const std::vector<LayoutRun>& device, const std::vector<LayoutRun>& cpu,
                 const PlannedWorkload& job) {
  const double share = 4 * 2 * std::sqrt(80.0) * 0x1p-22 / 2;
  const auto first = whole_of(train_under(job, 0)), there = whole_of(device), here = whole_of(cpu);
  std::vector<double> moved_there, moved_here;
  for (const auto& [name, values] : first)
    for (std::size_t i = 0; i < values.size(); ++i) {
      moved_there.push_back(double{there.at(name)[i]} - double{values[i]});
      moved_here.push_back(double{here.at(name)[i]} - double{values[i]});
    }
  check_share(moved_there, moved_here, share);
  check_losses(device[0], cpu[0], share);
}

}  // namespace

TEST_CASE("devices under every stage of ZeRO take the steps of whole state, bit for bit") {
  require_device();
  const Optimizer optimizer = GENERATE(Optimizer::sgd_momentum, Optimizer::adamw);
  const int ranks = GENERATE(2, 4);
  const auto job = small_job(tiny_gpt(), optimizer, optimizer == Optimizer::adamw ? 1e-3 : 0.1, 8);
  const int own = 8 / ranks;
  const auto plain = on_device(under(job, {.data = ranks}, own), 3);
  CHECK(plain[0].parameters != on_device(under(job, {.data = ranks}, own), 0)[0].parameters);
  if (optimizer == Optimizer::sgd_momentum)
    check_moved(plain, train_under(under(job, {.data = ranks}, own), 3), under(job, {}, 8));
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage << " on " << ranks << " ranks");
    check_same(on_device(under(job, {.data = ranks, .zero_stage = stage}, own), 3), plain);
  }
}

TEST_CASE("devices under ZeRO accumulate, clip and recompute as one rank does") {
  require_device();
  auto job = small_job(tiny_gpt(), Optimizer::sgd_momentum, 0.1, 8);
  job.optimizer_settings.clip_norm = 0.5;
  const auto alone = on_device(under(job, {.data = 1}, 8), 3);
  for (const int stage : {1, 2, 3}) {
    INFO("stage " << stage);
    const auto cut = under(job, {.data = 2, .zero_stage = stage, .recompute = Recompute::full}, 2);
    CHECK(cut.strategy.layout.micro_batches == 2);
    const auto runs = on_device(cut, 3);
    for (const LayoutRun& run : runs) {
      CHECK(run.parameters == runs[0].parameters);
      check_losses(run, alone[0], 1e-5);
      CHECK(largest_difference(run.parameters, alone[0].parameters) <= bound_of_order(job, 3, 8));
    }
    check_moved(runs, train_under(cut, 3), under(job, {}, 8));
    check_same(on_device(cut, 3), runs);  // twice, the same bits
    auto waited = cut;
    waited.strategy.layout.overlap = false;
    check_same(on_device(waited, 3), runs);
  }
}

TEST_CASE("devices under ZeRO keep frozen weights, batch norms and 16 bits as whole state does") {
  require_device();
  SECTION("frozen") {
    auto model = with_lora(tiny_gpt(0), {.rank = 2});
    REQUIRE(model);
    const auto job = small_job(std::move(*model), Optimizer::adamw, 1e-2, 4);
    const auto plain = on_device(under(job, {.data = 2}, 2), 3);
    for (const int stage : {1, 2, 3})
      check_same(on_device(under(job, {.data = 2, .zero_stage = stage}, 2), 3), plain);
  }
  SECTION("convolutions and batch norms") {
    const auto job = small_job(small_resnet(), Optimizer::sgd_momentum, 0.05, 4);
    const auto plain = on_device(under(job, {.data = 2}, 2), 2);
    for (const int stage : {1, 2, 3})
      check_same(on_device(under(job, {.data = 2, .zero_stage = stage}, 2), 2), plain);
  }
  SECTION("16 bits") {
    auto job = small_job(tiny_gpt(), Optimizer::adamw, 1e-3, 4);
    job.precision = GENERATE(Precision::bf16, Precision::fp16);
    const auto precision = job.precision == Precision::bf16 ? cuda::DevicePrecision::bf16
                                                            : cuda::DevicePrecision::fp16;
    const auto plain = on_device(under(job, {.data = 2}, 2), 3, precision);
    for (const int stage : {1, 2, 3})
      check_same(on_device(under(job, {.data = 2, .zero_stage = stage}, 2), 3, precision), plain);
  }
}
