#include "executor/train/trainer.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <thread>

#include "executor/comm/all_reduce_exchange.h"
#include "executor/comm/thread_communicator.h"
#include "executor/train/data/order.h"
#include "executor/train/initialise.h"
#include "executor/train/layout_jobs.h"
#include "executor/train/networks.h"
#include "executor/train/recipe/recipe.h"

using namespace reckon;

namespace {

PlannedWorkload trainer_workload(ModelGraph model, Optimizer optimizer, double rate) {
  PlannedWorkload job{.model = std::move(model), .optimizer = optimizer, .global_batch = 8};
  job.optimizer_settings = {.learning_rate = rate, .weight_decay = 0.01};
  return job;
}

TrainerOptions trainer_options_of(const PlannedWorkload& job, std::int64_t steps) {
  return {.share = share_of(job, 0, 1),
          .micro_batch = job.global_batch,
          .steps = steps,
          .seed = 4,
          .optimizer = job.optimizer_settings,
          .optimizer_buffers = job.optimizer == Optimizer::adamw ? 2u : 1u};
}

struct TrainerTrained {
  std::vector<double> losses;
  std::vector<float> parameters;
};

/// One rank, or one of several.
TrainerTrained trainer_train(const PlannedWorkload& job, const TrainerOptions& options,
                             Communicator& communicator, int threads = 1) {
  Workers workers(threads);
  const auto data = open_data({}, {}, job.model, 9, 40);
  const auto exchange = make_all_reduce_exchange(
      communicator,
      {.optimizer = optimizer_rule(job), .trained = trained_ranges(parameter_layout(job.model))});
  Trainer trainer(job.model, options, *data, *exchange, workers);
  trainer.start();
  TrainerTrained result;
  TrainerHooks hooks;
  hooks.measured = [&](const StepMeasurement& m) { result.losses.push_back(m.loss); };
  hooks.mean_loss = [&](double loss) {
    std::vector<double> sum{loss};
    communicator.all_reduce(sum);
    return sum[0] / communicator.size();
  };
  trainer.train(hooks);
  result.parameters.assign(trainer.parameters().begin(), trainer.parameters().end());
  return result;
}

TrainerTrained train_alone(const PlannedWorkload& job, const TrainerOptions& options,
                           int threads = 1) {
  const auto communicators = make_thread_communicators(1);
  return trainer_train(job, options, *communicators[0], threads);
}

/// Ten steps in double: the same data, the optimizers' formulas written out.
TrainerTrained one_rank_reference(const PlannedWorkload& job, std::int64_t steps) {
  Workers workers(1);
  const std::int64_t batch = job.global_batch;
  GraphRuntime<double> runtime(job.model, {.batch = batch, .seed = 4}, workers);
  const auto data = open_data({}, {}, job.model, 9, 40);
  const ParameterLayout& layout = runtime.layout();
  std::vector<float> first(layout.count);
  initialise(job.model, layout, 4, workers, first);
  std::vector<double> w(first.begin(), first.end()), m(w.size()), v(w.size());
  SampleBatch samples(sample_format(job.model), batch);
  const PlannedOptimizer& o = job.optimizer_settings;
  TrainerTrained result;
  for (std::int64_t step = 0; step < steps; ++step) {
    for (std::int64_t i = 0; i < batch; ++i)
      data->read(sample_at(4, 40, step * batch + i), samples, i);
    std::vector<double> g(w.size());
    result.losses.push_back(runtime.forward(samples.view(), w, {step, 0}, true));
    runtime.backward(w, g, 1, {});
    for (const TrainedRange& range : trained_ranges(layout)) {
      const double decay = range.decays ? o.weight_decay : 0;
      for (std::size_t i = range.first; i < range.first + range.count; ++i) {
        if (job.optimizer == Optimizer::sgd_momentum) {
          m[i] = o.momentum * m[i] + g[i] + decay * w[i];
          w[i] -= o.learning_rate * m[i];
          continue;
        }
        m[i] = o.beta1 * m[i] + (1 - o.beta1) * g[i];
        v[i] = o.beta2 * v[i] + (1 - o.beta2) * g[i] * g[i];
        const double t = static_cast<double>(step) + 1;
        const double mean = m[i] / (1 - std::pow(o.beta1, t));
        const double square = v[i] / (1 - std::pow(o.beta2, t));
        w[i] -= o.learning_rate * (mean / (std::sqrt(square) + o.epsilon) + decay * w[i]);
      }
    }
  }
  result.parameters.assign(w.begin(), w.end());
  return result;
}

void trainer_check_losses(const std::vector<double>& a, const std::vector<double>& b,
                          double relative) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).epsilon(relative));
}

}  // namespace

