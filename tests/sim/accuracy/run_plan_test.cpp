#include "sim/accuracy/run/plan.h"

#include <catch2/catch.hpp>

#include "sim/accuracy/predict.h"
#include "support/shipped_catalog.h"

using namespace reckon;

namespace {

/// MLPerf 5.0's Llama 3.1 405B, but for hardware and layout.
RunConfiguration llama(std::string_view accelerator, int accelerators, int per_node) {
  RunConfiguration run;
  run.accelerator = accelerator;
  run.accelerators = accelerators;
  run.accelerators_per_node = per_node;
  run.nodes = accelerators / per_node;
  run.model = "gpt";
  run.variant = "llama3.1-405b";
  run.precision = "fp8";
  run.strategy = "model_parallel";
  run.global_batch = 1280;
  run.sequence_length = 8192;
  return run;
}

RunConfiguration with_layout(RunConfiguration run) {
  run.tensor = 4;
  run.pipeline = 8;
  run.data = run.accelerators / (run.tensor * run.pipeline);
  run.micro_batch = 1;
  return run;
}

const PlannedPool& worker_pool(const Plan& plan) { return *plan.pool_with(Role::worker); }

}  // namespace

TEST_CASE("GPUs of racks of 72 that do not fill racks evenly are an even part of each") {
  struct Case {
    int accelerators, nodes, per_node;
  };
  // 2,048 / 72 = 28.4 racks: 32 of 64; 2,496: 34.7, so 39 of 64; 576 are 8 whole ones.
  for (const Case c : {Case{2048, 32, 64}, Case{2496, 39, 64}, Case{576, 8, 72}, Case{64, 1, 64}}) {
    CAPTURE(c.accelerators);
    RunConfiguration run = with_layout(llama("GB200", c.accelerators, 4));
    run.global_batch = run.data * 8;
    const auto plan = plan_of_run(run, test::shipped_catalog());
    REQUIRE(plan.has_value());
    CHECK(worker_pool(*plan).nodes_max == c.nodes);
    CHECK(worker_pool(*plan).accelerators_per_node == c.per_node);
    CHECK(plan->jobs.front().strategy.accelerators() == c.accelerators);
  }
}

TEST_CASE("a language model is known by its variant, whose dimensions no column gives") {
  const auto model = model_of_run(llama("GB200", 512, 4));
  REQUIRE(model.has_value());
  CHECK(std::get<ModelByName>(model->spec).name == "llama3_1_405b");
  CHECK(model->sequence_length == 8192);
  RunConfiguration run = llama("GB200", 8, 4);
  run.model = "gpt_lora";
  run.variant = "llama2-70b LoRA";
  const auto tuned = model_of_run(run);
  REQUIRE(tuned.has_value());
  CHECK(std::get<ModelByName>(tuned->spec).name == "llama2_70b");
  CHECK(tuned->finetune.has_value());
  run.variant = "unheard-of-9b";
  CHECK(model_of_run(run).error() == "the number of layers of the model is not printed");
}

TEST_CASE("a layout that is not printed is the fastest one that fits in memory") {
  const RunConfiguration run = llama("GB200", 512, 4);
  const auto plan = plan_of_run(run, test::shipped_catalog());
  REQUIRE(plan.has_value());
  const PlannedWorkload& job = plan->jobs.front();
  CHECK(job.global_batch == 1280);
  CHECK(job.strategy.layout.replica() > 1);  // 405 billion parameters do not fit in one GPU
  Predictor predict(test::shipped_catalog());
  const auto own = predict(run);
  REQUIRE(own.has_value());
  CHECK(own->memory.fits());
  const auto other = predict(with_layout(run));
  REQUIRE(other.has_value());
  CHECK(own->rate >= other->rate);
  // Two GPUs hold it in no way.
  CHECK(plan_of_run(llama("GB200", 2, 2), test::shipped_catalog()).error() ==
        "the source does not give the layout, and no layout fits in memory");
}

TEST_CASE("a schedule and sequence parallelism that a row prints are the plan's") {
  RunConfiguration run = with_layout(llama("H100-SXM5-80", 512, 8));
  run.pipeline = 9;
  run.tensor = 8;
  run.accelerators = 8 * 9 * 8;
  run.nodes = 72;
  run.data = 8;
  run.global_batch = 8 * 18;
  CHECK(plan_of_run(run, test::shipped_catalog())->jobs.front().strategy.layout.interleave == 1);
  run.interleave = 7;  // 126 blocks are 9 x 7 parts of 2
  run.sequence_parallel = false;
  const auto plan = plan_of_run(run, test::shipped_catalog());
  REQUIRE(plan.has_value());
  CHECK(plan->jobs.front().strategy.layout.schedule == PipelineSchedule::interleaved);
  CHECK(plan->jobs.front().strategy.layout.interleave == 7);
  CHECK_FALSE(plan->jobs.front().strategy.layout.sequence_parallel);
}

TEST_CASE("NVLink that a row prints joins cards that have none of their own") {
  RunConfiguration run;
  run.accelerators = run.accelerators_per_node = 2;
  run.nodes = 1;
  run.model = "resnet50";
  run.precision = "fp16";
  run.strategy = "all_reduce";
  run.micro_batch = run.batch_per_accelerator = 64;
  run.global_batch = 128;
  const auto peer = [&] {
    return worker_pool(*plan_of_run(run, test::shipped_catalog())).accelerator->peer_bandwidth;
  };
  run.accelerator = "H100-PCIE-80";
  run.intra_node_link = "pcie5";
  CHECK_FALSE(peer().has_value());
  run.intra_node_link = "nvlink4";  // a pair with its bridge
  CHECK(peer()->value.v == Approx(300e9));
  run.accelerator = "GH200-96";  // four of a node are joined as H100 SXM are
  run.accelerators = run.accelerators_per_node = 4;
  run.global_batch = 256;
  CHECK(peer()->value.v == Approx(450e9));
}
