#include "executor/train/layouts/pipeline/stages.h"

#include <catch2/catch.hpp>

#include "executor/train/layout_jobs.h"
#include "sim/step/memory/folded_model.h"

using namespace reckon;
using namespace reckon::test;

namespace {

using enum PipelineSchedule;

Layout stages(int pipeline, PipelineSchedule schedule, int interleave = 1) {
  return {.pipeline = pipeline, .schedule = schedule, .interleave = interleave};
}

ModelGraph gpt(int layers) {
  auto made = make_transformer("gpt2", {.layers = layers,
                                        .hidden = 32,
                                        .heads = 4,
                                        .vocabulary = 61,
                                        .sequence_length = 24,
                                        .positions = 24,
                                        .dropout = 0.1});
  return std::move(*made);
}

}  // namespace

TEST_CASE(
    "a pipeline trains what one rank trains that accumulates its micro-batches, bit for bit") {
  // A micro-batch's gradients are added in the same order, whichever stage does it. Momentum and
  // decay, batch norms' running statistics too: those of one pass after the other.
  const auto job = GENERATE(small_job(small_mlp(4), Optimizer::adamw, 1e-2),
                            small_job(small_resnet(), Optimizer::sgd_momentum, 0.05));
  const auto alone = train_under(under(job, {}, 2), 10);
  CHECK(alone[0].losses.back() < alone[0].losses.front());
  for (const Layout& layout : {stages(2, gpipe), stages(2, one_forward_one_backward)}) {
    const auto runs = train_under(under(job, layout, 2), 10);
    check_close(whole_of(runs), whole_of(alone), 0);
    for (const LayoutRun& run : runs) check_losses(run, alone[0], 1e-12);
    CHECK(runs[0].by_name.size() < alone[0].by_name.size());
  }
}

TEST_CASE("every schedule gives the same bits, with four stages and parts of them") {
  const auto job = small_job(small_mlp(8), Optimizer::sgd_momentum, 0.05);
  const auto alone = train_under(under(job, {}, 2), 10);
  const auto expected = whole_of(alone);
  for (const Layout& layout :
       {stages(4, gpipe), stages(4, one_forward_one_backward), stages(2, interleaved, 2),
        stages(2, interleaved, 4), stages(4, interleaved, 2)}) {
    INFO("pipeline " << layout.pipeline << " x " << layout.interleave);
    check_close(whole_of(train_under(under(job, layout, 2), 10)), expected, 0);
  }
}

TEST_CASE("stages that the plan cuts unevenly train the same, bit for bit") {
  const auto job = small_job(small_mlp(8), Optimizer::sgd_momentum, 0.05);
  const auto expected = whole_of(train_under(under(job, {}, 2), 10));
  PlannedWorkload cut = under(job, stages(3, one_forward_one_backward), 2);
  const int units = FoldedModel(job.model).units();
  REQUIRE(units > 4);
  cut.stage_blocks = {1, units - 3, 2};
  const auto runs = train_under(cut, 10);
  check_close(whole_of(runs), expected, 0);
  // The middle stage has most of the network.
  CHECK(runs[1].parameters.size() > runs[0].parameters.size() + runs[2].parameters.size());
}

TEST_CASE("a table that is tied to the head is one table, though two stages have it") {
  // The two stages' parts of its gradient are summed before they meet the other micro-batches': 8
  // micro-batches and 2 stages are 16 summands [Higham 2002, Sec. 4.2], as in zero_test.cpp.
  const auto job = small_job(gpt(4), Optimizer::sgd_momentum, 0.1);
  const auto alone = train_under(under(job, {}, 2), 10);
  const double bound = 10 * 0.1 / (1 - 0.9) * 15 * 0x1p-24;
  for (const Layout& layout :
       {stages(2, one_forward_one_backward), stages(4, gpipe), stages(2, interleaved, 2)}) {
    const auto runs = train_under(under(job, layout, 2), 10);
    check_close(whole_of(runs), whole_of(alone), bound);
    check_losses(runs[0], alone[0], 1e-5);
    check_close(whole_of(train_under(under(job, layout, 2), 10)), whole_of(runs), 0);
  }
}