TEST_CASE("ten steps of a small ResNet follow the double-precision reference") {
  const auto job = trainer_workload(test::small_resnet(), Optimizer::sgd_momentum, 0.05);
  const TrainerTrained ours = train_alone(job, trainer_options_of(job, 10)),
                       exact = one_rank_reference(job, 10);
  trainer_check_losses(ours.losses, exact.losses, 1e-4);
  CHECK(test::largest_difference(ours.parameters, exact.parameters) < 1e-3);
  CHECK(ours.losses.back() != Approx(ours.losses.front()).epsilon(1e-3));  // it moved
}

TEST_CASE("ten steps of a small GPT-2 follow the double-precision reference") {
  const auto job = trainer_workload(test::small_gpt2(0.1), Optimizer::adamw, 1e-3);
  const TrainerTrained ours = train_alone(job, trainer_options_of(job, 10)),
                       exact = one_rank_reference(job, 10);
  trainer_check_losses(ours.losses, exact.losses, 1e-4);
  // Where a gradient is all rounding, AdamW moves by up to the learning rate whatever its size.
  CHECK(test::largest_difference(ours.parameters, exact.parameters) < 5e-3);
}

TEST_CASE("accumulating four micro-batches is one pass over all of them, to rounding") {
  // Dropout too: masks belong to the sample's place in the step. Not so batch norm, whose
  // statistics are those of a micro-batch.
  const auto job = trainer_workload(test::small_gpt2(0.1), Optimizer::sgd_momentum, 0.1);
  TrainerOptions options = trainer_options_of(job, 5);
  const TrainerTrained whole = train_alone(job, options);
  options.micro_batch = 2;
  const TrainerTrained parts = train_alone(job, options);
  trainer_check_losses(parts.losses, whole.losses, 1e-5);
  CHECK(test::largest_difference(parts.parameters, whole.parameters) < 1e-5);
}

TEST_CASE("four ranks with a quarter of the batch each do what one rank does, to rounding") {
  const auto job = trainer_workload(test::small_gpt2(0.1), Optimizer::sgd_momentum, 0.1);
  const TrainerTrained alone = train_alone(job, trainer_options_of(job, 5));
  auto communicators = make_thread_communicators(4);
  std::vector<TrainerTrained> ranks(4);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 4; ++rank)
      threads.emplace_back([&, rank] {
        TrainerOptions options = trainer_options_of(job, 5);
        options.share = share_of(job, rank, 4);
        options.micro_batch = options.share.own;
        const auto k = static_cast<std::size_t>(rank);
        ranks[k] = trainer_train(job, options, *communicators[k]);
      });
  }
  for (const TrainerTrained& rank : ranks) {
    CHECK(rank.parameters == ranks[0].parameters);
    trainer_check_losses(rank.losses, alone.losses, 1e-5);
    CHECK(test::largest_difference(rank.parameters, alone.parameters) < 1e-5);
  }
}

TEST_CASE(
    "the exchange of the loss is communication that nothing hides, and parts fit into a step") {
  using namespace std::chrono_literals;
  constexpr auto kExchange = 20ms;  // at least
  const auto job = trainer_workload(test::small_gpt2(0), Optimizer::sgd_momentum, 0.1);
  auto communicators = make_thread_communicators(2);
  std::vector<std::vector<StepMeasurement>> ranks(2);
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 2; ++rank)
      threads.emplace_back([&, rank] {
        const auto k = static_cast<std::size_t>(rank);
        TrainerOptions options = trainer_options_of(job, 3);
        options.share = share_of(job, rank, 2);
        options.micro_batch = options.share.own;
        Workers workers(1);
        const auto data = open_data({}, {}, job.model, 9, 40);
        const auto exchange = make_all_reduce_exchange(
            *communicators[k], {.optimizer = optimizer_rule(job),
                                .trained = trained_ranges(parameter_layout(job.model))});
        Trainer trainer(job.model, options, *data, *exchange, workers);
        trainer.start();
        TrainerHooks hooks;
        hooks.measured = [&](const StepMeasurement& m) { ranks[k].push_back(m); };
        hooks.mean_loss = [&](double loss) {
          std::this_thread::sleep_for(kExchange);
          return loss;
        };
        trainer.train(hooks);
      });
  }
  for (const auto& steps : ranks) {
    REQUIRE(steps.size() == 3);
    for (const StepMeasurement& m : steps) {
      CHECK(m.exchange.exposed_communication >= Seconds{kExchange});
      CHECK(m.exchange.communication >= Seconds{kExchange});
      const Seconds parts = m.data_wait + m.forward + m.backward +
                            m.exchange.exposed_communication + m.exchange.apply;
      CHECK(parts <= m.seconds);
    }
  }
}

