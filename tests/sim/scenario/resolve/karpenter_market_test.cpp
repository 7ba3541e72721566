#include "sim/scenario/resolve/autoscaling/karpenter_market.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include <fmt/format.h>

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

TEST_CASE("a NodePool whose nodes expire before they are ready is told, where most do") {
  const std::string expire = "cluster.karpenter.nodePools.default.expireAfter=";
  CHECK_THAT(market_errors(expire + "1s"), Contains("most nodes would expire before they are "
                                                    "ready") &&
                                               Contains("expireAfter: above"));
  const auto offers = market_with();
  REQUIRE(offers);
  const Fact<Seconds> delay = offers->offers.front().provisioning;
  REQUIRE(delay.high > delay.value);
  const double between = (delay.value.count() + delay.high.count()) / 2;
  const auto some = market_with({fmt::format("{}{}s", expire, int(between))});
  REQUIRE(some);
  CHECK_THAT(some->warnings.back(), Contains("some nodes of NodePool 'default' expire"));
  CHECK(market_with({fmt::format("{}{}s", expire, int(delay.high.count()) + 1)})->warnings.size() ==
        offers->warnings.size());
  CHECK(market_with({expire + "Never"}));
}

TEST_CASE("spot nodes of a queue are reclaimed by the scenario's law, or the catalog's") {
  const auto none = market_with();
  REQUIRE(none);
  CHECK(std::holds_alternative<NoReclaim>(none->reclaim));
  const std::string spot =
      "cluster.karpenter.nodePools.default.requirements=[{key: karpenter.sh/capacity-type, "
      "operator: In, values: [spot]}, {key: karpenter.k8s.aws/instance-gpu-name, operator: In, "
      "values: [v100]}]";  // of which the catalog has a spot price
  const auto assumed = market_with({spot});
  REQUIRE(assumed);
  CHECK(std::get<ExponentialReclaim>(assumed->reclaim).mean.count() > 3600);
  CHECK(assumed->notice.count() == 120);  // of EC2
  CHECK(std::ranges::any_of(assumed->warnings, [](const std::string& w) {
    return w.find("no spot reclaim rate given") != std::string::npos;
  }));
  const auto given = market_with({spot, "disruptions={preemption: !exponential {mean: 3h}}"});
  REQUIRE(given);
  CHECK(std::get<ExponentialReclaim>(given->reclaim).mean.count() == 3 * 3600);
  const auto off = market_with({spot, "disruptions={preemption: none}"});
  REQUIRE(off);
  CHECK(std::holds_alternative<NoReclaim>(off->reclaim));
}

TEST_CASE("offers have the values of minValues, and a NodePool that never has enough is told") {
  const auto requiring = [](const std::string& more) {
    return "cluster.karpenter.nodePools.default.requirements=[{key: karpenter.sh/capacity-type, "
           "operator: In, values: [on-demand]}, {key: karpenter.k8s.aws/instance-gpu-name, "
           "operator: In, values: [a10g]}, " +
           more + "]";
  };
  const auto offers = market_with(
      {requiring("{key: node.kubernetes.io/instance-type, operator: Exists, minValues: 4}, "
                 "{key: karpenter.k8s.aws/instance-family, operator: In, values: [g5], minValues: "
                 "1}")});
  REQUIRE(offers);
  for (const KarpenterOffer& o : offers->offers)
    CHECK(o.values == std::vector<std::string>{o.machine.name, "g5"});
  CHECK_THAT(market_errors(requiring(
                 "{key: karpenter.k8s.aws/instance-family, operator: Exists, minValues: 3}")),
             Contains("admits machines with fewer than 3 values of "
                      "karpenter.k8s.aws/instance-family"));
  const std::vector<std::string> few{
      requiring("{key: karpenter.k8s.aws/instance-family, operator: In, values: [g5, g6], "
                "minValues: 3}")};
  const auto unreadable = parse_scenario(kMarketBase, "base.yaml", few);
  REQUIRE_FALSE(unreadable);
  CHECK_THAT(format(unreadable.error()), Contains("minValues is 3, and `values` has 2"));
}

TEST_CASE("spot capacity of a queue is gone at times, as the scenario or the catalog says") {
  const std::string spot =
      "cluster.karpenter.nodePools.default.requirements=[{key: karpenter.sh/capacity-type, "
      "operator: In, values: [spot]}, {key: karpenter.k8s.aws/instance-gpu-name, operator: In, "
      "values: [v100]}]";
  CHECK_FALSE(market_with()->shortage.on);  // on demand
  const auto assumed = market_with({spot});
  REQUIRE(assumed);
  CHECK(assumed->shortage.on);
  CHECK(assumed->shortage.every.value.count() > 3600);
  const auto given = market_with({spot, "disruptions={shortage: {every: 5h, lasts: 2h}}"});
  REQUIRE(given);
  CHECK(given->shortage.every.value.count() == 5 * 3600);
  CHECK(given->shortage.lasts.value.count() == 2 * 3600);
  CHECK_FALSE(market_with({spot, "disruptions={shortage: none}"})->shortage.on);
}
