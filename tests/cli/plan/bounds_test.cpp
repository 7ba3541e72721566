#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "cli/run_reckon.h"

// Questions that are too large end in an error that says so: never in a smaller bill, never in a
// crash, never in hours of work.
using namespace reckon::test;

namespace {

const std::string kPremises = R"(name: large
workload:
  model: resnet18
  dataset: {samples: 4e14, bytes_per_sample: 1B}
  train: {epochs: 1}
  precision: fp32
  batch_per_accelerator: 64
  strategy: {kind: multi_worker_mirrored}
  checkpoint: {interval: none}
cluster:
  provider: on_premises
  pools:
    - name: all
      machine: {vcpu: 64, memory: 512GiB, network: 100Gbps, price: 200 USD/h}
      accelerator: {type: A100-SXM4-80, count: 1}
      nodes: 8192
disruptions: {preemption: none, maintenance: none, failures: none}
forecast: {replications: 2}
expect: [p95(cost) >= 9300000000 USD]
)";

/// Prices of a user's catalog: an hourly price of a machine as `usd`.
void write_prices(const Workspace& w, const std::string& usd) {
  w.write("own/prices.csv",
          "provider,region,item,covers,on_demand_usd_per_hour,date,zones,count\n"
          "gcp,us-central1,n1-standard-16,machine," +
              usd + ",2026-07-20,,\n");
}

}  // namespace

TEST_CASE("the bill of 8,192 nodes at 200 USD/h for years is their number x price x time") {
  const Workspace w;
  w.write("a.yaml", kPremises);
  const Output r = w.run("simulate a.yaml --format json");
  INFO(r.err);
  REQUIRE(r.code == 0);
  const auto forecast = nlohmann::json::parse(r.out);
  const double hours = double(forecast["time_seconds"]["mean"]) / 3600;
  CHECK(hours > 8760);
  CHECK(double(forecast["cost_usd"]["mean"]) == Approx(8192 * 200 * hours).epsilon(1e-6));
  CHECK(w.run("check a.yaml").code == 0);  // above the 9.3 billion USD of 64 bits
}

TEST_CASE("a catalog's price of 1e308 USD/h is wrong input with its place") {
  const Workspace w;
  w.write("a.yaml", kScenario);
  write_prices(w, "1e308");
  const Output r = w.run("simulate a.yaml --catalog own");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "prices.csv:2:"));
  CHECK(contains(r.err, "is more than 1,000,000 USD an hour"));
}

TEST_CASE("work without end is refused before it begins, with what to do, by every command") {
  const Workspace w;
  w.write("a.yaml", kPremises);
  w.write("small.yaml", kScenario);
  const std::string much =
      " --set forecast.replications=1000000 --set cluster.pools.all.nodes=65536";
  for (const std::string& command :
       {"simulate a.yaml" + much, "check a.yaml" + much, "compare a.yaml a.yaml" + much,
        "simulate a.yaml --sweep forecast.seed=1,2" + much}) {
    const Output r = w.run(command);
    INFO(command << "\n" << r.out << r.err);
    CHECK(r.code == 2);
    CHECK(contains(r.err, "replications of 1 job on 65,536 nodes take about"));
    CHECK(contains(r.err, "fewer replications, jobs or nodes"));
    CHECK(contains(r.err, "RECKON_MAX_CPU_TIME="));
  }
  // A point that is too large is a row, and a file that is too large stops no other.
  const Output sweep = w.run(
      "simulate a.yaml --sweep forecast.replications=2,1000000 --set "
      "cluster.pools.all.nodes=65536");
  INFO(sweep.err);
  CHECK(sweep.code == 0);
  CHECK(contains(sweep.out, "replications of 1 job on 65,536 nodes take about"));
  const Output lifted = w.run("simulate a.yaml", "RECKON_MAX_CPU_TIME=1us");
  CHECK(lifted.code == 2);
  CHECK(contains(lifted.err, "RECKON_MAX_CPU_TIME=1h allows it"));
  const Output wrong = w.run("simulate a.yaml", "RECKON_MAX_CPU_TIME=soon");
  CHECK(wrong.code == 3);
  CHECK(contains(wrong.err, "RECKON_MAX_CPU_TIME: 'soon' is not a duration"));
}

TEST_CASE("a million jobs are refused at once") {
  const Workspace w;
  std::string text = "name: many\njobs:\n";
  for (int k = 0; k < 1000; ++k)
    text += "  - {name: j" + std::to_string(k) +
            ", every: 1h, times: 1000, workload: {model: resnet18, dataset: imagenet, train: "
            "{epochs: 1}, precision: fp32, batch_per_accelerator: 64, strategy: {kind: "
            "mirrored}}}\n";
  text += kPremises.substr(kPremises.find("cluster:"));
  w.write("many.yaml", text);
  const Output r = w.run("simulate many.yaml");
  CHECK(r.code == 2);
  CHECK(contains(r.err, "jobs up to 'j"));
  CHECK(contains(r.err, "fewer jobs, or fewer times; RECKON_MAX_MEMORY="));
}
