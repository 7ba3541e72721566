#include "exchange/foreign/cluster/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "exchange/foreign/cluster/nodes.h"
#include "sim/base/kubernetes_quantity.h"
#include "sim/base/unit_text.h"

namespace reckon {
namespace {

using Json = nlohmann::json;

/// Nodes that are alike.
struct SeenPool {
  std::string name;
  SeenNode like;
  int nodes = 0, ready = 0, free = 0;
  int min = 0, max = 0;
  bool scaled = false;

  int most() const { return scaled ? max : free > 0 ? free : ready; }
  std::int64_t devices() const { return std::int64_t{like.devices} * most(); }
};

double amount(const Json& amounts, const std::string& resource) {
  const auto at = amounts.find(resource);
  if (at == amounts.end()) return 0;
  return kubernetes_quantity(at->is_string() ? at->get<std::string>() : at->dump()).value_or(0);
}

/// What all containers of a pod ask for.
double asked(const Json& pod, const std::string& resource) {
  double sum = 0;
  const Json::json_pointer containers("/spec/containers");
  if (!pod.contains(containers)) return 0;
  for (const Json& c : pod.at(containers))
    for (const char* which : {"/resources/limits", "/resources/requests"}) {
      const Json::json_pointer at(which);
      if (!c.contains(at)) continue;
      const double wanted = amount(c.at(at), resource);
      sum += wanted;
      if (wanted > 0) break;
    }
  return sum;
}

class ClusterReader {
 public:
  ClusterReader(const ClusterChoice& choice, const Catalog& catalog)
      : choice_(choice), catalog_(catalog) {}

  Expected<Imported> read(const Json& list, const std::string& from) {
    out_.kind = "cluster";
    out_.from = from;
    sort(list);
    count_use();
    leave_out_tainted();
    for (const SeenNode& node : nodes_) add(node);
    read_autoscaler();
    if (pools_.empty() && problems_.empty())
      mistake("no nodes are in it", "kubectl get nodes --output=json");
    if (problems_.empty()) choose();
    if (!problems_.empty()) return tl::unexpected(std::move(problems_));
    say_what_waits();
    return std::move(out_);
  }

 private:
  void mistake(std::string what, std::string hint = "") {
    problems_.push_back({Severity::error, {out_.from, 0, 0}, std::move(what), std::move(hint)});
  }
  template <class... Parts>
  void assume(fmt::format_string<Parts...> text, Parts&&... parts) {
    out_.assumed.push_back(fmt::format(text, std::forward<Parts>(parts)...));
  }

  void sort(const Json& list) {
    for (const Json& item : list.at("items")) {
      const std::string kind = text_at(item, "/kind");
      if (kind == "Node")
        nodes_.push_back(seen_node(item, catalog_));
      else if (kind == "Pod")
        pods_.push_back(item);
      else if (kind == "ResourceQuota")
        quotas_.push_back(item);
      else if (kind == "ConfigMap" && text_at(item, "/metadata/name").ends_with("-status"))
        status_ = text_at(item, "/data/status");
      else
        out_.left_out.push_back(fmt::format("{} {}", kind, text_at(item, "/metadata/name")));
    }
    for (SeenNode& node : nodes_)
      if (node.devices > 0 && node.accelerator.empty()) node.accelerator = hinted();
  }

  /// Pods of the job go to none of them.
  void leave_out_tainted() {
    std::map<std::string, int> by_taint;
    for (const SeenNode& node : nodes_)
      if (!node.taints.empty()) ++by_taint[fmt::format("{}", fmt::join(node.taints, ", "))];
    const bool any = !nodes_.empty();
    std::erase_if(nodes_, [](const SeenNode& node) { return !node.taints.empty(); });
    for (const auto& [taints, count] : by_taint)
      out_.left_out.push_back(
          fmt::format("{} nodes that pods keep away from: taint {}", count, taints));
    if (any && nodes_.empty())
      mistake("all of its nodes have taints that the pods of a job do not tolerate",
              "kubectl describe nodes shows them");
  }

  std::string hinted() const {
    const Accelerator* found = catalog_.find_accelerator(choice_.hints.accelerator);
    return found != nullptr ? found->name : "";
  }

  /// Accelerators that running pods hold, by node.
  void count_use() {
    for (const Json& pod : pods_) {
      const std::string phase = text_at(pod, "/status/phase");
      const std::string where = text_at(pod, "/spec/nodeName");
      if (where.empty() || phase == "Succeeded" || phase == "Failed") continue;
      const auto node = std::ranges::find(nodes_, where, &SeenNode::name);
      if (node == nodes_.end() || node->resource.empty()) continue;
      in_use_[where] += int(asked(pod, node->resource));
    }
  }

  static std::string key_of(const SeenNode& node) {
    return fmt::format("{}/{}/{}/{}/{:g}/{}", node.pool, node.machine, node.accelerator,
                       node.devices, node.cores, node.spot);
  }

  void add(const SeenNode& node) {
    const std::string key = key_of(node);
    auto pool =
        std::ranges::find_if(pools_, [&](const SeenPool& p) { return key_of(p.like) == key; });
    if (pool == pools_.end()) {
      pools_.push_back({.name = name_of(node), .like = node});
      pool = std::prev(pools_.end());
    }
    ++pool->nodes;
    if (!node.ready || node.cordoned) return;
    ++pool->ready;
    if (in_use_.find(node.name) == in_use_.end() || in_use_.at(node.name) == 0) ++pool->free;
  }

