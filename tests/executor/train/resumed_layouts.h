#pragma once
#include <catch2/catch.hpp>

#include "executor/train/checkpoint/checkpoint.h"
#include "executor/train/checkpoint/tensor_reader.h"
#include "executor/train/checkpoint_support.h"
#include "executor/train/layout_jobs.h"

// Jobs of layout_jobs.h that save, and go on from what was saved, under another layout or on other
// hardware.
namespace reckon::test {

inline CheckpointOptions options_of(const std::filesystem::path& directory,
                                    const PlannedWorkload& job, int rank) {
  CheckpointOptions o;
  o.directory = directory;
  o.identity = {"job", "gpt2", job.strategy.workers};
  o.rank = rank;
  o.deadline = Seconds{20};
  o.parts = true;
  return o;
}

/// Trains from the directory's newest set, or from the beginning, to `steps`, and saves there.
/// `alone`: each rank reads its own part of the set only, as from its node.
inline std::vector<LayoutRun> go_on(const PlannedWorkload& job,
                                    const std::filesystem::path& directory, std::int64_t from,
                                    std::int64_t steps, const RankMaker& maker = {},
                                    bool alone = false) {
  const int ranks = job.strategy.workers;
  auto communicators = make_thread_communicators(ranks, Seconds{60});
  std::vector<LayoutRun> runs(static_cast<std::size_t>(ranks));
  std::vector<std::jthread> threads;
  for (auto& c : communicators)
    threads.emplace_back([&, mine = std::move(c)] {
      const std::unique_ptr<LayoutMaker> made = maker ? maker() : nullptr;
      Workers workers(1);
      const auto data = open_data({}, {}, job.model, 9, 40);
      const RuntimeOptions passes{.batch = job.strategy.layout.micro_batch, .seed = 4};
      LayoutTraining training = make_layout_training(job, *mine, passes, workers, made.get());
      GradientExchange& exchange = *training.exchange;
      Trainer trainer(job.model,
                      {.share = training.share,
                       .micro_batch = passes.batch,
                       .steps = 8,
                       .seed = 4,
                       .optimizer = job.optimizer_settings,
                       .optimizer_buffers = 2},
                      *data, exchange, workers, std::move(training.runtime));
      CheckpointStore store(options_of(directory, job, mine->rank()));
      if (from > 0) {
        const auto targets = trainer.restore(from);
        if (alone)
          TensorReader({shard_file(set_directory(directory, from), mine->rank())})
              .read_state(targets);
        else
          CHECK(store.load(from, targets).at("step") == from);
      }
      trainer.start();
      LayoutRun& run = runs[std::size_t(mine->rank())];
      TrainerHooks hooks;
      hooks.mean_loss = [&](double loss) {
        mine->all_reduce(std::span(&loss, 1));
        return loss / mine->size();
      };
      hooks.measured = [&](const StepMeasurement& m) { run.losses.push_back(m.loss); };
      trainer.train_until(steps, hooks);
      const auto state = trainer.state();
      store.save(trainer.steps_done(), {{"step", steps}}, state);
      store.finish();
      exchange.take_final_values();
      take_tensors(trainer, run);
    });
  threads.clear();
  return runs;
}

}  // namespace reckon::test
