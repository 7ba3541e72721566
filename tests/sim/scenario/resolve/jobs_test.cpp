#include <catch2/catch.hpp>

#include "support/scenario_text.h"

// Lists of jobs that share a cluster.
using namespace reckon;
using namespace reckon::test;

namespace {

const char* const kTwoJobs = R"(name: two
jobs:
  - name: small
    workload: {model: resnet18, dataset: imagenet, train: {epochs: 1}, precision: fp32,
               batch_per_accelerator: 64, strategy: {kind: mirrored}}
  - name: large
    submit: 2h
    workload: {model: resnet50, dataset: imagenet, train: {epochs: 1}, precision: fp32,
               batch_per_accelerator: 32, strategy: {kind: multi_worker_mirrored}}
cluster:
  provider: gcp
  region: us-central1
  zone: us-central1-c
  pools:
    - name: p100
      machine: n1-standard-16
      accelerator: {type: P100-PCIE-16, count: 2}
      nodes: 2
)";

}  // namespace

TEST_CASE("each job of a list is planned as if it were alone") {
  const auto plan = plan_of(kTwoJobs);
  if (!plan) FAIL(format(plan.error()));
  REQUIRE(plan->jobs.size() == 2);
  CHECK(plan->jobs[0].name == "small");
  CHECK(plan->jobs[0].strategy.workers == 1);
  CHECK(plan->jobs[1].name == "large");
  CHECK(plan->jobs[1].submit == Seconds{7200});
  CHECK(plan->jobs[1].strategy.workers == 2);
  CHECK(plan->jobs[1].global_batch == 4 * 32);
  CHECK(plan->jobs[1].path == "jobs.large.workload");
  CHECK(plan->pools.size() == 1);
}

TEST_CASE("a job that is submitted every day is so many jobs") {
  const auto plan = plan_of(kTwoJobs, {"jobs.small.every=1d", "jobs.small.times=3"});
  if (!plan) FAIL(format(plan.error()));
  REQUIRE(plan->jobs.size() == 4);
  CHECK(plan->jobs[0].name == "small-1");
  CHECK_FALSE(plan->jobs[0].same_as);
  CHECK(plan->jobs[2].name == "small-3");
  CHECK(plan->jobs[2].submit == Seconds{2 * 86400});
  CHECK(plan->jobs[2].same_as == 0u);
  CHECK(plan->jobs[3].name == "large");
}

TEST_CASE("a mistake in a job is reported in that job, one in the cluster once") {
  CHECK_THAT(errors_of(kTwoJobs, {"jobs.large.workload.model=resnet5"}),
             Catch::Contains("--set jobs.large.workload.model=resnet5: error: unknown model "
                             "'resnet5'; did you mean"));
  const std::string machine = errors_of(kTwoJobs, {"cluster.pools.p100.machine=n1-standard-17"});
  const auto first = machine.find("unknown machine");
  REQUIRE(first != std::string::npos);
  CHECK(machine.find("unknown machine", first + 1) == std::string::npos);
  CHECK_THAT(errors_of(kTwoJobs, {"jobs.small.every=1d"}),
             Catch::Contains("needs both 'every' and 'times'"));
}

TEST_CASE("what jobs cannot have of their own is refused by name") {
  CHECK_THAT(errors_of(kTwoJobs, {"jobs.large.workload.precision=fp16"}),
             Catch::Contains("jobs of different precisions or stacks ('small' and 'large') in one "
                             "pool are not simulated yet"));
  CHECK_THAT(errors_of(kTwoJobs, {"cluster.service=ai_platform"}),
             Catch::Contains("jobs of ai_platform do not share machines"));
}