  /// Letters, digits and hyphens, once each.
  std::string name_of(const SeenNode& node) const {
    std::string name = !node.pool.empty()          ? node.pool
                       : !node.machine.empty()     ? node.machine
                       : !node.accelerator.empty() ? node.accelerator
                                                   : "nodes";
    for (char& c : name)
      c = std::isalnum(static_cast<unsigned char>(c)) == 0
              ? '-'
              : char(std::tolower(static_cast<unsigned char>(c)));
    const bool taken =
        std::ranges::any_of(pools_, [&](const SeenPool& p) { return p.name == name; });
    return taken ? fmt::format("{}-{}", name, pools_.size()) : name;
  }

  void read_autoscaler() {
    for (const ScaledGroup& group : scaled_groups(status_)) {
      const auto node =
          std::ranges::max_element(nodes_, {}, [&](const SeenNode& n) { return fit_of(group, n); });
      if (node == nodes_.end() || fit_of(group, *node) == 0) {
        out_.left_out.push_back(
            fmt::format("node group {}: up to {} nodes, none running", group.name, group.max));
        continue;
      }
      const auto pool = std::ranges::find_if(
          pools_, [&](const SeenPool& p) { return key_of(p.like) == key_of(*node); });
      pool->scaled = true;
      pool->min += group.min;
      pool->max += group.max;
      if (group.backs_off)
        assume(
            "nodes of pool {} did not come when the autoscaler asked for them; the forecast "
            "has the provider's usual delays",
            pool->name);
    }
  }

  SeenPool* pool_named(const std::string& name) {
    std::vector<std::string> names;
    for (SeenPool& pool : pools_) {
      if (pool.name == name || pool.like.pool == name) return &pool;
      names.push_back(pool.name);
    }
    mistake(fmt::format("no pool is named {}{}", name, did_you_mean(name, names)),
            fmt::format("pools: {}", fmt::join(names, ", ")));
    return nullptr;
  }

  void choose() {
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

  void place(const SeenPool& workers) {
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
    const bool one_zone = std::ranges::all_of(nodes_, [&](const SeenNode& n) {
      return key_of(n) != key_of(like) || n.zone == like.zone;
    });
    if (one_zone && choice_.hints.region.empty()) out_.zone = like.zone;
    if (out_.region.empty()) mistake("no label of its nodes says the region", "--region NAME");
  }

  void take(const SeenPool& seen, Role role) {
    ImportedPool pool{.name = seen.name, .role = role, .spot = seen.like.spot};
    pool.at = {out_.from, 0, 0};
    set_machine(seen, pool);
    set_nodes(seen, pool);
    if (role == Role::worker) obey_quotas(seen, pool);
    out_.pools.push_back(std::move(pool));
  }

  void set_machine(const SeenPool& seen, ImportedPool& pool) {
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

  void set_nodes(const SeenPool& seen, ImportedPool& pool) {
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

  void obey_quotas(const SeenPool& seen, ImportedPool& pool) {
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
        mistake(fmt::format("quota {} of namespace {} leaves {:g} of {}, less than a node has",
                            name, where, left, seen.like.resource),
                "ask for more, or name another namespace: --namespace");
        continue;
      }
      pool.nodes = {std::min(pool.nodes.initial, nodes), std::min(pool.nodes.min, nodes), nodes};
    }
  }

  void say_what_waits() {
    int pods = 0;
    std::map<std::string, double> wanted;
    std::set<std::string> spaces;
    for (const Json& pod : pods_) {
      if (text_at(pod, "/status/phase") != "Pending" || !text_at(pod, "/spec/nodeName").empty())
        continue;
      ++pods;
      spaces.insert(text_at(pod, "/metadata/namespace"));
      for (const SeenPool& pool : pools_)
        if (!pool.like.resource.empty() && !wanted.contains(pool.like.resource))
          wanted[pool.like.resource] = 0;
      for (auto& [resource, sum] : wanted) sum += asked(pod, resource);
    }
    if (pods == 0) return;
    std::string devices;
    for (const auto& [resource, sum] : wanted)
      if (sum > 0) devices += fmt::format("{}{:g} {}", devices.empty() ? "" : ", ", sum, resource);
    assume("{} pods of {} wait for nodes{}{}; the forecast's job does not wait behind them", pods,
           fmt::join(spaces, ", "), devices.empty() ? "" : ", and ask for ", devices);
  }

  const ClusterChoice& choice_;
  const Catalog& catalog_;
  std::vector<SeenNode> nodes_;
  std::vector<SeenPool> pools_;
  std::vector<Json> pods_, quotas_;
  std::map<std::string, int> in_use_;
  std::string status_;
  bool assumed_network_ = false;
  Diagnostics problems_;
  Imported out_;
};

}  // namespace

Expected<Imported> import_cluster(std::string_view json, const std::string& from,
                                  const ClusterChoice& choice, const Catalog& catalog) {
  const Json list = Json::parse(json, nullptr, false);
  if (!list.is_object() || !list.contains("items") || !list.at("items").is_array())
    return tl::unexpected(Diagnostics{{Severity::error,
                                       {from, 0, 0},
                                       "it is no list of objects in JSON",
                                       "kubectl get nodes,pods --all-namespaces --output=json"}});
  return ClusterReader(choice, catalog).read(list, from);
}

}  // namespace reckon
