#include "executor/train/trainable.h"

#include <catch2/catch.hpp>

#include "support/scenario_text.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

Plan planned(const std::string& scenario, const std::vector<std::string>& overrides = {}) {
  const auto plan = shipped_plan(scenario, overrides);
  INFO((plan ? "" : format(plan.error())));
  REQUIRE(plan);
  return *plan;
}

}  // namespace

TEST_CASE("a worker with two GPUs is not what reckon-worker is, two workers with one are") {
  const std::string idle = format(leaves_accelerators_idle(planned("gke-p100-autoscaling")));
  CHECK_THAT(idle, Contains("trains on one GPU, and a worker of this plan has 2"));
  // 3 workers of 2: what is advised is a plan, and leaves nothing idle.
  CHECK_THAT(idle, Contains("workers: 6, accelerators_per_worker: 1"));
  const Plan six = planned("gke-p100-autoscaling", {"workload.strategy.workers=6",
                                                    "workload.strategy.accelerators_per_worker=1"});
  CHECK(leaves_accelerators_idle(six).empty());
  CHECK(cannot_train(six).empty());
}

TEST_CASE("accelerators that reckon-worker does not train on are named") {
  CHECK_THAT(format(leaves_accelerators_idle(planned("tpu-v2-8"))),
             Contains("trains on CPUs and NVIDIA's GPUs") && Contains("TPU-v2"));
  CHECK_THAT(format(leaves_accelerators_idle(planned("parameter-servers-k80"))),
             Contains("workers of parameter servers train on CPUs"));
  CHECK(leaves_accelerators_idle(planned("small-mlp-cpu")).empty());
}

TEST_CASE("a layout that is simulated only is not trained, and all that it lacks is said") {
  const std::string llama = format(cannot_train(planned("llama3-8b-zero3")));
  CHECK_THAT(llama, Contains("a process of the worker is one rank, and a worker of this plan has"));
  CHECK_THAT(format(leaves_accelerators_idle(planned("llama3-8b-zero3"))),
             Contains("ranks under strategy sharded train on CPUs"));
  CHECK_THAT(format(cannot_train(planned("tpu-v2-8"))),
             Contains("the worker does not run strategy tpu"));
  CHECK(cannot_train(planned("small-gpt-pipeline-cpu",
                             {"workload.strategy.data=1", "workload.strategy.tensor=2",
                              "workload.strategy.sequence_parallel=false",
                              "workload.strategy.zero_stage=0"}))
            .empty());
  for (const char* stage : {"2", "3"})
    CHECK(cannot_train(planned("small-gpt-pipeline-cpu",
                               {std::string("workload.strategy.zero_stage=") + stage}))
              .empty());
  CHECK_THAT(format(cannot_train(planned(
                 "small-gpt-pipeline-cpu",
                 {"workload.strategy.zero_stage=2", "workload.restart={kind: elastic, min: 1}"}))),
             Contains("need as many passes each") && Contains("kind: in_place"));
  for (const char* scenario :
       {"small-mlp-cpu", "small-gpt-zero3-cpu", "small-gpt-pipeline-cpu", "small-gpt-tensor-cpu"})
    CHECK(cannot_train(planned(scenario)).empty());
}

TEST_CASE("ways to go on after a loss: what the worker has not, and what pods have not, is named") {
  const auto restarts = [](const std::string& how) {
    return planned("small-gpt-zero3-cpu", {"workload.restart={" + how + "}"});
  };
  for (const char* kind : {"in_place", "elastic"}) {
    const Plan plan = restarts("kind: " + std::string(kind));
    CHECK(cannot_train(plan).empty());
    const std::string in_pods = format(restarts_otherwise_in_pods(plan));
    CHECK_THAT(in_pods, Contains(kind) && Contains("start again from the last checkpoint") &&
                            Contains("workload.restart={kind: full}"));
  }
  CHECK_THAT(format(cannot_train(restarts("kind: elastic, batch: scaled"))),
             Contains("accumulate the whole global batch") && Contains("batch: fixed"));
  CHECK(cannot_train(restarts("kind: full")).empty());
  CHECK(restarts_otherwise_in_pods(restarts("kind: full")).empty());
}