TEST_CASE("a step is recorded before it is saved, without what the save takes") {
  constexpr Seconds kSave{0.02};  // at least
  const auto job = trainer_workload(test::small_gpt2(0), Optimizer::sgd_momentum, 0.1);
  Workers workers(1);
  const auto data = open_data({}, {}, job.model, 9, 40);
  const auto communicators = make_thread_communicators(1);
  const auto exchange = make_all_reduce_exchange(
      *communicators[0],
      {.optimizer = optimizer_rule(job), .trained = trained_ranges(parameter_layout(job.model))});
  Trainer trainer(job.model, trainer_options_of(job, 3), *data, *exchange, workers);
  trainer.start();
  std::vector<std::string> order;
  Seconds recorded{}, saves{};
  TrainerHooks hooks;
  hooks.record = [&](const StepMeasurement& m) {
    order.push_back("record " + std::to_string(m.step));
    recorded += m.seconds;
  };
  hooks.checkpoint = [&](std::int64_t done) {
    order.push_back("save " + std::to_string(done));
    std::this_thread::sleep_for(kSave);
  };
  hooks.measured = [&](const StepMeasurement& m) {
    order.push_back("measured " + std::to_string(m.step));
    CHECK(m.checkpoint >= kSave);
    saves += m.checkpoint;
  };
  const auto begin = std::chrono::steady_clock::now();
  trainer.train(hooks);
  const Seconds all = std::chrono::steady_clock::now() - begin;
  CHECK(order == std::vector<std::string>{"record 0", "save 1", "measured 0", "record 1", "save 2",
                                          "measured 1", "record 2", "save 3", "measured 2"});
  CHECK(recorded + saves <= all);
}

TEST_CASE("threads and recomputation change no bit of a training") {
  const bool images = GENERATE(true, false);
  const auto job = images ? trainer_workload(test::small_resnet(), Optimizer::sgd_momentum, 0.05)
                          : trainer_workload(test::small_gpt2(0.1), Optimizer::adamw, 1e-3);
  const TrainerTrained plain = train_alone(job, trainer_options_of(job, 4));
  CHECK(train_alone(job, trainer_options_of(job, 4), 3).parameters == plain.parameters);
  TrainerOptions options = trainer_options_of(job, 4);
  options.data_threads = 3;
  options.recompute = Recompute::full;
  CHECK(train_alone(job, options).parameters == plain.parameters);
}

TEST_CASE("a resumed training ends with the bits of an undisturbed one") {
  const bool images = GENERATE(true, false);
  const auto job = images ? trainer_workload(test::small_resnet(), Optimizer::sgd_momentum, 0.05)
                          : trainer_workload(test::small_gpt2(0.1), Optimizer::adamw, 1e-3);
  const TrainerTrained whole = train_alone(job, trainer_options_of(job, 7));
  const auto communicators = make_thread_communicators(1);
  const auto data = open_data({}, {}, job.model, 9, 40);
  Workers workers(1);
  const auto exchange_of = [&] {
    return make_all_reduce_exchange(
        *communicators[0],
        {.optimizer = optimizer_rule(job), .trained = trained_ranges(parameter_layout(job.model))});
  };
  const auto first_exchange = exchange_of(), second_exchange = exchange_of();
  Trainer first(job.model, trainer_options_of(job, 7), *data, *first_exchange, workers);
  TrainerHooks hooks;
  hooks.stop = [](std::int64_t steps_done) { return steps_done == 3; };
  first.start();
  first.train(hooks);

  Trainer second(job.model, trainer_options_of(job, 7), *data, *second_exchange, workers);
  const auto saved = first.state();
  const auto targets = second.restore(first.steps_done());
  REQUIRE(saved.size() == targets.size());
  for (std::size_t k = 0; k < saved.size(); ++k) {
    CHECK(saved[k].slice == targets[k].slice);
    REQUIRE(saved[k].bytes.size() == targets[k].bytes.size());
    std::ranges::copy(saved[k].bytes, targets[k].bytes.begin());
  }
  second.start();
  second.train({});
  CHECK(std::ranges::equal(second.parameters(), whole.parameters));
}

