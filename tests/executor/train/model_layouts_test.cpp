#include <catch2/catch.hpp>
#include <mutex>

#include "executor/train/layout_jobs.h"
#include "executor/train/parallel_cases.h"
#include "executor/train/parallel_networks.h"

// Layouts as the worker trains them: exchange, optimizer, clipping and checkpoints among them.
using namespace reckon;
using namespace reckon::test;

namespace {

struct Trained {
  std::vector<double> losses;
  Tensors<float> parameters;
  friend bool operator==(const Trained&, const Trained&) = default;
};

Trained train(const PlannedWorkload& job) {
  Trained trained;
  std::mutex mutex;
  const auto runs =
      train_under(job, 10, [&](Trainer& trainer, GradientExchange& exchange, Communicator&) {
        exchange.take_final_values();
        const auto tensors = trainer.trained();
        const std::lock_guard lock(mutex);
        for (const StateTensor& tensor : tensors) {
          std::vector<float>& whole = trained.parameters[tensor.slice.name];
          whole.resize(static_cast<std::size_t>(elements(tensor.slice.global)));
          const Box& box = tensor.slice.box;
          copy_box(box, box, tensor.bytes, whole_box(tensor.slice.global),
                   std::as_writable_bytes(std::span(whole)), sizeof(float));
        }
      });
  trained.losses = runs[0].losses;
  return trained;
}

PlannedWorkload job_of(const ModelGraph& model, Optimizer optimizer) {
  auto job = small_job(model, optimizer, optimizer == Optimizer::adamw ? 1e-3 : 0.1, 8);
  job.optimizer_settings.clip_norm = 0.5;
  return job;
}

/// The bounds are those of check_training().
void check(const ModelGraph& model, const Layout& layout, Optimizer optimizer) {
  INFO(text_of(layout) << ", pipeline " << layout.pipeline << ", ZeRO " << layout.zero_stage);
  const auto job = job_of(model, optimizer);
  const Trained alone = train(under(job, {}, 2));
  const Trained shared = train(under(job, layout, 2));
  REQUIRE(shared.losses.size() == alone.losses.size());
  for (std::size_t step = 0; step < alone.losses.size(); ++step)
    CHECK(shared.losses[step] == Approx(alone.losses[step]).epsilon(1e-5));
  CHECK(largest_error(shared.parameters, alone.parameters, 1e-2) <
        (optimizer == Optimizer::adamw ? kAdamWBound : kSgdBound));
  CHECK(train(under(job, layout, 2)) == shared);
}

Layout product(int data, int tensor, int context, int pipeline) {
  Layout layout;
  layout.data = data;
  layout.tensor = tensor;
  layout.context = context;
  layout.pipeline = pipeline;
  layout.sequence_parallel = tensor > 1;
  return layout;
}

}  // namespace

TEST_CASE("the worker's training under tensor, context and pipeline ranks is one rank's") {
  const ModelGraph gpt = parallel_gpt2(), llama = parallel_llama(2);
  for (const Layout& layout : {product(1, 2, 1, 1), product(2, 2, 1, 1), product(1, 2, 1, 2),
                               product(1, 1, 2, 2), product(2, 1, 2, 1)}) {
    check(gpt, layout, Optimizer::sgd_momentum);
    check(llama, layout, Optimizer::adamw);
  }
}

TEST_CASE("ZeRO's shards are parts of what a tensor rank holds") {
  const ModelGraph llama = parallel_llama(2);
  for (const int stage : {1, 2, 3}) {
    Layout layout = product(2, 2, 1, 1);
    layout.zero_stage = stage;
    check(llama, layout, Optimizer::sgd_momentum);
    check(llama, layout, Optimizer::adamw);
    layout = product(1, 1, 2, 1);
    layout.zero_stage = stage;
    check(llama, layout, Optimizer::sgd_momentum);
  }
}

TEST_CASE("all ways to share a dense network at once") {
  Layout layout = product(2, 2, 2, 2);
  layout.zero_stage = 1;
  check(parallel_gpt2(), layout, Optimizer::sgd_momentum);
}

TEST_CASE("experts have replicas of their own, and count once in the gradient's norm") {
  const ModelGraph model = parallel_mixture(true);
  for (const int tensor : {1, 2}) {
    Layout layout = product(2, tensor, 1, 1);
    layout.expert = 2;
    check(model, layout, Optimizer::sgd_momentum);
    layout.data = 4;
    check(model, layout, Optimizer::adamw);
    layout = product(2, tensor, tensor == 1 ? 2 : 1, 2);
    layout.expert = 2;
    check(model, layout, Optimizer::sgd_momentum);
  }
}

TEST_CASE("ZeRO cuts experts over their replicas, and all else over all that have it") {
  const ModelGraph model = parallel_mixture(true);
  for (const int stage : {1, 2, 3}) {
    Layout layout = product(4, 1, 1, 1);
    layout.expert = 2;
    layout.zero_stage = stage;
    check(model, layout, Optimizer::sgd_momentum);
    check(model, layout, Optimizer::adamw);
    // Experts without a replica are whole on their rank.
    layout.data = 2;
    check(model, layout, Optimizer::sgd_momentum);
    layout = product(2, 2, 1, 1);
    layout.expert = 2;
    layout.zero_stage = stage;
    check(model, layout, Optimizer::sgd_momentum);
    layout = product(2, 1, 2, 1);
    layout.expert = 2;
    layout.zero_stage = stage;
    check(model, layout, Optimizer::adamw);
  }
}

TEST_CASE("ZeRO's stages 2 and 3 in pipelines: gradients leave every pass, blocks come for each") {
  const ModelGraph gpt = parallel_gpt2(), llama = parallel_llama(2);
  const ModelGraph mixture = parallel_mixture(true);
  for (const int stage : {2, 3}) {
    Layout layout = product(2, 1, 1, 2);
    layout.zero_stage = stage;
    check(gpt, layout, Optimizer::sgd_momentum);  // its table is tied to the head
    layout.schedule = PipelineSchedule::gpipe;
    check(llama, layout, Optimizer::adamw);
    layout = product(2, 2, 1, 2);
    layout.zero_stage = stage;
    check(llama, layout, Optimizer::sgd_momentum);
    layout = product(2, 1, 1, 2);
    layout.zero_stage = stage;
    layout.expert = 2;
    check(mixture, layout, Optimizer::sgd_momentum);
  }
}

TEST_CASE(
    "what tensor ranks send in a step is what the forecast counts for blocks, table and loss") {
  const std::int64_t batch = 8, tokens = 16, hidden = 32, blocks = 2;
  Layout layout = product(1, 2, 1, 1);
  layout.sequence_parallel = false;
  // Two sums forward and two backward a block (docs/models/step.md), the table's forward, the
  // head's backward; a sum of two ranks sends a tensor once. Of each row the loss has three
  // numbers.
  const auto values = static_cast<double>((4 * blocks + 2) * batch * tokens * hidden);
  const auto of_loss = static_cast<double>(3 * batch * tokens);
  for (const LayoutRun& run :
       train_under(under(job_of(parallel_gpt2(), Optimizer::sgd_momentum), layout, 2), 3))
    for (const Bytes sent : run.sent) CHECK(sent.v == Approx(4 * (values + of_loss)));
}
