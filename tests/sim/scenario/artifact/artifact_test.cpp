#include "sim/scenario/artifact/artifact.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "mutate.h"
#include "sim/forecast/forecast.h"
#include "sim/scenario/artifact/json.h"
#include "sim/scenario/artifact/json_read.h"
#include "sim/scenario/artifact/json_write.h"
#include "sim/scenario/artifact/shipped.h"
#include "support/plans.h"

using namespace reckon;
using namespace reckon::test;

namespace {

RunArtifact read_back(const RunArtifact& artifact) {
  auto read = read_artifact(write_artifact(artifact), "plan.reckon");
  INFO((read ? "" : format(read.error())));
  REQUIRE(read);
  CHECK(read->digest == artifact_digest(artifact));
  CHECK(read->version == kArtifactVersion);
  return std::move(read->artifact);
}

Forecast short_forecast(const Plan& plan) {
  ForecastOptions options;
  options.replications = 3;
  options.threads = 1;
  options.assumption_effects = false;
  return make_forecast(plan, *make_fluid_network(), options);
}

/// A plan in which every optional has a value and every list an item.
RunArtifact full_artifact() {
  RunArtifact artifact;
  Plan& plan = artifact.plan;
  plan = shipped_plan("gke-p100-autoscaling").value();
  plan.start.emplace();
  plan.calibrations = {"calibration.yaml"};
  plan.warnings = {"a warning"};
  plan.evidence.emplace().runs.emplace_back();
  plan.evidence->trial.emplace().cost.emplace(3.0);
  plan.expect.resize(1);
  plan.expect.front().date.emplace();
  plan.reclaim.law = TraceReclaim{"trace.csv", Seconds{60}, TraceReclaim::Generate{}};
  plan.reclaim.assumed_mean.emplace(Seconds{3600});
  plan.reclaim.trace = {{Seconds{1}, Seconds{2}}};
  PlannedPool& pool = plan.pools.front();
  pool.slice.emplace().torus = {2, 2};
  pool.fallback_for.emplace(0);
  pool.patience.emplace(60);
  pool.node_pool.emplace(0);
  pool.max_run_duration.emplace(600);
  plan.cluster_autoscaler.emplace().priorities = {{50, {".*spot.*"}}};
  plan.node_auto_provisioning = NodeAutoProvisioningSpec{
      .resource_limits = {{"cpu", 100}},
      .locations = {"us-central1-a"},
      .compute_class = ComputeClassSpec{.priorities = {{.machine_family = "n2",
                                                        .min_cores = 8,
                                                        .min_memory_gb = 64.0,
                                                        .max_run_duration = Seconds{600}}},
                                        .consolidation_delay = Seconds{60}}};
  plan.slurm = SlurmPowerSpec{.suspend_time = Seconds{300}, .suspend_exc_nodes = {{"gpu", 2}}};
  plan.begins.emplace();
  plan.karpenter.emplace().node_pools.push_back(
      {.name = "default",
       .requirements = {{"karpenter.sh/capacity-type", RequirementOperator::In, {"spot"}}},
       .limits = {.cpu = 64, .nodes = 4, .gpus = 8, .memory = Bytes{1e12}},
       .budgets = {{.share = 0.2,
                    .schedule = "@daily",
                    .duration = Seconds{600},
                    .reasons = {DisruptionReason::Empty}}},
       .termination_grace_period = Seconds{60}});
  pool.reservation.emplace().until.emplace(60);
  pool.machine.services = {Service{"gke"}};
  const ProductTimes products{.extents = {8}, .times = {Seconds{1e-6}}};
  pool.measured_rates = std::make_shared<const WorkerRates>(WorkerRates{
      .products = products, .each = products, .streams = {{{Bytes{1e6}, Seconds{1e-3}}}}});
  PlannedWorkload& job = plan.jobs.front();
  job.same_as.emplace(0);
  job.convergence.emplace();
  job.evaluate_every_epochs.emplace(4);
  artifact.container = ContainerSpec{.image = "image:1",
                                     .command = {"train"},
                                     .env = {{"A", "1"}},
                                     .metrics = {{"log", "step"}},
                                     .profile = Seconds{0.5}};
  artifact.names = {*shipped_catalog().find_cluster_names("gke")};
  artifact.rebound = Rebinding{"this machine", "0123456789abcdef"};
  return artifact;
}

std::string why_not(std::string_view bytes) {
  const auto read = read_artifact(bytes, "plan.reckon");
  return read ? "" : format(read.error());
}

/// What the JSON says after a change, as a reader that has seen no digest gets it.
std::string why_not(const RunArtifact& artifact,
                    const std::function<void(artifact::Json&)>& change) {
  artifact::Json json = artifact::json_of(artifact);
  change(json);
  const auto read = artifact::artifact_of(json, "plan.reckon");
  return read ? "" : format(read.error());
}

}  // namespace

