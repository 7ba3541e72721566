#include "sim/scenario/yaml/scenario_yaml.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "sim/scenario/scenario_texts.h"

using namespace reckon;
using namespace reckon::testing;

namespace {

ScenarioFile read(std::string_view text, const std::vector<std::string>& overrides = {}) {
  auto file = parse_scenario(text, "s.yaml", overrides);
  if (!file) FAIL(format(file.error()));
  return std::move(*file);
}
std::string scenario_yaml_errors(std::string_view text,
                                 const std::vector<std::string>& overrides = {}) {
  const auto file = parse_scenario(text, "s.yaml", overrides);
  return file ? "" : format(file.error());
}
/// kSmall with `disruptions: {preemption: LAW}`.
ReclaimSpec law(const std::string& text) {
  return read(std::string(kSmall) + "disruptions: {preemption: " + text + "}\n")
      .scenario.disruptions.preemption.value();
}

}  // namespace

TEST_CASE("a scenario with parameter servers is read key by key") {
  const Scenario s = read(kServers).scenario;
  CHECK(s.name == "resnet50-spot-p100");
  // 2026-12-04 is day 20791 of the Unix epoch; 18 h into it.
  CHECK(s.start.value().time_since_epoch() == std::chrono::days{20791} + std::chrono::hours{18});
  const WorkloadSpec& w = s.workload.value();
  CHECK(std::get<ModelByName>(w.model.value()).name == "resnet50_v1_5");
  CHECK(std::get<DatasetInline>(w.dataset.value()).samples == 1281167);
  CHECK(std::get<DatasetInline>(w.dataset.value()).bytes_per_sample == Bytes{110e3});
  CHECK(w.train.value().unit == TrainLength::Unit::epochs);
  CHECK(w.train.value().amount == 90);
  CHECK(w.precision == Precision::fp32);
  CHECK(w.optimizer == "sgd");
  CHECK(w.batch_per_accelerator == 64);
  CHECK_FALSE(w.global_batch);
  CHECK(w.evaluate_every_epochs == 4.0);
  CHECK(w.stack == "tf1");
  CHECK(w.strategy.kind == StrategyKind::parameter_server);
  CHECK(w.strategy.workers == 4);
  CHECK(w.strategy.accelerators_per_worker == 1);
  CHECK(w.strategy.parameter_servers == 2);
  CHECK(w.strategy.synchronous == true);
  CHECK(w.strategy.backup_workers == 1);
  CHECK(w.strategy.recompute == Recompute::none);
  CHECK(w.checkpoint.value().mode == CheckpointSpec::Mode::interval);
  CHECK(w.checkpoint.value().interval == Seconds{600});
  CHECK(w.checkpoint.value().storage == "gcs-standard");
}

TEST_CASE("the cluster, prices and disruptions of a scenario are read key by key") {
  const Scenario s = read(kServers).scenario;
  CHECK(s.cluster.provider == Provider{"gcp"});
  CHECK(s.cluster.service == Service{"gke"});
  CHECK(s.cluster.region == "us-central1");
  CHECK(s.cluster.zone == "us-central1-c");
  REQUIRE(s.cluster.pools.size() == 2);
  const PoolSpec& p = s.cluster.pools[0];
  CHECK(p.name == "p100");
  CHECK(p.role == Role::worker);
  CHECK(std::get<MachineByName>(p.machine).name == "n1-standard-16");
  CHECK(p.accelerator.value().type == "P100-PCIE-16");
  CHECK(p.accelerator.value().count == 2);
  CHECK(p.nodes.initial == 3);
  CHECK(p.nodes.min == 0);
  CHECK(p.nodes.max == 5);
  CHECK(p.autoscaling);
  CHECK(p.pricing == CapacityType::spot);
  CHECK(s.cluster.pools[1].nodes.min == 2);
  CHECK(s.cluster.pools[1].nodes.max == 2);
  const PricesSpec& prices = s.prices.value();
  CHECK(prices.currency == "EUR");
  CHECK(prices.usd_rate == 0.92);
  CHECK(prices.discount == Approx(0.3));
  CHECK(prices.rates.at("a3-highgpu-8g").amount == Approx(61.20 / 3600));
  CHECK(prices.rates.at("n1-highmem-8").currency == "EUR");
  REQUIRE(prices.reserved.size() == 1);
  CHECK(prices.reserved[0].count == 4);
  CHECK(prices.reserved[0].until == "2027-06-30");
  CHECK(std::get<ExponentialReclaim>(s.disruptions.preemption.value()).mean == Seconds{8 * 3600});
  CHECK(s.disruptions.maintenance.value().every == Seconds{30 * 86400});
  CHECK(s.disruptions.maintenance.value().notice == Seconds{3600});
  CHECK(s.disruptions.failures.value().mtbf_per_accelerator == Seconds{50000.0 * 3600});
  CHECK_FALSE(s.disruptions.failures_off);
}