TEST_CASE("parameters that are no numbers behind a loss that is one are not handed out") {
  auto job =
      trainer_workload(test::small_gpt2(0), Optimizer::sgd_momentum, 1e40);  // infinite as a float
  job.optimizer_settings.weight_decay = 0;
  Workers workers(1);
  const auto communicators = make_thread_communicators(1);
  const auto data = open_data({}, {}, job.model, 9, 40);
  const auto exchange = make_all_reduce_exchange(
      *communicators[0],
      {.optimizer = optimizer_rule(job), .trained = trained_ranges(parameter_layout(job.model))});
  // The last step: no loss is behind it.
  Trainer trainer(job.model, trainer_options_of(job, 1), *data, *exchange, workers);
  trainer.start();
  trainer.train({});
  CHECK_THROWS_WITH(trainer.state(),
                    Catch::Contains("a parameter is ") && Catch::Contains(" after 1 steps"));
}

TEST_CASE("a loss that is not a number ends the training with its step and learning rate") {
  auto job = trainer_workload(test::small_gpt2(0), Optimizer::sgd_momentum, 1e30);
  job.optimizer_settings.weight_decay = 0;
  try {
    train_alone(job, trainer_options_of(job, 10));
    FAIL("it went on");
  } catch (const TrainingError& e) {
    CHECK_THAT(e.what(), Catch::Matchers::Contains("the loss of step ") &&
                             Catch::Matchers::Contains("lower learning rate (now 1e+30)"));
  }
}

TEST_CASE("gradients of each layer are announced once, last layer first, and then are final") {
  struct Recorder : GradientExchange {
    ParameterView view;
    std::vector<ParameterRange> ranges;
    std::vector<float> at_ready, at_end;
    void start(ParameterView v) override {
      view = v;
      at_ready.resize(v.gradients.size());
    }
    void gradient_ready(ParameterRange r) override {
      ranges.push_back(r);
      std::copy_n(view.gradients.begin() + static_cast<std::ptrdiff_t>(r.first), r.count,
                  at_ready.begin() + static_cast<std::ptrdiff_t>(r.first));
    }
    ExchangeTimes finish_step(std::int64_t step, double) override {
      at_end.assign(view.gradients.begin(), view.gradients.end());
      return {.next_step = step + 1};
    }
    std::vector<std::span<float>> optimizer_state() override { return {}; }
    void restore_optimizer_state() override {}
  } recorder;
  const auto job = trainer_workload(test::small_gpt2(0), Optimizer::adamw, 1e-3);
  const auto data = open_data({}, {}, job.model, 9, 40);
  Workers workers(1);
  TrainerOptions options = trainer_options_of(job, 1);
  options.micro_batch = 4;
  Trainer trainer(job.model, options, *data, recorder, workers);
  trainer.start();
  trainer.train({});
  CHECK(recorder.at_ready == recorder.at_end);
  std::size_t end = trainer.layout().count, covered = 0;
  for (const ParameterRange& range : recorder.ranges) {
    CHECK(range.first + range.count <= end);  // the tied head has no range of its own
    end = range.first;
    covered += range.count;
  }
  CHECK(covered == trainer.layout().count);
}

TEST_CASE("learning rates warm up, then stay, fall in steps or follow a cosine") {
  PlannedOptimizer o{.learning_rate = 0.8, .warmup_steps = 4};
  CHECK(learning_rate(o, 0, 104) == Approx(0.2));
  CHECK(learning_rate(o, 3, 104) == 0.8);
  CHECK(learning_rate(o, 90, 104) == 0.8);
  o.schedule = LearningRateSchedule::cosine;
  o.final_fraction = 0.25;
  CHECK(learning_rate(o, 4, 105) == 0.8);
  CHECK(learning_rate(o, 54, 105) == Approx(0.8 * 0.625));  // half way: mean of 1 and 0.25
  CHECK(learning_rate(o, 104, 105) == Approx(0.2));
  o.schedule = LearningRateSchedule::step;
  o.decay_every = 30;
  o.decay_factor = 0.1;
  CHECK(learning_rate(o, 29, 105) == 0.8);
  CHECK(learning_rate(o, 30, 105) == Approx(0.08));
  CHECK(learning_rate(o, 60, 105) == Approx(0.008));
}
