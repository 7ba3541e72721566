#include <catch2/catch.hpp>
#include <cmath>

#include "executor/comm/all_reduce_exchange.h"
#include "executor/train/layout_jobs.h"
#include "executor/train/networks.h"
#include "kernels/half.h"

using namespace reckon;
using namespace reckon::test;

namespace {

/// Loss and gradients of a pass that holds its tensors in 16 bits, against the double-precision
/// runtime; `scale`: of the loss.
template <class E>
void compare_rounded(const ModelGraph& model, Rounding rounding, Recompute recompute,
                     double scale) {
  Trial<double> expected(model, 3);
  std::vector<float> values;
  for (double& v : expected.values.span()) {
    v = double{to_float(from_float<E>(static_cast<float>(v)))};  // exact in both
    values.push_back(static_cast<float>(v));
  }
  const double loss = expected.loss();
  expected.backward();
  Workers workers(2);
  GraphRuntime<float> runtime(
      model, {.batch = 3, .recompute = recompute, .seed = 3, .rounding = rounding}, workers);
  std::vector<float> gradients(values.size());
  const double got = runtime.forward(expected.data.view(), values, {2, 0}, true);
  runtime.backward(values, gradients, scale, {});
  // As on a device [tests/gpu/device_runtime_gpu_test.cpp]: some forty tensors are rounded on the
  // way, there and back; twice the root of their number; norms lose up to two bits more.
  const double u = rounding == Rounding::bf16 ? 0x1p-8 : 0x1p-11;
  const double share = 4 * 2 * std::sqrt(80.0) * u / 2;
  CHECK(got == Approx(loss).epsilon(share));
  CHECK(got != loss);  // it was rounded
  double errors = 0, squares = 0;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const double error = gradients[i] / scale - expected.gradients.data()[i];
    errors += error * error;
    squares += expected.gradients.data()[i] * expected.gradients.data()[i];
  }
  CHECK(std::sqrt(errors) <= share * std::sqrt(squares));
}

PlannedWorkload half_job(Optimizer optimizer, double clip_norm = 0) {
  auto job = small_job(small_gpt2(0.1), optimizer, optimizer == Optimizer::adamw ? 1e-3 : 0.1);
  job.precision = Precision::fp16;
  job.optimizer_settings.clip_norm = clip_norm;
  return job;
}

/// Layouts of two ranks and more that share state, layers or neither.
std::vector<Layout> layouts_of_half() {
  return {{.data = 2},
          {.data = 2, .zero_stage = 1},
          {.data = 2, .zero_stage = 2},
          {.data = 2, .zero_stage = 3},
          {.data = 2, .tensor = 2, .sequence_parallel = true},
          {.data = 2, .pipeline = 2}};
}

/// Some rank's gradients overflow in every step.
class NeverFinite final : public GradientExchange {
 public:
  void start(ParameterView) override {}
  void gradient_ready(ParameterRange) override {}
  void scaled_by(double, std::int64_t) override {}
  ExchangeTimes finish_step(std::int64_t step, double) override {
    ExchangeTimes times;
    times.skipped = true;
    times.next_step = step + 1;
    return times;
  }
  std::vector<std::span<float>> optimizer_state() override { return {}; }
  void restore_optimizer_state() override {}
};

}  // namespace

TEST_CASE("passes in bf16 and fp16 are the double-precision runtime's, to their roundings") {
  const auto recompute = GENERATE(Recompute::none, Recompute::full);
  // Ids of a recommender's rows are none of the numbers that are rounded.
  for (const auto& model : {small_resnet(), small_gpt2(0.1), small_recommender(4, 3000, 700)}) {
    compare_rounded<Bf16>(model, Rounding::bf16, recompute, 1);
    compare_rounded<Half>(model, Rounding::fp16, recompute, 1024);
  }
}