TEST_CASE("what was written is read back, for every scenario that we ship") {
  REQUIRE(shipped().size() > 20);
  for (const Shipped& one : shipped()) {
    INFO(one.name);
    const RunArtifact again = read_back(one.artifact);
    // The writer has every field: what differs in any of them differs here.
    CHECK(artifact::json_of(again) == artifact::json_of(one.artifact));
    const auto& before = one.artifact.plan.jobs.front().model;
    const auto& after = again.plan.jobs.front().model;
    REQUIRE(before.counts().size() == after.counts().size());
    CHECK(before.model_flops() == after.model_flops());
    CHECK(before.saved_elements() == after.saved_elements());
    CHECK(before.sequence_length() == after.sequence_length());
  }
}

TEST_CASE("the forecast of a plan that was read is that of the plan that was written") {
  for (const Shipped& one : shipped()) {
    INFO(one.name);
    const Forecast before = short_forecast(one.artifact.plan);
    const Forecast after = short_forecast(read_back(one.artifact).plan);
    CHECK(before.times_seconds == after.times_seconds);
    CHECK(before.costs_usd == after.costs_usd);
    CHECK(before.step.step == after.step.step);
    if (!before.feasible) continue;
    const auto network = make_fluid_network();
    CHECK(record_replication(one.artifact.plan, *network, 1, 0).digest ==
          record_replication(read_back(one.artifact).plan, *network, 1, 0).digest);
  }
}

TEST_CASE("every plan that we ship fits into a quarter of a ConfigMap") {
  for (const Shipped& one : shipped()) {
    INFO(one.name);
    CHECK(write_artifact(one.artifact).size() <= 256 * 1024);
  }
}

TEST_CASE("whatever changes in a plan, its digest changes, and changes back") {
  RunArtifact artifact = full_artifact();
  const std::string before = artifact_digest(artifact);
  std::set<std::string> digests{before};
  int changes = 0;
  change_each(artifact, "artifact", [&](const std::string& where) {
    ++changes;
    INFO(where);
    CHECK(artifact_digest(artifact) != before);
  });
  CHECK(artifact_digest(artifact) == before);
  CHECK(changes > 400);
}

TEST_CASE("a plan in which everything is given is read back") {
  const RunArtifact artifact = full_artifact();
  CHECK(artifact::json_of(read_back(artifact)) == artifact::json_of(artifact));
}

TEST_CASE("numbers that JSON does not have are kept") {
  RunArtifact artifact = full_artifact();
  artifact.plan.jobs.front().total_samples = std::numeric_limits<double>::infinity();
  artifact.plan.billing.minimum = Seconds{-std::numeric_limits<double>::infinity()};
  artifact.plan.seed = std::numeric_limits<std::uint64_t>::max();
  artifact.plan.jobs.front().submit = Seconds{0.1 + 0.2};
  const Plan again = read_back(artifact).plan;
  CHECK(again.jobs.front().total_samples == std::numeric_limits<double>::infinity());
  CHECK(again.billing.minimum == artifact.plan.billing.minimum);
  CHECK(again.seed == artifact.plan.seed);
  CHECK(again.jobs.front().submit == artifact.plan.jobs.front().submit);
}

namespace {

template <class Op>
void check_op() {
  LayerOp op = Op{};
  const artifact::Json before = artifact::to_json(op);
  INFO(before.dump());
  change_each(op, "op", [&](const std::string& where) {
    INFO(where);
    const artifact::Json changed = artifact::to_json(op);
    CHECK(changed != before);
    LayerOp read;
    artifact::Reader reader("op");
    reader.read(changed, read, artifact::Where{});
    CHECK(reader.take_problems().empty());
    CHECK(artifact::to_json(read) == changed);
  });
}

template <std::size_t... K>
void check_all_ops(std::index_sequence<K...>) {
  std::set<std::string_view> words;
  (words.insert(word_of_type(std::type_identity<std::variant_alternative_t<K, LayerOp>>{})), ...);
  CHECK(words.size() == sizeof...(K));
  (check_op<std::variant_alternative_t<K, LayerOp>>(), ...);
}

}  // namespace

TEST_CASE("every kind of layer keeps every field") {
  check_all_ops(std::make_index_sequence<std::variant_size_v<LayerOp>>{});
}

