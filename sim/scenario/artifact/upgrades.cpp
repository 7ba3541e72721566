#include "sim/scenario/artifact/upgrades.h"

#include <string>
#include <utility>

namespace reckon::artifact {
namespace {

/// What is missing stays missing, and the reader says so.
void move_key(Json& from, const char* key, Json& to, const char* as) {
  if (!from.is_object() || !from.contains(key)) return;
  to[as] = std::move(from[key]);
  from.erase(key);
}

void nest_layout_and_servers_of(Json& job) {
  if (!job.is_object() || !job.contains("strategy") || !job["strategy"].is_object()) return;
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

void nest_layout_and_servers(Json& artifact) {
  if (!artifact.is_object() || !artifact.contains("plan")) return;
  Json& plan = artifact["plan"];
  if (!plan.is_object() || !plan.contains("jobs") || !plan["jobs"].is_array()) return;
  for (Json& job : plan["jobs"]) nest_layout_and_servers_of(job);
}

namespace {

void add_calls_of_links(Json& artifact) {
  if (!artifact.is_object() || !artifact.contains("plan")) return;
  Json& plan = artifact["plan"];
  if (!plan.is_object() || !plan.contains("pools") || !plan["pools"].is_array()) return;
  for (Json& pool : plan["pools"])
    for (const char* link : {"peer_link", "network_link"})
      if (pool.is_object() && pool.contains(link) && pool[link].is_object())
        pool[link]["call"] = pool[link]["pieces"] = pool[link]["reduction"] = Json();
}

void add_markets_and_power(Json& artifact) {
  if (!artifact.is_object() || !artifact.contains("plan")) return;
  Json& plan = artifact["plan"];
  if (!plan.is_object()) return;
  plan["currency"] = {{"code", "USD"}, {"usd_rate", 1.0}};
  const Json unknown = {
      {"value", 0.0}, {"low", 0.0}, {"high", 0.0}, {"source", 0}, {"assumed", false}};
  plan["power"] = {{"busy_share", unknown},   {"idle_share", unknown}, {"watts_per_vcpu", unknown},
                   {"watts_per_gb", unknown}, {"pue", unknown},        {"grams_per_kwh", Json()}};
  if (!plan.contains("pools") || !plan["pools"].is_array()) return;
  for (Json& pool : plan["pools"]) {
    if (!pool.is_object()) continue;
    if (pool.contains("price") && pool["price"].is_object())
      pool["price"]["spread"] = {{"market", ""}, {"low", 1.0}, {"high", 1.0}, {"source", 0}};
    if (!pool.contains("reservation") || !pool["reservation"].is_object()) continue;
    pool["reservation"]["from"] = 0.0;
    pool["reservation"]["whole"] = false;
  }
}

}  // namespace

void add_calls_markets_and_power(Json& artifact) {
  add_calls_of_links(artifact);
  add_markets_and_power(artifact);
}

}  // namespace reckon::artifact