TEST_CASE("a pass in 16 bits has the same bits with any number of threads") {
  const ModelGraph model = small_gpt2(0.1);
  std::vector<std::vector<float>> all;
  for (const int threads : {1, 4}) {
    Trial<float> trial(model, 3);
    Workers workers(threads);
    GraphRuntime<float> runtime(model, {.batch = 3, .seed = 3, .rounding = Rounding::fp16},
                                workers);
    std::vector<float>& gradients = all.emplace_back(trial.values.size());
    runtime.forward(trial.data.view(), trial.values.span(), {2, 0}, true);
    runtime.backward(trial.values.span(), gradients, 512, {});
  }
  CHECK(all[0] == all[1]);
}

TEST_CASE("the scale of the loss doubles behind 2,000 good steps and halves behind an overflow") {
  LossScale scale;
  CHECK(scale.scale() == 65536);
  for (int k = 0; k < 1999; ++k) scale.step_done(false);
  CHECK(scale.scale() == 65536);
  scale.step_done(false);
  CHECK(scale.scale() == 2 * 65536);
  CHECK(scale.good_steps() == 0);
  for (int k = 0; k < 1999; ++k) scale.step_done(false);
  scale.step_done(true);  // the count begins anew
  CHECK(scale.scale() == 65536);
  CHECK(scale.skipped_steps() == 1);
  for (int k = 0; k < 1999; ++k) scale.step_done(false);
  CHECK(scale.scale() == 65536);
  LossScale large(0x1p127F);  // it stays a number
  for (int k = 0; k < 2000; ++k) large.step_done(false);
  CHECK(large.scale() == 0x1p127);
}

TEST_CASE("gradients of a scaled loss make the update of the unscaled, bit for bit") {
  const bool adam = GENERATE(true, false);
  const double clip = GENERATE(0.0, 0.01);
  const OptimizerRule rule = adam ? OptimizerRule(AdamW{}) : OptimizerRule(SgdMomentum{});
  std::vector<std::vector<float>> ends;
  for (const double scale : {1.0, 4096.0}) {  // a power of two: exact
    auto alone = make_thread_communicators(1);
    std::vector<float> values(100, 0.5F), gradients(100);
    const auto exchange = make_all_reduce_exchange(
        *alone[0], {.optimizer = rule, .trained = {{0, 100, true}}, .clip_norm = clip});
    exchange->start({values, gradients});
    for (std::int64_t step = 0; step < 5; ++step) {
      for (std::size_t i = 0; i < 100; ++i)
        gradients[i] = static_cast<float>(scale) * 0.001F * static_cast<float>(i % 7);
      exchange->gradient_ready({0, 100});
      if (scale > 1) exchange->scaled_by(scale, 0);
      CHECK_FALSE(exchange->finish_step(step, 0.1).skipped);
    }
    ends.push_back(values);
  }
  if (clip == 0) CHECK(ends[0] == ends[1]);
  for (std::size_t i = 0; i < 100; ++i) CHECK(ends[0][i] == Approx(ends[1][i]).epsilon(1e-6));
}

TEST_CASE("a gradient that overflows on one rank keeps all ranks from the update") {
  for (const Layout& layout : layouts_of_half()) {
    INFO("tensor " << layout.tensor << " pipeline " << layout.pipeline << " zero "
                   << layout.zero_stage);
    const auto optimizer = GENERATE(Optimizer::adamw, Optimizer::sgd_momentum);
    const PlannedWorkload job = under(half_job(optimizer), layout, 4);
    // A token's slope is up to 2^28 / (16 x 24) then, and leaves fp16 down to a scale of 2^25: the
    // first steps update nothing.
    constexpr float kTooLarge = 0x1p28F;
    const auto runs = train_under(job, 12, {}, kTooLarge);
    std::size_t skipped = 0;
    while (runs[0].skipped[skipped]) ++skipped;
    CHECK(skipped >= 4);
    CHECK(skipped < 12);
    for (const LayoutRun& run : runs) {
      CHECK(run.skipped == runs[0].skipped);
      CHECK(run.scales == runs[0].scales);
      for (std::size_t k = 0; k < run.scales.size(); ++k)
        CHECK(run.scales[k] == std::ldexp(kTooLarge, -int(std::min(k, skipped))));
    }
    // The parameters stood still: the losses differ by their samples alone.
    const auto undisturbed = train_under(job, std::int64_t(skipped), {}, kTooLarge);
    const auto none = train_under(job, 0);
    CHECK(whole_of(undisturbed) == whole_of(none));
    CHECK(whole_of(runs) != whole_of(none));
    // Again the same bits.
    CHECK(whole_of(train_under(job, 12, {}, kTooLarge)) == whole_of(runs));
  }
}