TEST_CASE("a byte that changed, wherever it is, is refused with the reason") {
  RunArtifact artifact;
  artifact.plan = shipped_plan("small-mlp-cpu").value();
  const std::string bytes = write_artifact(artifact);
  REQUIRE(why_not(bytes).empty());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = char(changed[at] ^ 1);
    INFO("byte " << at);
    CHECK_FALSE(why_not(changed).empty());
  }
}

TEST_CASE("a file that was cut is refused with the reason, however short") {
  RunArtifact artifact;
  artifact.plan = shipped_plan("small-mlp-cpu").value();
  const std::string bytes = write_artifact(artifact);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(why_not(bytes.substr(0, size)).empty());
  CHECK_THAT(why_not(bytes.substr(0, bytes.size() - 1)), Catch::Contains("truncated or changed"));
  CHECK_THAT(why_not(bytes + "x"), Catch::Contains("truncated or changed"));
}

TEST_CASE("what is no plan of a run is refused with the reason") {
  const std::string bytes = write_artifact({.plan = shipped_plan("small-mlp-cpu").value()});
  CHECK_THAT(why_not("name: a-scenario\n"),
             Catch::Equals("plan.reckon: error: not the plan of a run\n"));
  const auto head = [&](const std::string& version) {
    return "reckon-plan " + version + bytes.substr(bytes.find(' ', 12));
  };
  CHECK(why_not(head(std::to_string(kArtifactVersion))).empty());
  CHECK_THAT(
      why_not(head(std::to_string(kArtifactVersion + 1))),
      Catch::Contains(fmt::format("version {} is newer than this reckon, which reads 1 to {}",
                                  kArtifactVersion + 1, kArtifactVersion)));
  // The checksum holds the version, so that another version's rules never read it.
  CHECK_THAT(why_not(head("1")), Catch::Contains("truncated or changed"));
  for (const char* version : {"0", "-1", "01", "x", "", "99999999999"})
    CHECK_THAT(why_not(head(version)), Catch::Contains("is no number"));
}

TEST_CASE("fields that are missing, unknown or out of range are named") {
  const RunArtifact artifact{.plan = shipped_plan("gke-p100-autoscaling").value()};
  CHECK_THAT(why_not(artifact, [](auto& j) { j["plan"].erase("seed"); }),
             Catch::Contains("plan.seed: the field is missing"));
  CHECK_THAT(why_not(artifact, [](auto& j) { j["plan"]["sed"] = 1; }),
             Catch::Contains("plan.sed: unknown field"));
  CHECK_THAT(why_not(artifact, [](auto& j) { j["plan"]["pools"][0]["nodes_max"] = 1e300; }),
             Catch::Contains("plan.pools[0].nodes_max: no whole number in its range"));
  CHECK_THAT(why_not(artifact, [](auto& j) { j["plan"]["service"]["scales"] = "any"; }),
             Catch::Contains("plan.service.scales: an unknown word"));
  CHECK_THAT(why_not(artifact, [](auto& j) { j["plan"]["jobs"] = artifact::Json::array(); }),
             Catch::Contains("the plan has no job"));
  CHECK_THAT(why_not(artifact, [](auto& j) { j["plan"]["pools"][0]["fallback_for"] = 7; }),
             Catch::Contains("is the fallback of a pool that does not exist"));
  CHECK_THAT(why_not(artifact,
                     [](auto& j) {
                       j["plan"]["jobs"][0]["model"]["layers"][2]["output"] = {1, 2, 3};
                     }),
             Catch::Contains("does not follow from its inputs"));
  CHECK_THAT(
      why_not(artifact,
              [](auto& j) { j["plan"]["jobs"][0]["model"]["layers"][2]["inputs"] = {9999}; }),
      Catch::Contains("takes layer 9999"));
  CHECK_THAT(why_not(artifact, [](auto& j) { j["plan"]["retry"]["base"] = "soon"; }),
             Catch::Contains("plan.retry.base: no number"));
}

TEST_CASE("a plan of several jobs is read, and not run") {
  int several = 0;
  for (const Shipped& one : shipped()) {
    const ReadArtifact read{one.artifact, "", kArtifactVersion};
    const auto refused = why_not_run(read, "plan.reckon");
    CHECK(refused.has_value() == (one.artifact.plan.jobs.size() != 1));
    if (!refused) continue;
    ++several;
    CHECK_THAT(format(*refused), Catch::Contains("a run is of one job, and this plan has"));
  }
  CHECK(several > 0);
}
