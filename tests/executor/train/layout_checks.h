#pragma once
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "executor/train/layout_jobs.h"
#include "executor/train/parallel_cases.h"

// Ten steps under a layout, as the worker trains, against one rank's.
namespace reckon::test {

struct TrainedLayout {
  std::vector<double> losses;
  Tensors<float> parameters;
  friend bool operator==(const TrainedLayout&, const TrainedLayout&) = default;
};

inline TrainedLayout train_layout(const PlannedWorkload& job) {
  TrainedLayout trained;
  std::mutex mutex;
  const auto runs =
      train_under(job, 10, [&](Trainer& trainer, GradientExchange& exchange, Communicator&) {
        exchange.take_final_values();
        const auto tensors = trainer.trained();
        const std::lock_guard lock(mutex);
        for (const StateTensor& tensor : tensors) {
          if (tensor.slice.name.find(".running_") != std::string::npos) continue;  // each its own
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

inline PlannedWorkload layout_job(const ModelGraph& model, Optimizer optimizer,
                                  std::int64_t batch = 8) {
  auto job = small_job(model, optimizer, optimizer == Optimizer::adamw ? 1e-3 : 0.1, batch);
  job.optimizer_settings.clip_norm = 0.5;
  return job;
}

/// All that tells layouts of these tests apart.
inline std::string whole_text_of(const Layout& layout) {
  return fmt::format("{}, pipeline {} {} {}, ZeRO {}, micro-batch {}", text_of(layout),
                     layout.pipeline, to_text(layout.schedule), layout.interleave,
                     layout.zero_stage, layout.micro_batch);
}

/// Against what one rank makes of the same job in passes of as many samples. The bounds are those
/// of check_training(). `twice`: again it is the same to the bit.
inline void check_layout(const PlannedWorkload& job, const TrainedLayout& alone,
                         const Layout& layout, int micro_batch, bool twice = true) {
  INFO(whole_text_of(layout));
  const TrainedLayout shared = train_layout(under(job, layout, micro_batch));
  REQUIRE(shared.losses.size() == alone.losses.size());
  for (std::size_t step = 0; step < alone.losses.size(); ++step)
    CHECK(shared.losses[step] == Approx(alone.losses[step]).epsilon(1e-5));
  CHECK(largest_error(shared.parameters, alone.parameters, 1e-2) <
        (job.optimizer == Optimizer::adamw ? kAdamWBound : kSgdBound));
  if (twice) CHECK(train_layout(under(job, layout, micro_batch)) == shared);
}
inline void check_layout(const ModelGraph& model, const Layout& layout, Optimizer optimizer) {
  const auto job = layout_job(model, optimizer);
  check_layout(job, train_layout(under(job, {}, 2)), layout, 2);
}

/// With sequence parallelism among tensor ranks.
inline Layout product_of(int data, int tensor, int context, int pipeline) {
  Layout layout;
  layout.data = data;
  layout.tensor = tensor;
  layout.context = context;
  layout.pipeline = pipeline;
  layout.sequence_parallel = tensor > 1;
  return layout;
}

}  // namespace reckon::test