TEST_CASE("the forecast, expectations and plan blocks are read and kept as written") {
  const Scenario s = read(kServers).scenario;
  CHECK(s.forecast.replications == 1000);
  CHECK(s.forecast.seed == 1);
  REQUIRE(s.expect.size() == 2);
  CHECK(s.expect[0].text == "p95(time) <= 48h");
  const PlanSpec& plan = s.plan.value();
  CHECK(plan.vary.at("nodes") == std::vector<std::string>{"1..64"});
  CHECK(plan.vary.at("provider") == std::vector<std::string>{"gcp", "aws"});
  CHECK(plan.deadline == "72h@95%");
  CHECK(plan.budget == "20000 USD@90%");
  CHECK(plan.quota.at("gcp/us-central1/H100-SXM5-80") == 128);
  CHECK(plan.objective == Objective::cost);
  const PlannedSpec& planned = s.planned.value();
  CHECK(planned.schema_version == 1);
  CHECK(planned.catalog_digest == "93ce1f0a5b7d2468");
  CHECK(planned.seed == 7);
  CHECK(planned.forecast.at("time_seconds.p50") == "120000");
}

TEST_CASE("several jobs with every kind of model are read key by key") {
  const Scenario s = read(kJobs).scenario;
  CHECK(s.name == "s");  // the file's
  CHECK_FALSE(s.workload);
  REQUIRE(s.jobs.size() == 4);
  const auto& d = std::get<ModelFromTransformer>(s.jobs[0].workload.model.value()).dimensions;
  CHECK(d.kv_heads == 8);
  CHECK(d.rms_norm);
  CHECK_FALSE(d.bias);
  CHECK(d.activation == ActivationKind::silu);
  CHECK(s.jobs[0].workload.train.value().amount == 1e10);
  CHECK(s.jobs[0].workload.sequence_length == 2048);
  CHECK(s.jobs[0].workload.finetune.value().rank == 16);
  CHECK(s.jobs[0].workload.strategy.tensor == 8);
  CHECK(s.jobs[0].workload.strategy.all_reduce == AllReduceKind::tree);
  CHECK(s.jobs[0].workload.checkpoint.value().mode == CheckpointSpec::Mode::optimal);
  CHECK(s.jobs[1].submit == Seconds{7200});
  CHECK(std::get<ModelFromHuggingFace>(s.jobs[1].workload.model.value()).config ==
        "llama/config.json");
  CHECK(s.jobs[1].workload.train.value().amount == 1e5);  // written 1e5
  CHECK(s.jobs[1].workload.batch_per_accelerator == 8);   // written 08
  CHECK(s.jobs[1].workload.checkpoint.value().mode == CheckpointSpec::Mode::none);
  CHECK(std::get<Seconds>(s.jobs[2].workload.container.value().profile) == Seconds{0.21});
  CHECK(s.jobs[2].workload.container.value().command ==
        std::vector<std::string>{"python", "train.py"});
  CHECK(std::get<ModelFromLayers>(s.jobs[3].workload.model.value()).layers.at(0).at("linear") ==
        "128");
  CHECK(s.jobs[3].workload.strategy.staleness == 4);
  const Scenario named = read(kJobs, {"jobs.c.workload.container.profile=resnet50"}).scenario;
  CHECK(std::get<std::string>(named.jobs[2].workload.container.value().profile) == "resnet50");
  const auto& machine = std::get<MachineInline>(s.cluster.pools[0].machine);
  CHECK(machine.vcpus == 64);
  CHECK(machine.network == BytesPerSecond{12.5e9});
  CHECK(machine.price.value().amount == Approx(4.10 / 3600));
  CHECK(std::holds_alternative<NoReclaim>(s.disruptions.preemption.value()));
  CHECK(s.disruptions.maintenance_off);
  CHECK(s.disruptions.failures_off);
}

TEST_CASE("recorded jobs and TPU slices are read key by key") {
  const Scenario s = read(kTrace).scenario;
  CHECK(s.trace.value().file == "jobs.csv");
  CHECK(s.trace.value().format == TraceFormat::philly);
  CHECK(s.cluster.pools[0].tpu.value().type == "TPU-v2");
  CHECK(s.cluster.pools[0].tpu.value().slice == "v2-8");
  CHECK(s.cluster.pools[0].nodes.max == 1);
}