TEST_CASE("stages compute activations again where the layout says so, and no bit changes") {
  const auto job = small_job(gpt(4), Optimizer::sgd_momentum, 0.1);
  Layout layout = stages(2, one_forward_one_backward);
  const auto kept = train_under(under(job, layout, 2), 3);
  layout.recompute = Recompute::full;
  check_close(whole_of(train_under(under(job, layout, 2), 3)), whole_of(kept), 0);
  layout.recompute = Recompute::selective;
  check_close(whole_of(train_under(under(job, layout, 2), 3)), whole_of(kept), 0);
}

TEST_CASE("data x pipeline, with and without ZeRO 1 and clipping, is one rank's training") {
  auto job = small_job(gpt(4), Optimizer::sgd_momentum, 0.1);
  job.optimizer_settings.clip_norm = GENERATE(0.0, 0.5);
  const auto alone = train_under(under(job, {}, 16), 10);
  const double bound = 10 * 0.1 / (1 - 0.9) * 31 * 0x1p-24;
  std::map<std::string, std::vector<float>> plain;
  for (const int stage : {0, 1}) {
    Layout layout = stages(2, one_forward_one_backward);
    layout.data = 2;
    layout.zero_stage = stage;
    const auto runs = train_under(under(job, layout, 2), 10);
    check_losses(runs[0], alone[0], 1e-5);
    if (stage == 0) {
      plain = whole_of(runs);
      check_close(plain, whole_of(alone), bound);
    } else {
      // The same sums; the norm is summed by parts.
      check_close(whole_of(runs), plain, job.optimizer_settings.clip_norm > 0 ? bound : 0);
    }
  }
}

TEST_CASE("data x pipeline under ZeRO 2 and 3, every schedule: one rank's training, repeatable") {
  auto job = small_job(gpt(4), Optimizer::sgd_momentum, 0.1);
  job.optimizer_settings.clip_norm = GENERATE(0.0, 0.5);
  const auto alone = train_under(under(job, {}, 16), 10);
  const double bound = 10 * 0.1 / (1 - 0.9) * 31 * 0x1p-24;
  for (const int stage : {2, 3})
    for (Layout layout : {stages(2, one_forward_one_backward), stages(2, gpipe),
                          stages(2, interleaved, 2), stages(4, one_forward_one_backward)}) {
      INFO("ZeRO " << stage << ", pipeline " << layout.pipeline << " x " << layout.interleave);
      layout.data = 2;
      layout.zero_stage = stage;
      const auto runs = train_under(under(job, layout, 2), 10);
      check_losses(runs[0], alone[0], 1e-5);
      check_close(whole_of(runs), whole_of(alone), bound);
      check_close(whole_of(train_under(under(job, layout, 2), 10)), whole_of(runs), 0);
      layout.recompute = Recompute::full;
      check_close(whole_of(train_under(under(job, layout, 2), 10)), whole_of(runs), 0);
    }
}

TEST_CASE("stages are the forecast's, and each keeps its own parameters alone") {
  const ModelGraph model = gpt(4);
  const Layout layout = stages(2, interleaved, 2);
  const PipelineStages cut(model, layout);
  REQUIRE(cut.parts.size() == 2);
  REQUIRE(cut.parts[0].size() == 2);
  CHECK(cut.parts[0][0].first == 0);
  CHECK(cut.parts[0][0].end == cut.parts[1][0].first);
  CHECK(cut.parts[1][0].end == cut.parts[0][1].first);
  CHECK(cut.parts[1][1].end == model.layers().size());
  const ParameterLayout first = cut.parameters(model, parameter_layout(model), 0),
                        last = cut.parameters(model, parameter_layout(model), 1);
  const std::size_t table = 61 * 32;
  CHECK(first.count + last.count == parameter_layout(model).count + table);
  CHECK(last.slots.back().copied);
  CHECK_FALSE(last.slots.back().trained);
}