TEST_CASE("layouts in fp16 train what one rank trains, to roundings") {
  const auto losses_of = [](const std::vector<LayoutRun>& runs) { return runs[0].losses; };
  PlannedWorkload job = half_job(Optimizer::sgd_momentum, 1.0);
  const auto expected = losses_of(train_under(under(job, {}, 16), 8));
  job.precision = Precision::fp32;
  const auto exact = losses_of(train_under(under(job, {}, 16), 8));
  job.precision = Precision::fp16;
  for (const Layout& layout : layouts_of_half()) {
    const auto losses = losses_of(train_under(under(job, layout, 4), 8));
    REQUIRE(losses.size() == expected.size());
    for (std::size_t k = 0; k < losses.size(); ++k) {
      // Forty tensors rounded on the way in each of the steps so far.
      const double bound = 0x1p-11 * std::sqrt(40.0) * double(k + 1);
      CHECK(losses[k] == Approx(expected[k]).epsilon(bound));
      CHECK(losses[k] == Approx(exact[k]).epsilon(bound));
    }
  }
}

TEST_CASE("where no scale helps the training says so") {
  NeverFinite exchange;
  const PlannedWorkload job = half_job(Optimizer::sgd_momentum);
  Workers workers(1);
  const auto data = open_data({}, {}, job.model, 9, 40);
  Trainer trainer(job.model, {.share = {}, .steps = 100, .loss_scale = LossScale()}, *data,
                  exchange, workers);
  trainer.start();
  CHECK_THROWS_WITH(trainer.train({}),
                    Catch::Contains("not finite at a loss scale of 5.96e-08 either") &&
                        Catch::Contains("precision bf16"));
  CHECK(trainer.steps_done() == 40);  // 2^16 -> 2^-24, and the last
}

TEST_CASE("a training that goes on has the scale and its counts, and takes the same steps") {
  const PlannedWorkload job = under(half_job(Optimizer::adamw), {.data = 1}, 8);
  constexpr std::int64_t kSteps = 14;
  const auto whole = train_under(job, kSteps, {}, 0x1p22F);
  auto alone = make_thread_communicators(1);
  Workers workers(1);
  const auto data = open_data({}, {}, job.model, 9, 40);
  std::map<std::string, std::vector<std::byte>> kept;
  std::vector<float> end;
  for (const std::int64_t until : {std::int64_t{3}, std::int64_t{7}, kSteps}) {
    const RuntimeOptions passes{.batch = 8, .seed = 4, .rounding = Rounding::fp16};
    LayoutTraining training = make_layout_training(job, *alone[0], passes, workers);
    Trainer trainer(job.model,
                    {.share = training.share,
                     .micro_batch = 8,
                     .steps = kSteps,
                     .seed = 4,
                     .optimizer = job.optimizer_settings,
                     .optimizer_buffers = 2,
                     .loss_scale = LossScale(0x1p22F)},
                    *data, *training.exchange, workers, std::move(training.runtime));
    if (!kept.empty())
      for (const RestoreTensor& t : trainer.restore(until == 7 ? 3 : 7)) {
        REQUIRE(kept.contains(t.slice.name));
        std::ranges::copy(kept.at(t.slice.name), t.bytes.begin());
      }
    trainer.start();
    trainer.train_until(until, {});
    kept.clear();
    for (const StateTensor& t : trainer.state())
      kept[t.slice.name] = {t.bytes.begin(), t.bytes.end()};
    REQUIRE(kept.contains("loss_scale"));
    end.assign(trainer.parameters().begin(), trainer.parameters().end());
  }
  CHECK(end == whole[0].parameters);
}
