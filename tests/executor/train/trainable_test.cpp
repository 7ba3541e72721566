#include "executor/train/trainable.h"

#include <catch2/catch.hpp>

#include "executor/train/device/wish.h"
#include "executor/train/recipe/recipe.h"
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

TEST_CASE("the ranks of a worker are its devices, on CPUs it is one") {
  const Plan two = planned("gke-p100-autoscaling");  // 3 workers of 2 GPUs
  CHECK(ranks_of_worker(two.only_job().strategy) == 2);
  CHECK(computing_ranks(two.only_job().strategy) == 6);
  CHECK(leaves_accelerators_idle(two).empty());
  CHECK(cannot_train(two).empty());
  CHECK(ranks_of_worker(planned("small-mlp-cpu").only_job().strategy) == 1);
  const Plan four = planned("ai-platform-t4");  // 10 workers of 4, through parameter servers
  CHECK(ranks_of_worker(four.only_job().strategy) == 4);
  CHECK(leaves_accelerators_idle(four).empty());
  CHECK(cannot_train(four).empty());
}

TEST_CASE("fewer devices than ranks are refused, none at all is a worker on CPUs") {
  CHECK(why_too_few_devices(DeviceWish::automatic, 8, 8).empty());
  CHECK(why_too_few_devices(DeviceWish::automatic, 8, 16).empty());
  CHECK(why_too_few_devices(DeviceWish::automatic, 8, 0).empty());
  CHECK(why_too_few_devices(DeviceWish::cpu, 8, 4).empty());
  CHECK_THAT(why_too_few_devices(DeviceWish::automatic, 8, 4),
             Contains("8 ranks, one a GPU, and 4 GPUs are here") && Contains("nvidia.com/gpu: 8"));
  CHECK_THAT(why_too_few_devices(DeviceWish::cuda, 2, 1), Contains("1 GPU is here"));
  CHECK_THAT(why_too_few_devices(DeviceWish::cuda, 2, 0), Contains("0 GPUs are here"));
  CHECK(what_is_apart({}, "nvlink4").empty());
  CHECK_THAT(what_is_apart({{0, 4}}, "nvlink4"),
             Contains("GPUs 0 and 4 cannot reach") && Contains("counts on nvlink4 between them"));
  CHECK_THAT(what_is_apart({{0, 4}, {0, 5}, {1, 4}}, "nvlink4"), Contains("and 2 more pairs,"));
}

TEST_CASE("accelerators that reckon-worker does not train on are named") {
  CHECK_THAT(format(leaves_accelerators_idle(planned("tpu-v2-8"))),
             Contains("trains on CPUs and NVIDIA's GPUs") && Contains("TPU-v2") &&
                 Contains("reckon export maxtext starts decoder models"));
  CHECK(leaves_accelerators_idle(planned("parameter-servers-k80")).empty());
  CHECK(leaves_accelerators_idle(planned("recommender-sparse-servers")).empty());  // MLPerf's DLRM
  CHECK(cannot_train(planned("recommender-sparse-servers")).empty());
  CHECK(leaves_accelerators_idle(planned("selectel-t4")).empty());  // EfficientNet
  CHECK(leaves_accelerators_idle(planned("small-mlp-cpu")).empty());
}

TEST_CASE("a layout that is simulated only is not trained, and all that it lacks is said") {
  CHECK(cannot_train(planned("llama3-8b-zero3")).empty());  // 16 workers of 8 ranks
  CHECK(leaves_accelerators_idle(planned("llama3-8b-zero3")).empty());
  for (const char* scenario : {"llama3-8b-zero3", "mixed-pipeline", "mixtral-rails"}) {
    const Plan offloads = planned(scenario, {"workload.strategy.offload_optimizer=true"});
    CHECK(offloads.only_job().strategy.layout.offload_optimizer);
    CHECK(cannot_train(offloads).empty());
    CHECK(leaves_accelerators_idle(offloads).empty());
  }
  CHECK(leaves_accelerators_idle(planned("mixed-pipeline")).empty());
  CHECK(leaves_accelerators_idle(planned("mixtral-rails")).empty());
  CHECK(leaves_accelerators_idle(
            planned("mixtral-rails", {"workload.strategy.data=32", "workload.strategy.context=2"}))
            .empty());
  CHECK_THAT(format(cannot_train(planned("tpu-v2-8"))),
             Contains("the worker does not run strategy tpu") &&
                 Contains("a JAX or TensorFlow program of yours in workload.container"));
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
  // Watched pods go on with those that are left; by themselves they do not. A run in a cluster may
  // be re-planned to such a plan, as it may be begun with it.
  for (const char* how : {"kind: in_place", "kind: elastic", "kind: full"}) {
    const Plan plan = restarts(how);
    CHECK(goes_on_in_pods(plan) == (std::string(how) != "kind: full"));
    CHECK(restarts_otherwise_in_pods(plan, false, WatchedPods::yes).empty());
    CHECK(trains_in_watched_pods(plan, false));
  }
  CHECK_THAT(format(restarts_otherwise_in_pods(restarts("kind: in_place"))),
             Contains("under reckon run --on kubernetes they do"));
  Plan nodes = restarts("kind: elastic");
  nodes.jobs.front().checkpoint.local.emplace();
  CHECK_THAT(
      format(restarts_otherwise_in_pods(nodes, true, WatchedPods::yes)),
      Contains("do not restart elastic here") && Contains("checkpoints in the storage alone"));
  CHECK(!trains_in_watched_pods(nodes, true));
  CHECK_THAT(format(restarts_otherwise_in_pods(nodes, true)),
             Contains("do under reckon run --on kubernetes"));
  CHECK_THAT(format(cannot_train(restarts("kind: elastic, batch: scaled"))),
             Contains("accumulate the whole global batch") && Contains("batch: fixed"));
  CHECK(cannot_train(restarts("kind: full")).empty());
  CHECK(restarts_otherwise_in_pods(restarts("kind: full")).empty());
}

TEST_CASE("the worker saves on the nodes, in pods where a directory of theirs is named") {
  const Plan plan =
      planned("small-gpt-zero3-cpu", {"workload.checkpoint={interval: 1h, local: {every: 1min}}"});
  CHECK(cannot_train(plan).empty());
  CHECK_THAT(format(restarts_otherwise_in_pods(plan)), Contains("--node-dir DIR"));
  CHECK(restarts_otherwise_in_pods(plan, true).empty());
}
