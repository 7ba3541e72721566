#include "executor/train/parallel_networks.h"
#include "executor/train/resumed_layouts.h"
#include "gpu/device_layouts.h"

// Ranks on devices that share the tokens of a sample out, against one rank and ranks on CPUs.
using namespace reckon;
using namespace reckon::test;

namespace {

/// Two steps: those of one device, those of the same ranks on CPUs, and the same bits again.
void check_context(const ModelGraph& model, const Layout& layout, int micro_batch) {
  INFO("data " << layout.data << ", context " << layout.context << ", tensor " << layout.tensor
               << ", stages " << layout.pipeline << ", ZeRO " << layout.zero_stage);
  auto job = small_job(model, Optimizer::sgd_momentum, 0.1, 4);
  job.optimizer_settings.clip_norm = 0.5;
  const auto cut = under(job, layout, micro_batch);
  const auto runs = on_devices(cut, 2);
  check_moved(runs, on_devices(under(job, {}, 4), 2), under(job, {}, 4));
  check_moved(runs, train_under(cut, 2), under(job, {}, 4));
  check_same(on_devices(cut, 2), runs);
}

/// Tokens that see the last five alone: some pieces see nothing of others.
ModelGraph windowed_llama() {
  TransformerDimensions d = small_dimensions();
  d.kv_heads = 2;
  d.feed_forward = 48;
  d.positions = 0;
  d.window = 5;
  d.gated_feed_forward = d.rms_norm = true;
  d.dropout = 0;
  return made(d);
}

}  // namespace

TEST_CASE("two devices that share tokens out have the steps of one, and of ranks on CPUs") {
  require_device();
  check_context(parallel_gpt2(), {.context = 2}, 4);
  check_context(parallel_llama(2), {.context = 2, .recompute = Recompute::full}, 2);
}

TEST_CASE("four devices that share tokens out have the steps of one, with shared heads, windows") {
  require_device();
  check_context(parallel_llama(2), {.context = 4}, 4);
  check_context(windowed_llama(), {.context = 4}, 4);
  check_context(parallel_gpt2(1), {.context = 4}, 2);
}

TEST_CASE("context x data under ZeRO, x tensor, x stages on devices are one device's training") {
  require_device();
  check_context(parallel_llama(2), {.data = 2, .context = 2, .zero_stage = 3}, 1);
  check_context(parallel_gpt2(), {.tensor = 2, .context = 2, .sequence_parallel = true}, 4);
  check_context(parallel_llama(2), {.pipeline = 2, .context = 2}, 2);
}

TEST_CASE("experts x context ranks on devices are one device's training") {
  require_device();
  check_context(parallel_mixture(true), {.data = 2, .context = 2, .expert = 2}, 2);
}

TEST_CASE("devices that share tokens out in 16 bits are those on CPUs, to its rounding") {
  require_device();
  auto job = small_job(parallel_llama(2), Optimizer::sgd_momentum, 0.1, 4);
  job.precision = Precision::bf16;
  const auto cut = under(job, {.context = 2}, 4);
  const auto runs = on_devices(cut, 2, cuda::DevicePrecision::bf16);
  check_moved(runs, train_under(cut, 2), under(job, {}, 4), 0x1p-8);
  check_same(on_devices(cut, 2, cuda::DevicePrecision::bf16), runs);
}

TEST_CASE("what devices that share tokens out save goes on without, and on CPUs, bit for bit") {
  require_device();
  const RankMaker device = device_maker(cuda::DevicePrecision::fp32);
  const auto job = small_job(parallel_gpt2(), Optimizer::adamw, 1e-3, 4);
  const Scratch scratch;
  const auto runs = go_on(under(job, {.context = 2}, 4), scratch.path(), 0, 1, device);
  for (const RankMaker& maker : {device, RankMaker{}}) {
    const Scratch copy;
    std::filesystem::copy(scratch.path(), copy.path(), std::filesystem::copy_options::recursive);
    CHECK(
        (whole_of(go_on(under(job, {.data = 2}, 2), copy.path(), 1, 1, maker)) == whole_of(runs)));
  }
}
