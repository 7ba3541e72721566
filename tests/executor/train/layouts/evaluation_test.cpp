#include <catch2/catch.hpp>

#include "executor/train/layout_jobs.h"
#include "executor/train/parallel_networks.h"
#include "sim/scenario/plan.h"

// Evaluation passes: when they come, what they say, and that training does not feel them.
using namespace reckon;
using namespace reckon::test;

namespace {

constexpr std::int64_t kEvaluatedSteps = 6;

/// An epoch of 40 samples is two and a half steps.
PlannedWorkload evaluated(PlannedWorkload job) {
  job.dataset.samples = Fact<Samples>{Samples{40}};
  job.dataset.validation_samples = Fact<Samples>{Samples{double(kValidation)}};
  job.steps = kEvaluatedSteps;
  job.evaluate_every_epochs = 1;
  return job;
}

/// Loss of the validation samples in their own order, as the trainer's parameters predict them.
double loss_in_order(Trainer& trainer, const ModelGraph& model, std::int64_t batch) {
  const auto samples = open_data({}, {}, model, 10, kValidation);
  double loss = 0;
  for (std::int64_t first = 0; first < kValidation; first += batch) {
    SampleBatch at(sample_format(model), batch);
    for (std::int64_t i = 0; i < batch; ++i) samples->read(first + i, at, i);
    loss += trainer.evaluate(at.view()) * double(batch) / double(kValidation);
  }
  return loss;
}

struct EvaluatedWay {
  std::string name;
  Layout layout;
  int micro_batch = 4;
};

/// The losses are one rank's, to the rounding of `relative`; the same layout without evaluations
/// trains to the same bits.
void check_ways(const PlannedWorkload& job, const std::vector<EvaluatedWay>& ways,
                double relative) {
  double in_order = 0;
  const auto one = train_under(under(evaluated(job), {}, 4), kEvaluatedSteps,
                               [&](Trainer& trainer, GradientExchange&, Communicator&) {
                                 in_order = loss_in_order(trainer, job.model, 4);
                               });
  REQUIRE(one[0].evaluated_after == std::vector<std::int64_t>{3, 5, 6});
  CHECK(one[0].evaluations.back() == Approx(in_order).epsilon(1e-6));
  CHECK(one[0].evaluations[0] != one[0].evaluations[1]);
  for (const EvaluatedWay& way : ways) {
    INFO(way.name);
    const auto with =
        train_under(under(evaluated(job), way.layout, way.micro_batch), kEvaluatedSteps);
    const auto without = train_under(under(job, way.layout, way.micro_batch), kEvaluatedSteps);
    for (std::size_t rank = 0; rank < with.size(); ++rank) {
      CHECK(with[rank].evaluated_after == one[0].evaluated_after);
      CHECK(with[rank].losses == without[rank].losses);
      CHECK(with[rank].sent == without[rank].sent);  // no step has an evaluation's
      for (std::size_t k = 0; k < with[rank].evaluations.size(); ++k)
        CHECK(with[rank].evaluations[k] == Approx(one[0].evaluations[k]).epsilon(relative));
    }
    CHECK(whole_of(with) == whole_of(without));
  }
}

}  // namespace

TEST_CASE("an evaluation follows each epoch and the last step, whatever the batch") {
  PlannedWorkload job = evaluated({});
  job.global_batch = 16;
  const auto after = [&](std::int64_t steps) { return evaluations_after(job, steps); };
  CHECK(std::vector{after(0), after(2), after(3), after(4), after(5), after(6)} ==
        std::vector<std::int64_t>{0, 0, 1, 1, 2, 3});
  CHECK(after(-1) == 0);
  job.global_batch = 20;  // the sixth step ends an epoch
  CHECK(std::vector{after(1), after(2), after(4), after(6)} ==
        std::vector<std::int64_t>{0, 1, 2, 3});
  job.evaluate_every_epochs.reset();
  CHECK(after(6) == 0);
}

TEST_CASE("evaluation passes of every layout say what one rank says, and change no training") {
  const PipelineSchedule schedule =
      GENERATE(PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward);
  check_ways(small_job(small_gpt2(0), Optimizer::adamw, 1e-3),
             {{"data 2", {.data = 2}},
              {"ZeRO-1", {.data = 2, .zero_stage = 1}},
              {"ZeRO-2", {.data = 2, .zero_stage = 2}},
              {"ZeRO-3", {.data = 2, .zero_stage = 3}},
              {"tensor 2", {.tensor = 2}},
              {"tensor 2, sequence parallel", {.tensor = 2, .sequence_parallel = true}},
              {"context 2", {.context = 2}},
              {"pipeline 2", {.pipeline = 2, .schedule = schedule}, 2},
              {"pipeline 2, ZeRO-3", {.data = 2, .pipeline = 2, .zero_stage = 3}, 2},
              {"pipeline 2, tensor 2", {.tensor = 2, .pipeline = 2}, 4}},
             1e-4);
}

TEST_CASE("experts, and stages of several parts that share a table, evaluate as one rank does") {
  check_ways(small_job(parallel_mixture(true), Optimizer::adamw, 1e-3),
             {{"experts 2", {.data = 2, .expert = 2}},
              {"experts 2, ZeRO-3", {.data = 4, .expert = 2, .zero_stage = 3}, 2},
              {"experts 2, pipeline 2", {.data = 2, .pipeline = 2, .expert = 2}, 2}},
             1e-4);
  check_ways(small_job(parallel_gpt2(4, 4), Optimizer::adamw, 1e-3),
             {{"interleaved",
               {.pipeline = 2, .schedule = PipelineSchedule::interleaved, .interleave = 2},
               2}},
             1e-4);
}

TEST_CASE("stages with several parts evaluate, and go on with their running statistics") {
  check_ways(small_job(small_mlp(8), Optimizer::sgd_momentum, 0.05),
             {{"interleaved",
               {.pipeline = 2, .schedule = PipelineSchedule::interleaved, .interleave = 2},
               4}},
             1e-5);
  check_ways(small_job(small_resnet(), Optimizer::sgd_momentum, 0.01),
             {{"pipeline 2", {.pipeline = 2}, 4}}, 1e-4);
}
