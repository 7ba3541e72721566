#include "sim/scenario/artifact/upgrades.h"

#include <string>
#include <utility>

namespace reckon::artifact {
namespace {

template <class F>
void for_each_job(Json& artifact, F&& f) {
  if (!artifact.is_object() || !artifact.contains("plan")) return;
  Json& plan = artifact["plan"];
  if (!plan.is_object() || !plan.contains("jobs") || !plan["jobs"].is_array()) return;
  for (Json& job : plan["jobs"])
    if (job.is_object()) f(job);
}

/// What is missing stays missing, and the reader says so.
void move_key(Json& from, const char* key, Json& to, const char* as) {
  if (!from.is_object() || !from.contains(key)) return;
  to[as] = std::move(from[key]);
  from.erase(key);
}

void nest_layout_and_servers_of(Json& job) {
  if (!job.contains("strategy") || !job["strategy"].is_object()) return;
  Json& strategy = job["strategy"];
  const std::string kind = strategy.value("kind", Json()).dump();
  Json layout = Json::object(), servers = Json::object();
  for (const char* key :
       {"tensor", "pipeline", "context", "expert", "zero_stage", "sequence_parallel", "schedule",
        "interleave", "offload_optimizer", "overlap", "recompute"})
    move_key(strategy, key, layout, key);
  move_key(job, "batch_per_accelerator", layout, "micro_batch");
  layout["data"] = layout["micro_batches"] = 1;  // what they are follows from the job
  layout["stops_recomputing"] = kind == "\"sharded\"";
  if (kind == "\"tpu\"") layout["overlap"] = false;
  move_key(strategy, "parameter_servers", servers, "count");
  for (const char* key :
       {"synchronous", "backup_workers", "staleness", "colocated", "shards", "partition"})
    move_key(strategy, key, servers, key);
  strategy["layout"] = std::move(layout);
  strategy["servers"] = kind == "\"parameter_server\"" ? std::move(servers) : Json();
}

}  // namespace

void nest_layout_and_servers(Json& artifact) { for_each_job(artifact, nest_layout_and_servers_of); }

namespace {

/// What one flow moves at most, as the name of a class of links said: EC2's 5 Gbit/s.
Json flow_of(const Json& link) {
  constexpr double kEc2 = 5e9 / 8;
  if (link.value("name", Json()) != "ethernet-ec2") return {};
  return Json::array({kEc2, kEc2, kEc2, false, 0});  // value, range, assumed, source
}

void add_calls_of_links(Json& artifact) {
  if (!artifact.is_object() || !artifact.contains("plan")) return;
  Json& plan = artifact["plan"];
  if (!plan.is_object() || !plan.contains("pools") || !plan["pools"].is_array()) return;
  for (Json& pool : plan["pools"])
    for (const char* link : {"peer_link", "network_link"})
      if (pool.is_object() && pool.contains(link) && pool[link].is_object()) {
        pool[link]["call"] = pool[link]["pieces"] = pool[link]["reduction"] = Json();
        pool[link]["flow"] = flow_of(pool[link]);
      }
}

void add_markets_and_power(Json& artifact) {
  if (!artifact.is_object() || !artifact.contains("plan")) return;
  Json& plan = artifact["plan"];
  if (!plan.is_object()) return;
  plan["currency"] = {{"code", "USD"}, {"usd_rate", 1.0}};
  const Json unknown = Json::array({0.0, 0.0, 0.0, false, 0});  // value, range, assumed, source
  plan["power"] = {{"busy_share", unknown},   {"idle_share", unknown}, {"watts_per_vcpu", unknown},
                   {"watts_per_gb", unknown}, {"pue", unknown},        {"grams_per_kwh", Json()}};
  for (const char* scaled_by :
       {"cluster_autoscaler", "karpenter", "node_auto_provisioning", "slurm", "begins"})
    plan[scaled_by] = Json();
  plan["egress"] = {{"between_regions", unknown},
                    {"between_zones", unknown},
                    {"checkpoints", false},
                    {"data", false},
                    {"zones", 1}};
  if (plan.contains("service") && plan["service"].is_object()) {
    plan["service"]["karpenter_labels"] = "";
    for (const char* has : {"flex_start", "compute_classes", "price_expander", "slurm"})
      plan["service"][has] = false;
  }
  if (!plan.contains("pools") || !plan["pools"].is_array()) return;
  for (Json& pool : plan["pools"]) {
    if (!pool.is_object()) continue;
    move_key(pool, "stands_in_for", pool, "fallback_for");
    pool["node_pool"] = pool["max_run_duration"] = Json();
    pool["rank"] = 0;
    pool["provisioning_model"] = "standard";
    pool["capacity_wait"] = pool["pool_creation"] = unknown;
    pool["minimum_rental"] = 0.0;
    if (pool.contains("machine") && pool["machine"].is_object())
      pool["machine"]["minimum_rental"] = 0.0;
    if (pool.contains("price") && pool["price"].is_object())
      pool["price"]["spread"] = {{"market", ""}, {"low", 1.0}, {"high", 1.0}, {"source", 0}};
    if (!pool.contains("reservation") || !pool["reservation"].is_object()) continue;
    pool["reservation"]["from"] = 0.0;
    pool["reservation"]["whole"] = false;
    pool["reservation"]["kind"] = "machines";
    pool["reservation"]["ends_before"] = 0.0;
    pool["reservation"]["term"] = pool["reservation"]["list"] = Json();
  }
}

/// Every norm had weights of its own, no attention had sinks or a softcap, no weight four bits.
void add_fields_of(Json& layer) {
  if (!layer.is_object()) return;
  layer["four_bit"] = false;
  if (!layer.contains("op") || !layer["op"].is_array() || layer["op"].size() != 2) return;
  const Json& kind = layer["op"][0];
  Json& op = layer["op"][1];
  if (!op.is_object()) return;
  if (kind == "LayerNorm" || kind == "RmsNorm") op["affine"] = true;
  if (kind == "RmsNorm") op["shared"] = true;
  if (kind == "Attention") {
    op["sinks"] = false;
    op["softcap"] = 0.0;
  }
}

/// Of every network, wherever it stands: of a job, of what is served.
void add_fields_of_layers(Json& json) {
  if (json.is_object() && json.contains("layers") && json["layers"].is_array()) {
    for (Json& layer : json["layers"]) add_fields_of(layer);
    return;
  }
  if (!json.is_structured()) return;
  for (Json& part : json) add_fields_of_layers(part);
}

/// All processes of a job started again, its checkpoints had one tier, every failure took a node.
void add_restarts(Json& artifact) {
  if (!artifact.is_object() || !artifact.contains("plan")) return;
  Json& plan = artifact["plan"];
  if (!plan.is_object()) return;
  const Json none = Json::array({0.0, 0.0, 0.0, false, 0});  // value, range, assumed, source
  if (plan.contains("failures") && plan["failures"].is_object())
    plan["failures"]["process_share"] = plan["failures"]["straggler_share"] = none;
  for_each_job(artifact, [](Json& job) {
    job["restart"] = Json();
    if (job.contains("checkpoint") && job["checkpoint"].is_object())
      job["checkpoint"]["local"] = Json();
  });
}

/// Costs were compared in dollars alone.
void add_currencies_of_expectations(Json& artifact) {
  if (!artifact.is_object() || !artifact.contains("plan")) return;
  Json& plan = artifact["plan"];
  if (!plan.is_object() || !plan.contains("expect") || !plan["expect"].is_array()) return;
  for (Json& e : plan["expect"])
    if (e.is_object()) e["currency"] = "";
}

/// All stages of a pipeline ran on all pools, all jobs had the first one's residual, and nobody
/// knew whether a length was said in epochs.
void add_fields_of_jobs(Json& artifact) {
  for_each_job(artifact, [](Json& job) {
    job["stage_pools"] = Json::array();
    job["residual"] = Json();
    job["epochs"] = 0.0;
  });
}

/// Embedding tables travelled whole, and samples were in files of the machine.
void add_embeddings(Json& artifact) {
  for_each_job(artifact, [](Json& job) {
    job["zipf_exponent"] = Json::array({0.0, 0.0, 0.0, false, 0});
    if (job.contains("data") && job["data"].is_object()) {  // no images were cut, nothing fetched
      job["data"]["endpoint"] = "";
      for (const char* key : {"crop", "resize", "flip", "damaged"}) job["data"][key] = Json();
    }
    if (!job.contains("strategy") || !job["strategy"].is_object()) return;
    Json& strategy = job["strategy"];
    if (!strategy.contains("servers") || !strategy["servers"].is_object()) return;
    strategy["servers"]["sparse_embeddings"] = false;
    strategy["servers"]["rows"] = "mod";
  });
}

}  // namespace

void add_calls_markets_power_and_layers(Json& artifact) {
  add_restarts(artifact);
  add_currencies_of_expectations(artifact);
  add_calls_of_links(artifact);
  add_markets_and_power(artifact);
  add_fields_of_layers(artifact);
  add_embeddings(artifact);
  add_fields_of_jobs(artifact);
}

void add_fields_of_data(Json& artifact) {
  for_each_job(artifact, [](Json& job) {
    if (!job.contains("data") || !job["data"].is_object()) return;
    Json& data = job["data"];
    if (!data.contains("validation")) data["validation"] = "";
    data["threads"] = Json();
  });
}

}  // namespace reckon::artifact
