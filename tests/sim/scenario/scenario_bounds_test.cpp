#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "sim/scenario/yaml/scenario_yaml.h"
#include "support/scenario_text.h"

// Numbers that the reader refuses because nothing could be counted with them, each at its place
// with its bound.
using namespace reckon;
using namespace reckon::test;
using Catch::Matchers::Contains;

namespace {

std::string premises_with(const std::string& machine, const std::string& rest = "",
                          const std::string& nodes = "3") {
  return fmt::format(R"(name: premises
workload:
  model: resnet18
  dataset: {{samples: 1000000, bytes_per_sample: 110kB}}
  train: {{epochs: 1}}
  precision: fp32
  batch_per_accelerator: 64
  strategy: {{kind: multi_worker_mirrored}}
cluster:
  provider: on_premises
  pools:
    - name: all
      machine: {{vcpu: 64, memory: 512GiB, network: 100Gbps, {}}}
      accelerator: {{type: A100-SXM4-80, count: 1}}
      nodes: {}
{})",
                     machine, nodes, rest);
}

}  // namespace

TEST_CASE("what a node costs an hour is bounded, however it is written") {
  CHECK(errors_of(premises_with("price: 1000000 USD/h")) == "");
  CHECK_THAT(
      errors_of(premises_with("price: 1 USD/s", "prices: {rates: {A100-SXM4-80: 9e5 USD/h}}")),
      !Contains("costs"));  // an inline machine's price covers all of it
  CHECK_THAT(errors_of(premises_with("price: 900000 EUR/h",
                                     "prices: {currency: EUR, usd_rate: 0.000001}\n")),
             Contains("s.yaml:12:7: error: ") &&
                 Contains("a node of pool 'all' costs 9e+11 USD an hour, but must be at most "
                          "1,000,000"));
  CHECK_THAT(
      errors_of(premises_with("price: 9 EUR/h", "prices: {currency: EUR, usd_rate: 1e-300}\n")),
      Contains("prices.usd_rate is 1e-300, but must be at least 1e-06"));
  CHECK_THAT(errors_of(premises_with("purchase: 1000000000 USD, amortised_over: 1s")),
             Contains("costs 3.6e+12 USD an hour"));
  CHECK_THAT(errors_of(premises_with("price: 1 USD/h, power: 10kW, tariff: 1e300 USD/kWh")),
             Contains("is not a price of electricity") && Contains("at most 1,000,000 a kWh"));
  CHECK_THAT(errors_of(premises_with("price: 1 USD/h, power: 1e9MW, tariff: 0.1 USD/kWh")),
             Contains("is not a power") && Contains("at most 1000MW"));
}

TEST_CASE("a machine has memory and a network that can be divided by") {
  CHECK_THAT(
      errors_of(premises_with("price: 1 USD/h"), {"cluster.pools.all.machine.network=1e-300B/s"}),
      Contains("machine.network is 1e-300B/s, but must be at least 1B/s"));
  CHECK_THAT(
      errors_of(premises_with("price: 1 USD/h"), {"cluster.pools.all.machine.memory=1e-300B"}),
      Contains("machine.memory is 1e-300B, but must be at least 1B"));
}

TEST_CASE("the pools of a cluster have a million nodes together, not each") {
  std::string text = premises_with("price: 1 USD/h", "", "65536");
  for (int k = 0; k < 17; ++k)
    text += fmt::format(
        "    - {{name: p{}, machine: {{vcpu: 1, memory: 1GB, network: 1Gbps}}, nodes: 65536}}\n",
        k);
  CHECK_THAT(errors_of(text), Contains("cluster.pools") || Contains("the pools have"));
  CHECK_THAT(errors_of(text),
             Contains("the pools have 1,179,648 nodes together, but must have at most 1,048,576"));
}

TEST_CASE("jobs are submitted within ten years") {
  const auto jobs = [](const std::string& when) {
    return fmt::format(R"(name: many
jobs:
  - name: small
    {}
    workload: {{model: resnet18, dataset: imagenet, train: {{epochs: 1}}, precision: fp32,
               batch_per_accelerator: 64, strategy: {{kind: mirrored}}}}
cluster:
  provider: gcp
  region: us-central1
  zone: us-central1-c
  pools: [{{name: p100, machine: n1-standard-16, accelerator: {{type: P100-PCIE-16, count: 2}}}}]
)",
                       when);
  };
  CHECK(errors_of(jobs("every: 3d\n    times: 1000")) == "");
  CHECK_THAT(errors_of(jobs("every: 30d\n    times: 1000")),
             Contains("s.yaml:5:12: error: jobs.small is submitted for the last time after") &&
                 Contains("a smaller every, or fewer times"));
  CHECK_THAT(errors_of(jobs("submit: 11y")), Contains("but must be at most 3650d"));
}

TEST_CASE("more steps than 64 bits hold are refused with their number") {
  const std::string text = premises_with("price: 1 USD/h");
  CHECK_THAT(errors_of(text, {"workload.dataset.samples=1e15", "workload.train.epochs=1e6",
                              "workload.batch_per_accelerator=1"}),
             Contains("the training has 3.33e+20 steps"));
}

TEST_CASE("a network has no more parameters than can be counted") {
  CHECK_THAT(errors_of(premises_with("price: 1 USD/h"),
                       {"workload.model={transformer: {layers: 10000, hidden: 1000000, heads: 1, "
                        "vocabulary: 1000, sequence_length: 8}}"}),
             Contains("the network has 1.2e+17 parameters"));
}

TEST_CASE("partitions of a byte are no endless work") {
  const std::string text = R"(name: servers
workload:
  model: resnet50
  dataset: imagenet
  train: {steps: 10}
  precision: fp32
  batch_per_accelerator: 32
  strategy: {kind: parameter_server, parameter_servers: 2, shards: balanced, partition: 1B}
cluster:
  provider: gcp
  region: us-central1
  zone: us-central1-c
  pools:
    - {name: w, machine: n1-standard-16, accelerator: {type: P100-PCIE-16, count: 1}, nodes: 2}
    - {name: s, role: parameter_server, machine: n1-highmem-8, nodes: 2}
)";
  CHECK(errors_of(text) == "");
}
