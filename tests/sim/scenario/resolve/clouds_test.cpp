#include <catch2/catch.hpp>

#include "support/scenario_text.h"

// Clusters of AWS and Azure: what is filled in from the catalog, and what the catalog cannot say.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

std::string cloud_scenario(const std::string& cluster) {
  return "name: s\n"
         "workload:\n"
         "  model: resnet50\n"
         "  dataset: imagenet\n"
         "  train: {epochs: 1}\n"
         "  precision: fp16\n"
         "  batch_per_accelerator: 64\n"
         "  strategy: {kind: multi_worker_mirrored, workers: 2}\n"
         "cluster: {" +
         cluster + "}\n";
}

std::string pool(const std::string& machine, const std::string& more = "") {
  return "pools: [{name: gpus, machine: " + machine + ", nodes: 2" + more + "}]";
}

Plan plan_or_fail(const std::string& cluster) {
  const Expected<Plan> plan = plan_of(cloud_scenario(cluster));
  if (!plan) FAIL(format(plan.error()));
  return *plan;
}

std::string warnings_of(const Plan& plan) {
  std::string all;
  for (const std::string& w : plan.warnings) all += w + "\n";
  return all;
}

}  // namespace

TEST_CASE("a p4d cluster of EKS: eight A100 over EFA, spot with two minutes' notice") {
  const Plan plan = plan_or_fail("provider: aws, region: us-east-1, zone: us-east-1c, " +
                                 pool("p4d.24xlarge", ", pricing: spot"));
  CHECK(plan.service.id == Service{"eks"});
  const PlannedPool& gpus = plan.pools[0];
  REQUIRE(gpus.accelerator);
  CHECK(gpus.accelerator->name == "A100-SXM4-40");
  CHECK(gpus.accelerators_per_node == 8);
  CHECK(gpus.network_link.name == "efa");
  CHECK(gpus.machine.network.value == 400.0_Gbps);
  CHECK(gpus.peer_link.name == "nvswitch");
  // prices.csv: the zones' middle of 2025-07-01
  CHECK(gpus.price.known);
  CHECK(gpus.price.machine.nano_usd_per_hour == 5'328'500'000);
  CHECK(gpus.price.accelerators.nano_usd_per_hour == 0);  // the machine's price covers them
  CHECK(plan.reclaim.notice == Seconds{120});
  CHECK(plan.billing.granularity == Seconds{1});
  CHECK(plan.billing.minimum == Seconds{60});
  CHECK(plan.billing.management.nano_usd_per_hour == 100'000'000);  // EKS
  CHECK(plan.jobs[0].checkpoint.storage.name == "s3-standard");
  CHECK(gpus.provisioning.assumed);
}

TEST_CASE("an ND cluster of AKS: eight A100 over InfiniBand, spot with thirty seconds' notice") {
  const Plan plan = plan_or_fail("provider: azure, region: eastus, " +
                                 pool("Standard_ND96amsr_A100_v4", ", pricing: spot"));
  CHECK(plan.service.id == Service{"aks"});
  const PlannedPool& gpus = plan.pools[0];
  REQUIRE(gpus.accelerator);
  CHECK(gpus.accelerator->name == "A100-SXM4-80");
  CHECK(gpus.accelerators_per_node == 8);
  CHECK(gpus.network_link.name == "infiniband");
  CHECK(gpus.price.machine.nano_usd_per_hour == 3'604'700'000);
  CHECK(plan.reclaim.notice == Seconds{30});
  CHECK(plan.jobs[0].checkpoint.storage.name == "azure-blob");
  CHECK_THAT(warnings_of(plan), Contains("2024-07-01"));  // old prices are named
}

TEST_CASE("VMs without a service are billed without its fee and start their program themselves") {
  const Plan plan =
      plan_or_fail("provider: aws, service: none, region: us-east-1, " + pool("p5.48xlarge"));
  CHECK(plan.service.id == Service{"none"});
  CHECK(plan.billing.management.nano_usd_per_hour == 0);
  CHECK(plan.retry.backoff_limit > 1'000'000);
}

TEST_CASE("a spot price that is not known leaves the cost unknown, with a warning") {
  // AWS publishes spot prices; our table has them for p3, p4d, p4de and p5 alone.
  const Plan plan =
      plan_or_fail("provider: aws, region: us-east-1, " + pool("g5.48xlarge", ", pricing: spot"));
  CHECK_FALSE(plan.pools[0].price.known);
  CHECK_THAT(warnings_of(plan), Contains("no spot price of g5.48xlarge in us-east-1 is known"));
}

TEST_CASE("where a list of regions is known to leave some out, another region is a warning") {
  const Plan aws = plan_or_fail("provider: aws, region: us-west-2, " + pool("g5.48xlarge"));
  CHECK_THAT(warnings_of(aws), Contains("the catalog does not know whether aws offers g5.48xlarge "
                                        "in us-west-2; it does in us-east-1"));
  CHECK_FALSE(aws.pools[0].price.known);
  const Plan azure =
      plan_or_fail("provider: azure, region: eastus, " + pool("Standard_ND96isr_H200_v5"));
  CHECK_THAT(warnings_of(azure),
             Contains("the catalog does not know where azure offers Standard_ND96isr_H200_v5"));
}

TEST_CASE("TPUs are Google's") {
  CHECK_THAT(
      errors_of(cloud_scenario("provider: aws, region: us-east-1, pools: [{name: t, tpu: {type: "
                               "TPU-v2, slice: v2-8}, nodes: 1}]")),
      Contains("aws has no TPUs"));
}
