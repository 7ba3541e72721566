#include <algorithm>
#include <cmath>

#include "exchange/foreign/cluster/reader.h"
#include "sim/base/unit_text.h"

namespace reckon {

SeenPool* ClusterReader::pool_named(const std::string& name) {
  std::vector<std::string> names;
  for (SeenPool& pool : pools_) {
    if (pool.name == name || pool.like.pool == name) return &pool;
    names.push_back(pool.name);
  }
  mistake(fmt::format("no pool is named {}{}", name, did_you_mean(name, names)),
          fmt::format("pools: {}", fmt::join(names, ", ")));
  return nullptr;
}

void ClusterReader::choose() {
  SeenPool* workers =
      choice_.pool.empty()
          ? &*std::ranges::max_element(
                pools_, {}, [](const SeenPool& p) { return std::pair(p.devices(), p.most()); })
          : pool_named(choice_.pool);
  SeenPool* servers = choice_.servers.empty() ? nullptr : pool_named(choice_.servers);
  if (workers == nullptr || (servers == nullptr && !choice_.servers.empty())) return;
  if (workers == servers)
    return mistake(fmt::format("pool {} cannot train and hold the servers", workers->name),
                   "say which trains: --pool NAME");
  out_.name = workers->name;
  place(*workers);
  take(*workers, Role::worker);
  if (servers != nullptr) take(*servers, Role::parameter_server);
  if (choice_.pool.empty() && pools_.size() > 1)
    assume("pool {} trains, as it has the most accelerators; --pool says another", workers->name);
  for (const SeenPool& pool : pools_)
    if (&pool != workers && &pool != servers)
      out_.left_out.push_back(fmt::format("pool {} ({} nodes{}{})", pool.name, pool.nodes,
                                          pool.like.machine.empty() ? "" : " of ",
                                          pool.like.machine));
  out_.assumed.emplace_back("workload.strategy: all nodes of the pool, as many as it may have");
}

void ClusterReader::place(const SeenPool& workers) {
  const SeenNode& like = workers.like;
  const auto provider = choice_.hints.provider ? choice_.hints.provider : like.provider;
  const bool known = provider && catalog_.find_machine(*provider, like.machine) != nullptr;
  out_.provider = known ? *provider : catalog_.own_machines().id;
  if (provider && !known && !catalog_.rules_of(*provider).owned)
    assume(
        "cluster.provider: {}, as the catalog does not know {}'s machine '{}': it is "
        "described by what its nodes have, without prices",
        to_text(out_.provider), to_text(*provider), like.machine);
  if (!known) return;
  out_.region = choice_.hints.region.empty() ? like.region : choice_.hints.region;
  const bool one_zone = std::ranges::all_of(
      nodes_, [&](const SeenNode& n) { return key_of(n) != key_of(like) || n.zone == like.zone; });
  if (one_zone && choice_.hints.region.empty()) out_.zone = like.zone;
  if (out_.region.empty()) mistake("no label of its nodes says the region", "--region NAME");
}

void ClusterReader::take(const SeenPool& seen, Role role) {
  ImportedPool pool{.name = seen.name, .role = role, .spot = seen.like.spot};
  pool.at = {out_.from, 0, 0};
  set_machine(seen, pool);
  set_nodes(seen, pool);
  if (role == Role::worker) obey_quotas(seen, pool);
  out_.pools.push_back(std::move(pool));
}

void ClusterReader::set_machine(const SeenPool& seen, ImportedPool& pool) {
  const SeenNode& like = seen.like;
  const Machine* machine = catalog_.rules_of(out_.provider).owned
                               ? nullptr
                               : catalog_.find_machine(out_.provider, like.machine);
  if (machine != nullptr) {
    pool.machine = machine->name;
    if (like.devices == 0 || !machine->accelerator.empty()) return;
  } else {
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    pool.machine = like.machine;
    pool.inventory =
        fmt::format("vcpu: {}, memory: {}GiB, network: 10Gbps", std::max(1, int(like.cores)),
                    std::max(1.0, std::floor(like.memory / kGiB)));
    pool.note = like.machine;
    if (!assumed_network_) assume("machines: a network of 10Gbps (assumed; no node says)");
    assumed_network_ = true;
    pool.spot = false;  // a price that there is none of
  }
  if (like.devices == 0) return;
  pool.accelerator = like.accelerator;
  pool.per_node = like.devices;
  if (!like.accelerator.empty()) return;
  if (like.product.empty())
    mistake(fmt::format("nodes of pool {} have {} of {}, and no label says what it is", seen.name,
                        like.devices, like.resource),
            "say it: --accelerator A100-SXM4-80");
  else
    mistake(fmt::format("the accelerator '{}' of pool {} is not in the catalog", like.product,
                        seen.name),
            "say what it is with --accelerator, or describe it in a catalog of your own");
}

void ClusterReader::set_nodes(const SeenPool& seen, ImportedPool& pool) {
  const int busy = seen.ready - seen.free;
  if (seen.ready < seen.nodes)
    assume("pool {}: {} of {} nodes are not ready or cordoned, and not counted", seen.name,
           seen.nodes - seen.ready, seen.nodes);
  if (busy > 0 && seen.free > 0)
    assume("pool {}: the accelerators of {} of {} nodes are in use, and not counted", seen.name,
           busy, seen.ready);
  else if (busy > 0)
    assume("pool {}: all of its {} nodes are in use; the forecast begins when they are free",
           seen.name, busy);
  const int now = seen.free > 0 ? seen.free : seen.ready;
  pool.nodes = {now, now, now};
  if (seen.scaled && seen.max > 0 && catalog_.rules_of(out_.provider).owned) {
    assume(
        "pool {}: as many nodes as now, not {} to {}: autoscaling is simulated for machines "
        "of a cloud that the catalog knows",
        seen.name, seen.min, seen.max);
  } else if (seen.scaled && seen.max > 0) {
    pool.autoscaling = true;
    const int used = seen.free > 0 ? busy : 0;  // they count against the group's bounds
    pool.nodes.max = std::max({1, now, seen.max - used});
    pool.nodes.min = std::min(std::max(0, seen.min - used), now);
  }
  if (pool.nodes.max > 0) return;
  pool.nodes = {1, 1, 1};
  assume("pool {} has no node that is ready; one is simulated", seen.name);
}

void ClusterReader::obey_quotas(const SeenPool& seen, ImportedPool& pool) {
  const std::string resource = "requests." + seen.like.resource;
  if (seen.like.devices == 0) return;
  for (const Json& quota : quotas_) {
    const Json status = quota.value("status", Json::object());
    const Json hard = status.value("hard", Json::object());
    if (!hard.contains(resource)) continue;
    const double left =
        amount(hard, resource) - amount(status.value("used", Json::object()), resource);
    const std::string where = text_at(quota, "/metadata/namespace");
    const std::string name = text_at(quota, "/metadata/name");
    if (where != choice_.name_space) {
      assume("quota {} of namespace {} leaves {:g} of {}; --namespace {} obeys it", name, where,
             left, seen.like.resource, where);
      continue;
    }
    const int nodes = int(left / seen.like.devices);
    if (nodes >= pool.nodes.max) continue;
    assume("quota {} leaves {:g} of {}: {} of {} nodes", name, left, seen.like.resource, nodes,
           pool.nodes.max);
    if (nodes < 1) {
      mistake(fmt::format("quota {} of namespace {} leaves {:g} of {}, less than a node has", name,
                          where, left, seen.like.resource),
              "ask for more, or name another namespace: --namespace");
      continue;
    }
    pool.nodes = {std::min(pool.nodes.initial, nodes), std::min(pool.nodes.min, nodes), nodes};
  }
}

}  // namespace reckon