TEST_CASE("every law of preemption is read by its tag") {
  const auto trace = std::get<TraceReclaim>(
      law("!trace {generate: {mean: 120h, duration: 30d, nodes: 100, seed: 7}}"));
  CHECK(trace.generate.value().mean == Seconds{120 * 3600});
  CHECK(trace.generate.value().duration == Seconds{30 * 86400});
  CHECK(trace.generate.value().nodes == 100);
  CHECK(trace.generate.value().seed == 7);
  const auto file = std::get<TraceReclaim>(law("!trace {file: p3.json, gap: 600s}"));
  CHECK(file.file == "p3.json");
  CHECK(file.gap == Seconds{600});
  const auto weibull = std::get<WeibullReclaim>(law("!weibull {shape: 0.8, scale: 9h}"));
  CHECK(weibull.shape == 0.8);
  CHECK(weibull.scale == Seconds{9 * 3600});
  const auto bathtub =
      std::get<BathtubReclaim>(law("!bathtub {a: 0.45, tau1: 1h, tau2: 0.8h, b: 24h, limit: 24h}"));
  CHECK(bathtub.a == 0.45);
  CHECK(bathtub.tau2.count() == Approx(2880));  // 0.8 h
  CHECK(bathtub.limit == Seconds{86400});
}

TEST_CASE("every value's place is known by its path, items by name") {
  const Places places = read(kServers).places;
  const auto at = [&](std::string_view path) {
    const SourcePlace p = places.find(path);
    return fmt::format("{}:{}", p.line, p.column);
  };
  CHECK(at("name") == "2:7");
  CHECK(at("cluster") == "22:1");
  CHECK(at("cluster.pools.p100.nodes.max") == "32:40");
  CHECK(at("cluster.pools.servers.machine") == "35:56");
  CHECK(at("cluster.pools.servers.nodes.max") == "35:77");  // nodes: 2 is its parent
  CHECK(at("expect.1") == "49:5");
  CHECK(at("nothing.like.it") == "0:0");
  CHECK(places.find("name").file == "s.yaml");
}

TEST_CASE("an override replaces or adds a value before the document is read") {
  const auto set = [](std::vector<std::string> o) { return read(kServers, o); };
  CHECK(set({"cluster.pools.p100.nodes.max=8"}).scenario.cluster.pools[0].nodes.max == 8);
  CHECK(set({"cluster.pools.0.nodes.max=8"}).scenario.cluster.pools[0].nodes.max == 8);
  CHECK(set({"forecast={seed: 9}"}).scenario.forecast.seed == 9);
  CHECK(set({"workload.train={steps: 10}"}).scenario.workload->train->amount == 10);
  CHECK(set({"expect.0=p50(time) <= 1h"}).scenario.expect[0].value == 3600);
  CHECK(set({"disruptions.preemption=!weibull {shape: 2, scale: 1h}"})
            .scenario.disruptions.preemption->index() == 2);
  CHECK(read(kSmall, {"forecast.seed=5"}).scenario.forecast.seed == 5);
  CHECK(set({"forecast.seed=5"}).places.find("forecast.seed").file == "--set forecast.seed=5");
}

TEST_CASE("a mistake in an override is reported at the override") {
  CHECK(scenario_yaml_errors(kServers, {"cluster.pools.p10.nodes=8"}) ==
        "--set cluster.pools.p10.nodes=8: error: cluster.pools has no item 'p10'; did you mean "
        "'p100'?\n"
        "    items: p100, servers\n");
  CHECK(scenario_yaml_errors(kSmall, {"forecast.sed=8"}) ==
        "--set forecast.sed=8: error: unknown key 'sed' in forecast; did you mean 'seed'?\n"
        "    allowed here: replications, seed\n");
  CHECK(scenario_yaml_errors(kSmall, {"workload.train.epochs=-1"}) ==
        "--set workload.train.epochs=-1: error: workload.train.epochs is -1, but must be above 0\n"
        "    example: epochs: 90\n");
  CHECK(scenario_yaml_errors(kSmall, {"cluster.pools.p100.nodes.max=8"}) ==
        "--set cluster.pools.p100.nodes.max=8: error: cluster.pools.p100.nodes is '3', which has "
        "nothing inside it to "
        "set\n    set it as a whole: --set 'cluster.pools.p100.nodes={...}'\n");
  CHECK(scenario_yaml_errors(kSmall, {"name"}) ==
        "--set name: error: --set needs path=value\n    example: --set "
        "cluster.pools.p100.nodes.max=8\n");
  CHECK(scenario_yaml_errors(kSmall, {"name='x"}) ==
        "--set name='x: error: not valid YAML: illegal EOF in scalar\n");
  CHECK(scenario_yaml_errors(kSmall, {"name="}) ==
        "--set name=: error: name has no value\n    example: name: resnet50-spot-p100\n");
}

TEST_CASE("the reader's words are the catalog's") {
  for (const Precision p : kPrecisions)
    CHECK(read(kSmall, {"workload.precision=" + std::string(to_text(p))})
              .scenario.workload->precision == p);
  for (const auto c : {CapacityType::on_demand, CapacityType::spot, CapacityType::reserved})
    CHECK(read(kSmall, {"cluster.pools.p100.pricing=" + std::string(to_text(c))})
              .scenario.cluster.pools[0]
              .pricing == c);
}
