#include "sim/scenario/artifact/upgrades.h"

#include <array>
#include <catch2/catch.hpp>

#include "sim/scenario/artifact/json.h"
#include "sim/scenario/artifact/shipped.h"

// Artifacts of older versions.
using namespace reckon;
using namespace reckon::test;

TEST_CASE("an older version is brought up to date step by step") {
  const std::array<artifact::Upgrade, 2> steps{[](artifact::Json& json) { json["b"] = json["a"]; },
                                               [](artifact::Json& json) { json["c"] = json["b"]; }};
  artifact::Json first{{"a", 1}}, second{{"b", 2}}, third{{"c", 3}};
  artifact::upgrade(first, 1, steps);
  artifact::upgrade(second, 2, steps);
  artifact::upgrade(third, 3, steps);
  CHECK(first == artifact::Json{{"a", 1}, {"b", 1}, {"c", 1}});
  CHECK(second == artifact::Json{{"b", 2}, {"c", 2}});
  CHECK(third == artifact::Json{{"c", 3}});
}

TEST_CASE("a plan of version 2 becomes one of this version") {
  for (const Shipped& one : shipped()) {
    artifact::Json old = artifact::json_of(one.artifact);
    artifact::Json& plan = old["plan"];
    for (const char* key : {"currency", "power", "cluster_autoscaler", "karpenter",
                            "node_auto_provisioning", "slurm", "begins"})
      plan.erase(key);
    for (const char* key :
         {"karpenter_labels", "flex_start", "compute_classes", "price_expander", "slurm"})
      plan["service"].erase(key);
    for (artifact::Json& pool : plan["pools"]) {
      pool["stands_in_for"] = pool["fallback_for"];
      pool.erase("fallback_for");
      for (const char* link : {"peer_link", "network_link"})
        for (const char* key : {"call", "pieces", "reduction", "flow"}) pool[link].erase(key);
      pool["price"].erase("spread");
      for (const char* key : {"node_pool", "rank", "provisioning_model", "capacity_wait",
                              "max_run_duration", "pool_creation"})
        pool.erase(key);
      if (pool["reservation"].is_object())
        for (const char* key : {"from", "whole"}) pool["reservation"].erase(key);
    }
    std::size_t layers = 0;
    for (artifact::Json& job : plan["jobs"])
      for (const char* key : {"stage_pools", "residual", "epochs"}) job.erase(key);
    for (artifact::Json& job : plan["jobs"])
      for (const char* key :
           {"endpoint", "validation", "crop", "resize", "flip", "damaged", "threads"})
        job["data"].erase(key);
    for (artifact::Json& job : plan["jobs"])
      for (artifact::Json& layer : job["model"]["layers"]) {
        ++layers;
        layer.erase("four_bit");
        for (const char* key : {"affine", "shared", "sinks", "softcap"})
          if (layer["op"][1].is_object()) layer["op"][1].erase(key);
      }
    artifact::upgrade(old, 2, artifact::kUpgrades);
    const auto read = artifact::artifact_of(old, "plan.reckon");
    INFO(one.name << (read ? "" : format(read.error())));
    REQUIRE(read);
    CHECK(layers > 0);
    // Networks are what they were; prices are certain, and no call was measured.
    for (std::size_t k = 0; k < read->plan.jobs.size(); ++k)
      CHECK(read->plan.jobs[k].model.parameters() == one.artifact.plan.jobs[k].model.parameters());
    for (const PlannedPool& pool : read->plan.pools) {
      CHECK(pool.price.spread.certain());
      CHECK_FALSE(pool.peer_link.call);
      CHECK(pool.network_link.flow.has_value() == (pool.network_link.name == "ethernet-ec2"));
    }
  }
}

TEST_CASE("a plan of version 3 keeps its validation set, where it has one") {
  const Shipped& one = shipped().front();
  const artifact::Json now = artifact::json_of(one.artifact);
  for (const bool with_validation : {false, true}) {
    artifact::Json old = now;
    for (artifact::Json& job : old["plan"]["jobs"]) {
      job["data"].erase("threads");
      if (with_validation)
        job["data"]["validation"] = "held-out";
      else
        job["data"].erase("validation");
    }
    CHECK_FALSE(artifact::artifact_of(old, "plan.reckon"));
    artifact::upgrade(old, 3, artifact::kUpgrades);
    const auto read = artifact::artifact_of(old, "plan.reckon");
    REQUIRE(read);
    for (const PlannedWorkload& job : read->plan.jobs) {
      CHECK(job.data.validation == (with_validation ? "held-out" : ""));
      CHECK_FALSE(job.data.threads);
    }
  }
}

TEST_CASE("a plan of version 1 becomes one of this version") {
  for (const Shipped& one : shipped()) {
    const artifact::Json now = artifact::json_of(one.artifact);
    artifact::Json old = now;
    for (artifact::Json& job : old["plan"]["jobs"]) {
      artifact::Json& strategy = job["strategy"];
      artifact::Json layout = strategy["layout"], servers = strategy["servers"];
      strategy.erase("layout");
      strategy.erase("servers");
      job["batch_per_accelerator"] = layout["micro_batch"];
      for (const char* key : {"data", "micro_batches", "micro_batch", "stops_recomputing"})
        layout.erase(key);
      strategy.update(layout);
      if (servers.is_null())
        servers = artifact::Json{{"count", 0},      {"synchronous", true}, {"backup_workers", 0},
                                 {"staleness", 0},  {"colocated", false},  {"shards", "even"},
                                 {"partition", 0.0}};
      strategy["parameter_servers"] = servers["count"];
      for (const char* key : {"count", "sparse_embeddings", "rows"}) servers.erase(key);
      strategy.update(servers);
    }
    artifact::nest_layout_and_servers(old);
    for (std::size_t k = 0; k < old["plan"]["jobs"].size(); ++k) {  // those of version 3
      artifact::Json& servers = old["plan"]["jobs"][k]["strategy"]["servers"];
      if (servers.is_null()) continue;
      for (const char* key : {"sparse_embeddings", "rows"})
        servers[key] = now["plan"]["jobs"][k]["strategy"]["servers"][key];
    }
    artifact::Json expected = now;  // version 1 did not say what follows from a job's batch
    for (artifact::Json& job : expected["plan"]["jobs"])
      job["strategy"]["layout"]["data"] = job["strategy"]["layout"]["micro_batches"] = 1;
    CHECK(old == expected);
    const auto read = artifact::artifact_of(old, "plan.reckon");
    REQUIRE(read);
    for (std::size_t k = 0; k < read->plan.jobs.size(); ++k)
      CHECK(layout_of(read->plan.jobs[k]).data == layout_of(one.artifact.plan.jobs[k]).data);
  }
}
