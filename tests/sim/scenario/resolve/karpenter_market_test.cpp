#include "sim/scenario/resolve/autoscaling/karpenter_market.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "support/scenario_text.h"

// What Karpenter may launch for jobs that share a cluster, of the catalog's machines and prices.
using namespace reckon;
using Catch::Matchers::Contains;

namespace {

const std::string kMarketBase = R"(
name: base
cluster:
  provider: aws
  service: eks
  region: us-east-1
  autoscaler: karpenter
  karpenter:
    nodePools:
      - name: default
        requirements:
          - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
          - {key: karpenter.k8s.aws/instance-gpu-name, operator: In, values: [a10g]}
  scheduler: {policy: kubernetes, kubernetes: {preemptionPolicy: Never}}
jobs:
  - {name: a, gpus: 1, duration: 1h}
)";

Expected<KarpenterOffers> market_with(const std::vector<std::string>& overrides = {}) {
  const auto scenario = parse_scenario(kMarketBase, "base.yaml", overrides);
  REQUIRE(scenario);
  return karpenter_offers(*scenario, test::shipped_catalog());
}

std::string market_errors(const std::string& override) {
  const auto offers = market_with({override});
  REQUIRE_FALSE(offers);
  std::string text;
  for (const Diagnostic& d : offers.error()) text += d.what + "\n" + d.hint + "\n";
  return text;
}

}  // namespace

TEST_CASE("a queue's NodePools admit all sizes of a machine, at the catalog's prices") {
  const auto offers = market_with();
  REQUIRE(offers);
  std::vector<std::string> names;
  for (const KarpenterOffer& o : offers->offers) names.push_back(o.machine.name);
  for (const char* size : {"g5.xlarge", "g5.2xlarge", "g5.12xlarge", "g5.48xlarge"})
    CHECK(std::ranges::find(names, size) != names.end());
  const auto small = std::ranges::find(offers->offers, "g5.xlarge",
                                       [](const KarpenterOffer& o) { return o.machine.name; });
  CHECK(small->price.nano_usd_per_hour == 1'006'000'000);
  CHECK(small->provisioning.value.count() > 0);
  for (const KarpenterOffer& o : offers->offers) {
    CHECK(o.machine.accelerator == "A10G");
    CHECK(o.capacity == CapacityType::on_demand);
    CHECK(o.price.nano_usd_per_hour > 0);
  }
  // The user's discount counts.
  const auto cheaper = market_with({"prices={discount: 50%}"});
  REQUIRE(cheaper);
  CHECK(cheaper->offers.front().price.nano_usd_per_hour * 2 ==
        offers->offers.front().price.nano_usd_per_hour);
}

TEST_CASE("two kinds of GPUs, none at all and other services are told") {
  const std::string requirements = "cluster.karpenter.nodePools.default.requirements=";
  CHECK_THAT(market_errors(requirements + "[]"), Contains("kinds of GPUs") && Contains("A10G"));
  CHECK_THAT(market_errors(requirements + "[{key: node.kubernetes.io/instance-type, operator: In, "
                                          "values: [c5.large]}]"),
             Contains("admit no machine with GPUs"));
  CHECK_THAT(market_errors(requirements + "[{key: karpenter.k8s.aws/instance-gpu-nam, operator: "
                                          "Exists}]"),
             Contains("did you mean 'karpenter.k8s.aws/instance-gpu-name'?"));
  CHECK_THAT(market_errors("cluster.service=none"), Contains("Karpenter is not simulated under"));
}
