#pragma once
#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "executor/comm/thread_communicator.h"
#include "executor/train/layouts/layout_training.h"
#include "executor/train/networks.h"
#include "executor/train/recipe/recipe.h"

// Small jobs under any layout, their ranks as threads.
namespace reckon::test {

inline PlannedWorkload small_job(ModelGraph model, Optimizer optimizer, double rate,
                                 std::int64_t batch = 16) {
  PlannedWorkload job{.model = std::move(model), .optimizer = optimizer, .global_batch = batch};
  job.optimizer_settings = {.learning_rate = rate, .weight_decay = 0.01};
  return job;
}

/// The same job under a layout, with passes of `micro_batch` samples.
inline PlannedWorkload under(PlannedWorkload job, Layout layout, int micro_batch) {
  job.strategy.kind = StrategyKind::model_parallel;
  job.strategy.workers = int(layout.accelerators());
  job.strategy.accelerators_per_worker = 0;
  job.strategy.layout = layout;
  job.strategy.layout.micro_batch = micro_batch;
  job.strategy.layout = layout_of(job);
  return job;
}

/// What a rank has when it has trained.
struct LayoutRun {
  std::vector<double> losses;     // of all samples
  std::vector<float> parameters;  // of its layout: all of the network's, or a stage's
  /// Whole tensors, NaN where other ranks have them; without copies; with running statistics.
  std::map<std::string, std::vector<float>> by_name;
  std::vector<double> seconds;
  std::vector<Bytes> sent;    // by this rank
  std::vector<bool> skipped;  // of fp16, by step; and the scales of the loss
  std::vector<double> scales;
  std::vector<double> evaluations;  // losses of all validation samples; after so many steps:
  std::vector<std::int64_t> evaluated_after;
};
/// Samples to validate on, in whole batches of all ranks.
inline constexpr std::int64_t kValidation = 32;
using AtEnd = std::function<void(Trainer&, GradientExchange&, Communicator&)>;
/// What a rank trains on, made in its thread; empty: a CPU.
using RankMaker = std::function<std::unique_ptr<LayoutMaker>()>;

/// Behind take_final_values().
inline void take_tensors(Trainer& trainer, LayoutRun& run) {
  run.parameters.assign(trainer.parameters().begin(), trainer.parameters().end());
  for (const auto& [slice, bytes] : trainer.trained()) {
    std::vector<float>& whole = run.by_name[slice.name];
    whole.resize(std::size_t(elements(slice.global)), std::numeric_limits<float>::quiet_NaN());
    copy_box(slice.box, slice.box, bytes, whole_box(slice.global),
             std::as_writable_bytes(std::span(whole)), sizeof(float));
  }
}

inline LayoutRun train_rank(const PlannedWorkload& job, Communicator& peers, std::int64_t steps,
                            const AtEnd& at_end = {}, float first_scale = LossScale::kFirst,
                            const RankMaker& maker = {}) {
  const std::unique_ptr<LayoutMaker> made = maker ? maker() : nullptr;
  Workers workers(1);
  const auto data = open_data({}, {}, job.model, 9, 40);
  const auto validation = open_data({}, {}, job.model, 10, kValidation);
  const RuntimeOptions passes{.batch = job.strategy.layout.micro_batch,
                              .recompute = job.strategy.layout.recompute,
                              .seed = 4,
                              .rounding = rounding_of(job.precision)};
  LayoutTraining training = make_layout_training(job, peers, passes, workers, made.get());
  GradientExchange& exchange = *training.exchange;
  Trainer trainer(
      job.model,
      {.share = training.share,
       .micro_batch = passes.batch,
       .steps = steps,
       .seed = 4,
       .recompute = passes.recompute,
       .optimizer = job.optimizer_settings,
       .optimizer_buffers = job.optimizer == Optimizer::adamw ? 2u : 1u,
       .loss_scale =
           job.precision == Precision::fp16 ? std::optional(LossScale(first_scale)) : std::nullopt,
       .validation = job.evaluate_every_epochs ? validation.get() : nullptr,
       .evaluations = [&](std::int64_t done) { return evaluations_after(job, done); }},
      *data, exchange, workers, std::move(training.runtime));
  trainer.start();
  LayoutRun run;
  TrainerHooks hooks;
  hooks.measured = [&](const StepMeasurement& m) {
    run.losses.push_back(m.loss);
    run.seconds.push_back(m.seconds.count());
    run.sent.push_back(m.exchange.sent);
    run.skipped.push_back(m.exchange.skipped);
    run.scales.push_back(m.loss_scale);
  };
  hooks.mean_loss = [&](double loss) {
    peers.all_reduce(std::span(&loss, 1));
    return loss / peers.size();
  };
  hooks.evaluated = [&](const EvaluationMeasurement& m) {
    run.evaluations.push_back(hooks.mean_loss(m.loss));
    run.evaluated_after.push_back(m.steps_done);
  };
  trainer.train(hooks);
  if (at_end) at_end(trainer, exchange, peers);
  exchange.take_final_values();
  take_tensors(trainer, run);
  return run;
}

/// By rank. What a rank throws is thrown here.
inline std::vector<LayoutRun> train_under(const PlannedWorkload& job, std::int64_t steps,
                                          const AtEnd& at_end = {},
                                          float first_scale = LossScale::kFirst,
                                          const RankMaker& maker = {}) {
  const int ranks = job.strategy.workers;
  auto communicators = make_thread_communicators(ranks, Seconds{60});
  std::vector<LayoutRun> runs(static_cast<std::size_t>(ranks));
  std::vector<std::exception_ptr> failures(runs.size());
  std::vector<std::jthread> threads;
  for (auto& c : communicators)
    threads.emplace_back([&, mine = std::move(c)]() mutable {
      const auto k = static_cast<std::size_t>(mine->rank());
      try {
        runs[k] = train_rank(job, *mine, steps, at_end, first_scale, maker);
      } catch (const std::exception&) {
        failures[k] = std::current_exception();
      }
      mine.reset();
    });
  threads.clear();
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return runs;
}

/// A perceptron whose layers a pipeline may share out.
inline ModelGraph small_mlp(int blocks) {
  LayerList net(16);
  LayerId x = net.add("image", InputLayer{}, std::vector<LayerId>{});
  for (int k = 0; k < blocks; ++k) {
    const std::string name = "block" + std::to_string(k);
    net.set_group(name);
    x = net.add(name + ".linear", Linear{.in = k == 0 ? 48 : 32, .out = 32}, x);
    x = net.add(name + ".relu", Activation{ActivationKind::relu}, x);
  }
  net.set_group("head");
  x = net.add("fc", Linear{.in = 32, .out = 4}, x);
  net.add("loss", SoftmaxCrossEntropy{4}, x);
  return network(SampleUnit::image, {48}, net);
}

/// All ranks' tensors together; those that several have are the same.
inline std::map<std::string, std::vector<float>> whole_of(const std::vector<LayoutRun>& runs) {
  std::map<std::string, std::vector<float>> whole;
  for (const LayoutRun& run : runs)
    for (const auto& [name, values] : run.by_name) {
      std::vector<float>& all = whole.try_emplace(name, values).first->second;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (std::isnan(values[i])) continue;
        if (std::isnan(all[i])) all[i] = values[i];
        if (all[i] != values[i]) throw std::runtime_error("ranks differ in " + name);
      }
    }
  return whole;
}

inline double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return 1e9;
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    worst = std::max(worst, std::abs(double{a[i]} - double{b[i]}));
  return worst;
}

/// Tensors of two trainings, whatever ranks had them.
inline void check_close(const std::map<std::string, std::vector<float>>& a,
                        const std::map<std::string, std::vector<float>>& b, double bound) {
  REQUIRE(a.size() == b.size());
  for (const auto& [name, values] : a) {
    INFO(name);
    REQUIRE(b.contains(name));
    CHECK(largest_difference(values, b.at(name)) <= bound);
  }
}

inline void check_losses(const LayoutRun& a, const LayoutRun& b, double relative) {
  REQUIRE(a.losses.size() == b.losses.size());
  for (std::size_t k = 0; k < a.losses.size(); ++k)
    CHECK(a.losses[k] == Approx(b.losses[k]).epsilon(relative));
}

}  // namespace reckon::test
