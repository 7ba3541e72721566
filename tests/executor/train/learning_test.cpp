#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <numbers>

#include "executor/comm/all_reduce_exchange.h"
#include "executor/comm/thread_communicator.h"
#include "executor/train/networks.h"
#include "executor/train/recipe/recipe.h"
#include "executor/train/trainer.h"
#include "sim/base/random.h"

// Real learning: the whole of the executor on one core, to a stated loss, on data that it has not
// seen where that can be asked.
using namespace reckon;

namespace {

constexpr Purpose kStripes{"stripes"};

/// Stripes of random phase, width, contrast and colour under noise; the class is their direction:
/// 0, 45, 90 or 135 degrees. Images (3, 16, 16), made as they are read.
struct StripedImages : DataSource {
  std::int64_t first = 0, count = 2048;
  std::int64_t samples() const override { return count; }
  void read(std::int64_t index, SampleBatch& batch, std::int64_t at) const override {
    RandomStream random(1, 0, kStripes, static_cast<std::uint32_t>(first + index));
    const auto direction = static_cast<int>(random.uniform() * 4);
    const double angle = direction * std::numbers::pi / 4;
    const double phase = random.uniform() * 2 * std::numbers::pi;
    const double wave = 0.9 + 0.9 * random.uniform();  // radians a pixel
    std::array<double, 3> colour{};
    for (double& c : colour) c = 0.5 + random.uniform();
    const auto pixels = batch.input(0, at);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const auto x = static_cast<double>(i % 16), y = static_cast<double>(i / 16 % 16);
      const double along = x * std::cos(angle) + y * std::sin(angle);
      pixels[i] = static_cast<float>(colour[i / 256] * std::sin(wave * along + phase) +
                                     0.7 * random.normal());
    }
    batch.target(0, at)[0] = static_cast<float>(direction);
  }
};

struct Task {
  PlannedWorkload job;
  std::int64_t steps;
};

/// Trains on one thread; the mean loss of the last tenth of the steps. `then` sees the trainer.
double learn(const Task& task, const DataSource& data, const std::function<void(Trainer&)>& then) {
  const auto communicators = make_thread_communicators(1);
  const auto exchange = make_all_reduce_exchange(
      *communicators[0], {.optimizer = optimizer_rule(task.job),
                          .trained = trained_ranges(parameter_layout(task.job.model)),
                          .clip_norm = task.job.optimizer_settings.clip_norm});
  Workers workers(1);
  Trainer trainer(task.job.model,
                  {.share = share_of(task.job, 0, 1),
                   .micro_batch = task.job.global_batch,
                   .steps = task.steps,
                   .optimizer = task.job.optimizer_settings},
                  data, *exchange, workers);
  trainer.start();
  double sum = 0;
  std::int64_t counted = 0;
  TrainerHooks hooks;
  hooks.measured = [&](const StepMeasurement& m) {
    if (m.step < task.steps - task.steps / 10) return;
    sum += m.loss;
    ++counted;
  };
  trainer.train(hooks);
  if (then) then(trainer);
  return sum / static_cast<double>(counted);
}

Task language_task(std::int64_t steps) {
  auto model = make_transformer("characters", {.layers = 2,
                                               .hidden = 64,
                                               .heads = 4,
                                               .vocabulary = 64,
                                               .sequence_length = 48,
                                               .positions = 48});
  PlannedWorkload job{
      .model = std::move(*model), .optimizer = Optimizer::adamw, .global_batch = 16};
  job.optimizer_settings = {.learning_rate = 3e-3,
                            .beta2 = 0.95,
                            .weight_decay = 0.1,
                            .clip_norm = 1,
                            .schedule = LearningRateSchedule::cosine,
                            .warmup_steps = steps / 20,
                            .final_fraction = 0.1};
  return {std::move(job), steps};
}

const std::string kText = RECKON_SOURCE_DIR "/tests/data/sonnets.txt";

/// Nats a character of the best guess that looks at the `context` characters before it, counted on
/// the text itself: what a model that learned no more would reach at best.
double entropy_of_text(std::size_t context) {
  std::ifstream file(kText);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::map<std::string, std::map<char, double>> counts;
  for (std::size_t i = context; i < text.size(); ++i)
    counts[text.substr(i - context, context)][text[i]] += 1;
  double nats = 0, total = 0;
  for (const auto& [before, next] : counts) {
    double sum = 0;
    for (const auto& [c, n] : next) sum += n;
    for (const auto& [c, n] : next) nats -= n * std::log(n / sum);
    total += sum;
  }
  return nats / total;
}

}  // namespace

TEST_CASE("a small ResNet learns the direction of stripes to 95 % on images it has not seen") {
  PlannedWorkload job{.model = test::small_resnet(), .global_batch = 32};
  job.optimizer_settings = {.learning_rate = 0.1,
                            .weight_decay = 1e-4,
                            .schedule = LearningRateSchedule::cosine,
                            .warmup_steps = 5};
  const Task task{std::move(job), 60};
  double held_out = 0;
  const double loss = learn(task, StripedImages{}, [&](Trainer& trainer) {
    StripedImages unseen;
    unseen.first = 1'000'000;
    SampleBatch batch(sample_format(task.job.model), 32);
    for (int k = 0; k < 8; ++k) {
      for (std::int64_t i = 0; i < 32; ++i) unseen.read(32 * k + i, batch, i);
      held_out += trainer.evaluate(batch.view()) / 8;
    }
  });
  // Guessing is ln 4 = 1.386. A mean loss below 0.05 cannot come from more than 0.05 / ln 2 = 7 %
  // of images with less than half of the probability on their class; 0.034 from 5 %.
  CHECK(loss < 0.1);
  CHECK(held_out < 0.034);
}

TEST_CASE("a character transformer learns more of sonnets than the frequency of letters") {
  const auto data =
      open_data({DataFormat::characters, kText}, {}, language_task(1).job.model, 1, 0);
  const double letters = entropy_of_text(0);
  CHECK(letters == Approx(3.080).margin(0.001));
  CHECK(learn(language_task(150), *data, {}) < 2.4);
}

TEST_CASE("a character transformer learns sonnets by heart, far below what pairs of letters allow",
          "[.long]") {
  const auto data =
      open_data({DataFormat::characters, kText}, {}, language_task(1).job.model, 1, 0);
  const double pairs = entropy_of_text(1);
  CHECK(pairs == Approx(2.255).margin(0.001));
  CHECK(learn(language_task(800), *data, {}) < 0.2);
}
