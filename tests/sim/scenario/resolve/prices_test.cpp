#include <catch2/catch.hpp>

#include "support/scenario_text.h"

// The user's own prices and machines: discounts, reservations, bought machines, sizes of their own.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

const std::string kCloud = R"(
name: cloud
start: 2026-12-01T06:00:00Z
workload:
  model: resnet50
  dataset: imagenet
  train: {epochs: 90}
  precision: fp32
  batch_per_accelerator: 64
  strategy: {kind: multi_worker_mirrored}
cluster:
  provider: gcp
  region: us-central1
  zone: us-central1-c
  pools:
    - name: p100
      machine: n1-standard-16
      accelerator: {type: P100-PCIE-16, count: 2}
      nodes: 3
)";

std::string premises(const std::string& machine) {
  return R"(
name: lab
workload:
  model: resnet50
  dataset: imagenet
  train: {epochs: 90}
  precision: fp32
  batch_per_accelerator: 64
  strategy: {kind: multi_worker_mirrored}
  checkpoint: {storage: nfs}
cluster:
  provider: on_premises
  pools:
    - name: own
      machine: )" +
         machine + R"(
      accelerator: {type: P100-PCIE-16, count: 2}
      nodes: 3
)";
}

Plan priced_plan(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return test::checked_plan_of(text, overrides);
}

bool price_warns(const Plan& plan, const std::string& text) {
  return std::any_of(plan.warnings.begin(), plan.warnings.end(),
                     [&](const std::string& w) { return w.find(text) != std::string::npos; });
}

constexpr const char* kSize = "vcpu: 64, memory: 512GiB, network: 100Gbps";

}  // namespace

