#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include "executor/train/layout_jobs.h"
#include "executor/train/networks.h"

// A training that goes on under another optimizer, whose state begins at zero.
using namespace reckon;
using namespace reckon::test;

TEST_CASE("an optimizer that begins behind some steps makes the first update of one that is new") {
  constexpr std::int64_t kBefore = 1000;
  constexpr double kRate = 1e-3;
  auto job = under(small_job(small_gpt2(0), Optimizer::adamw, kRate), {.data = 1}, 8);
  job.precision = GENERATE(Precision::fp32, Precision::fp16);
  job.optimizer_settings.weight_decay = 0;
  const bool half = job.precision == Precision::fp16;
  auto alone = make_thread_communicators(1);
  Workers workers(1);
  const auto data = open_data({}, {}, job.model, 9, 40);
  LayoutTraining training = make_layout_training(
      job, *alone[0], {.batch = 8, .seed = 4, .rounding = half ? Rounding::fp16 : Rounding::none},
      workers);
  Trainer trainer(job.model,
                  {.share = training.share,
                   .micro_batch = 8,
                   .steps = kBefore + 1,
                   .seed = 4,
                   .optimizer = job.optimizer_settings,
                   .optimizer_buffers = 2,
                   .loss_scale = half ? std::optional<LossScale>(LossScale(1024)) : std::nullopt},
                  *data, *training.exchange, workers, std::move(training.runtime));
  const std::vector<float> drawn(trainer.parameters().begin(), trainer.parameters().end());
  for (const RestoreTensor& t : trainer.restore(kBefore))
    if (t.slice.name.starts_with(kOptimizerTensors)) std::ranges::fill(t.bytes, std::byte{});
  trainer.begin_optimizer();
  CHECK(trainer.optimizer_began() == kBefore);
  trainer.start();
  const std::vector<float> before(trainer.parameters().begin(), trainer.parameters().end());
  CHECK(before == drawn);
  trainer.train_until(kBefore + 1, {});
  double most = 0;
  for (std::size_t i = 0; i < before.size(); ++i)
    most = std::max(most, std::abs(double{trainer.parameters()[i]} - double{before[i]}));
  // m / (1 - beta1) over the root of v / (1 - beta2), of the one gradient: its sign.
  CHECK(most <= 1.001 * kRate);
  CHECK(most >= 0.5 * kRate);
}
