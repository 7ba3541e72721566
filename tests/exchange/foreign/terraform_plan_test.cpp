#include "exchange/foreign/terraform_plan.h"

#include <catch2/catch.hpp>

#include "exchange/foreign/resnet_work.h"
#include "sim/scenario/plan.h"
#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/scenario_text.h"

using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

std::string terraform(const std::string& json, const PoolChoice& choice = {},
                      const std::string& region = "") {
  const auto found = import_terraform_plan(json, "plan.json", choice, region, shipped_catalog());
  if (!found) return format(found.error());
  const auto text = scenario_of(*found, kResNet50, shipped_catalog());
  return text ? *text : format(text.error());
}

/// As `terraform show -json` prints a plan: blocks are lists, what is not set is null.
std::string plan(const std::string& resources, const std::string& provider = "") {
  return R"({"format_version": "1.2", "planned_values": {"root_module": {"resources": [],
    "child_modules": [{"address": "module.c", "resources": [)" +
         resources + R"(]}]}}, "configuration": {"provider_config": {)" + provider + "}}}";
}

const std::string kGke = R"(
  {"type": "google_container_node_pool", "name": "a", "mode": "managed", "values": {
    "name": "p100", "location": "us-central1-c", "node_count": null, "initial_node_count": 3,
    "node_locations": ["us-central1-c"],
    "autoscaling": [{"total_min_node_count": 0, "total_max_node_count": 5, "min_node_count": null}],
    "node_config": [{"machine_type": "n1-standard-16", "spot": true,
      "guest_accelerator": [{"type": "nvidia-tesla-p100", "count": 2}]}]}},
  {"type": "google_container_node_pool", "name": "b", "values": {
    "name": "ps", "location": "us-central1-c", "node_count": 2,
    "node_config": [{"machine_type": "n1-highmem-8", "spot": false, "guest_accelerator": []}]}},
  {"type": "google_storage_bucket", "name": "c", "values": {"name": "x"}})";
const std::string kEks = R"(
  {"type": "aws_eks_node_group", "name": "g", "values": {
    "node_group_name": "p4d", "capacity_type": "SPOT", "instance_types": ["p4d.24xlarge"],
    "scaling_config": [{"desired_size": 2, "min_size": 2, "max_size": 2}]}})";
const std::string kAks = R"(
  {"type": "azurerm_kubernetes_cluster", "name": "k", "values": {"location": "East US"}},
  {"type": "azurerm_kubernetes_cluster_node_pool", "name": "nd", "values": {
    "name": "nd", "vm_size": "Standard_ND96amsr_A100_v4", "auto_scaling_enabled": true,
    "min_count": 0, "max_count": 8, "node_count": 8, "priority": "Regular"}})";

/// The scenario is one that a plan can be made of.
Plan planned(const std::string& text) {
  const auto file = parse_scenario(text, "s.yaml");
  if (!file) FAIL(format(file.error()));
  const auto made = make_plan(*file, shipped_catalog());
  if (!made) FAIL(format(made.error()));
  return *made;
}

}  // namespace

TEST_CASE("node pools of GKE in a plan of Terraform become the pools of a scenario") {
  const std::string text = terraform(plan(kGke), {"", "ps"});
  const Plan made = planned(text);
  REQUIRE(made.pools.size() == 2);
  const PlannedPool* workers = made.pool_with(Role::worker);
  REQUIRE(workers);
  CHECK(workers->name == "p100");
  CHECK(workers->accelerators_per_node == 2);
  CHECK(workers->pricing == CapacityType::spot);
  CHECK(workers->autoscaling);
  CHECK(workers->nodes_max == 5);
  CHECK(made.zone == "us-central1-c");
  REQUIRE(made.pool_with(Role::parameter_server));
  CHECK(made.pool_with(Role::parameter_server)->nodes_max == 2);
  CHECK_THAT(text, Contains("1 x google_storage_bucket"));
}

TEST_CASE("a node group of EKS has the region of the provider's configuration") {
  const Plan made = planned(terraform(
      plan(kEks, R"("aws": {"expressions": {"region": {"constant_value": "us-east-1"}}})")));
  CHECK(made.region == "us-east-1");
  CHECK(to_text(made.service.id) == "eks");
  CHECK(made.pools.front().accelerators_per_node == 8);
  CHECK(made.pools.front().nodes_max == 2);
  CHECK_FALSE(made.pools.front().autoscaling);
  CHECK(made.pools.front().pricing == CapacityType::spot);
  CHECK_THAT(terraform(plan(kEks)), Contains("plan.json:") && Contains("--region NAME"));
  CHECK_THAT(terraform(plan(kEks), {}, "us-east-1"), Contains("region: us-east-1"));
}

TEST_CASE("a node pool of AKS has the region of its cluster") {
  const Plan made = planned(terraform(plan(kAks)));
  CHECK(made.region == "eastus");
  CHECK(made.pools.front().nodes_max == 8);
  CHECK(made.pools.front().autoscaling);
}

TEST_CASE("what is no plan of Terraform, or has no pools, says what to do") {
  CHECK_THAT(terraform("[]"), Contains("terraform show -json"));
  CHECK_THAT(terraform(plan("")), Contains("no node pools of GKE, EKS or AKS"));
  CHECK_THAT(terraform(plan(kGke), {"p10", ""}), Contains("did you mean 'p100'?"));
  CHECK_THAT(terraform("{"), Contains("plan.json:"));
}