TEST_CASE("a bought machine costs its purchase over its life and its power at the tariff") {
  const Plan plan = priced_plan(
      premises(std::string("{") + kSize +
               ", purchase: 262800 USD, amortised_over: 3y, power: 10kW, tariff: 0.15 USD/kWh}"));
  // 262,800 USD / (3 x 8,760 h) = 10 USD/h; 10 kW x 0.15 USD/kWh = 1.50 USD/h
  CHECK(plan.pools.at(0).price.known);
  CHECK(plan.pools.at(0).price.machine.nano_usd_per_hour == 11'500'000'000);
  CHECK(plan.pools.at(0).price.accelerators.nano_usd_per_hour == 0);
}

TEST_CASE("a dedicated machine costs its rate, power comes on top") {
  const Plan plan = priced_plan(premises(
      std::string("{") + kSize + ", price: 730 USD/month, power: 2000W, tariff: 200 USD/MWh}"));
  // 730 USD over 730 h is 1 USD/h; 2 kW x 0.20 USD/kWh = 0.40 USD/h
  CHECK(plan.pools.at(0).price.machine.nano_usd_per_hour == 1'400'000'000);
}

TEST_CASE("a bought machine may be paid in another currency") {
  const Plan plan =
      priced_plan(premises(std::string("{") + kSize + ", purchase: 70080 EUR, amortised_over: 1y}"),
                  {"prices={currency: EUR, usd_rate: 0.8}"});
  // 70,080 EUR / 8,760 h = 8 EUR/h = 10 USD/h at 0.8 EUR a USD
  CHECK(plan.pools.at(0).price.machine.nano_usd_per_hour == 10'000'000'000);
}

TEST_CASE("half of a purchase or of a power price is a mistake") {
  const auto errors = [](const std::string& rest) {
    return errors_of(premises(std::string("{") + kSize + ", " + rest + "}"));
  };
  CHECK_THAT(errors("purchase: 250000 USD"), Contains("'purchase' needs 'amortised_over'"));
  CHECK_THAT(errors("amortised_over: 3y"), Contains("'amortised_over' needs 'purchase'"));
  CHECK_THAT(errors("power: 10kW"), Contains("'power' needs 'tariff'"));
  CHECK_THAT(errors("tariff: 0.15 USD/kWh"), Contains("'tariff' needs 'power'"));
  CHECK_THAT(errors("price: 4 USD/h, purchase: 250000 USD, amortised_over: 3y"),
             Contains("'purchase' cannot stand beside 'price'"));
  CHECK_THAT(errors("power: 10, tariff: 0.15 USD/kWh"),
             Contains("'10' is not a power such as 700W or 10kW"));
  CHECK_THAT(errors("power: 10kW, tariff: 0.15 USD/h"),
             Contains("'0.15 USD/h' is not a price of electricity such as 0.15 USD/kWh"));
  CHECK_THAT(errors("purchase: 250000 EUR, amortised_over: 3y"),
             Contains("machine.purchase is in EUR, whose rate is not known"));
}

TEST_CASE("a machine without any price has time and node-hours but no cost") {
  const std::string text = premises(std::string("{") + kSize + "}");
  const Plan plan = priced_plan(text);
  CHECK_FALSE(plan.pools.at(0).price.known);
  CHECK(price_warns(plan, "the cost cannot be said"));
  CHECK_THAT(
      errors_of(text, {"expect=[p95(time) <= 48h, cost <= 100 USD]"}),
      Contains("error: 'cost <= 100 USD' cannot be said: the price of pool 'own' is not known"));
  CHECK(errors_of(text, {"expect=[p95(time) <= 48h]"}).empty());
}

TEST_CASE("a reservation prices so many nodes until the end of its last day") {
  const Plan plan = priced_plan(
      kCloud, {"prices={reserved: [{machine: n1-standard-16, count: 2, until: 2026-12-02, price: 2 "
               "USD/h}]}"});
  const auto& reservation = plan.pools.at(0).reservation;
  REQUIRE(reservation);
  CHECK(reservation->nodes == 2);
  CHECK(reservation->price.nano_usd_per_hour == 2'000'000'000);
  // From 06:00 on the 1st to the end of the 2nd: 18 h + 24 h.
  REQUIRE(reservation->until);
  CHECK(reservation->until->count() == 42 * 3600);
  // The third node, and all after the term, cost what the catalog says: 0.76 + 2 x 1.46 USD/h.
  CHECK(plan.pools.at(0).price.machine.nano_usd_per_hour == 760'000'000);
  CHECK(plan.pools.at(0).price.accelerators.nano_usd_per_hour == 2'920'000'000);
}

TEST_CASE("a reservation that is over has no time left, one without an end covers everything") {
  const Plan over = priced_plan(
      kCloud, {"prices={reserved: [{machine: n1-standard-16, count: 2, until: 2026-11-30, price: 2 "
               "USD/h}]}"});
  CHECK(over.pools.at(0).reservation->until->count() == 0);
  const Plan always = priced_plan(
      kCloud, {"cluster.region=us-east1", "cluster.zone=us-east1-c",
               "prices={reserved: [{machine: n1-standard-16, count: 4, price: 2 USD/h}]}",
               "expect=[cost <= 100 USD]"});
  // No list price is known in us-east1, and none is needed.
  CHECK(always.pools.at(0).price.known);
  CHECK(always.pools.at(0).price.machine.nano_usd_per_hour == 2'000'000'000);
  CHECK(always.pools.at(0).reservation->nodes == 3);
  CHECK_FALSE(price_warns(always, "is known"));
}

TEST_CASE("mistakes about reservations are said") {
  const auto reserved = [](const std::string& entry, const std::string& more = "name=x") {
    return errors_of(kCloud, {"prices={reserved: [" + entry + "]}", more});
  };
  std::string undated = kCloud;
  undated.erase(undated.find("start:"), undated.find("workload:") - undated.find("start:"));
  CHECK_THAT(errors_of(undated, {"prices={reserved: [{machine: n1-standard-16, count: 2, until: "
                                 "2026-12-02, price: 2 USD/h}]}"}),
             Contains("a reservation with a date needs the day on which the run starts"));
  CHECK_THAT(reserved("{machine: n1-standard-16, count: 1, price: 2 USD/h}, {machine: "
                      "n1-standard-16, count: 1, price: 2 USD/h}"),
             Contains("pool 'p100' has a reservation already"));
  CHECK_THAT(reserved("{machine: n1-standard-32, count: 1, price: 2 USD/h}",
                      "cluster.pools.p100.pricing=reserved"),
             Contains("no reservation covers pool 'p100'"));
  CHECK(reserved("{machine: n1-standard-16, count: 3, price: 2 USD/h}",
                 "cluster.pools.p100.pricing=reserved")
            .empty());
}

TEST_CASE("a custom machine has a plan and a price that is said to be made up of parts") {
  const Plan plan = priced_plan(kCloud, {"cluster.pools.p100.machine=custom-24-98304",
                                         "cluster.pools.p100.accelerator={type: P100, count: 2}"});
  CHECK(plan.pools.at(0).machine.vcpus == 24);
  // 24 x 0.033174 + 96 x 0.004446 USD/h
  CHECK(plan.pools.at(0).price.machine.nano_usd_per_hour == 1'222'992'000);
  CHECK(price_warns(plan, "24 vCPUs and 96 GiB of n1-custom"));
  CHECK_THAT(errors_of(kCloud, {"cluster.pools.p100.machine=custom-24-98305"}),
             Contains("98305 MiB is not a multiple of 256 MiB"));
  // One P100 takes at most 16 vCPUs.
  CHECK_THAT(errors_of(kCloud, {"cluster.pools.p100.machine=custom-24-98304",
                                "cluster.pools.p100.accelerator={type: P100, count: 1}"}),
             Contains("valid counts of P100-PCIE-16 on custom-24-98304: 2 or 4"));
  const Plan own = priced_plan(kCloud, {"cluster.pools.p100.machine=custom-24-98304",
                                        "prices={rates: {custom-24-98304: 1 USD/h}}"});
  CHECK(own.pools.at(0).price.machine.nano_usd_per_hour == 1'000'000'000);
}

TEST_CASE("list prices that look wrong are used only where the user asks for them") {
  std::string text = kCloud;
  const std::string accelerator = "      accelerator: {type: P100-PCIE-16, count: 2}\n";
  text.erase(text.find(accelerator), accelerator.size());
  const std::vector<std::string> tokyo{"cluster.region=asia-northeast1",
                                       "cluster.zone=asia-northeast1-a",
                                       "cluster.pools.p100.machine=a2-highgpu-1g"};
  // The A100's 1.70586 USD/h there is half of what other regions ask.
  const Plan unknown = priced_plan(text, tokyo);
  CHECK_FALSE(unknown.pools.at(0).price.known);
  CHECK(price_warns(unknown, "no on-demand price of A100-SXM4-40 in asia-northeast1 is known"));
  std::vector<std::string> asked = tokyo;
  asked.push_back("prices={suspect: true}");
  const Plan plan = priced_plan(text, asked);
  CHECK(plan.pools.at(0).price.machine.nano_usd_per_hour == 948'030'000);
  CHECK(plan.pools.at(0).price.accelerators.nano_usd_per_hour == 1'705'860'000);
  CHECK(price_warns(plan, "the price of A100-SXM4-40 looks wrong and was asked for"));
}

TEST_CASE("the provider maintains the machines of a reservation together, others each by itself") {
  CHECK_FALSE(priced_plan(kCloud).maintenance.grouped);
  const std::vector<std::string> held{
      "cluster.pools.p100.pricing=reserved",
      "prices={reserved: [{machine: n1-standard-16, count: 3, price: 2 USD/h}]}"};
  CHECK(priced_plan(kCloud, held).maintenance.grouped);
}
