#include "exchange/foreign/tf_config.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "exchange/foreign/foreign_file.h"

namespace reckon {
namespace {

struct TaskType {
  std::string_view name;
  Role role;
  std::string_view pool;
};
constexpr std::array kTaskTypes{
    TaskType{"chief", Role::chief, "chief"}, TaskType{"master", Role::chief, "master"},
    TaskType{"worker", Role::worker, "workers"}, TaskType{"ps", Role::parameter_server, "servers"},
    TaskType{"evaluator", Role::evaluator, "evaluators"}};

constexpr std::int64_t kMostTasks = 1'000'000;

/// A list of addresses, or a map from index to address (a sparse cluster).
int count_of(ForeignFile& file, const YamlNode* cluster, std::string_view type) {
  const YamlNode::Entry* entry = cluster->find(type);
  if (entry == nullptr) return 0;
  if (entry->value.kind == YamlNode::Kind::map) {
    file.ignore(cluster, type);
    return int(entry->value.entries.size());
  }
  const std::vector<std::string> addresses = file.texts(cluster, type);
  std::set<std::string> seen;
  for (const std::string& address : addresses)
    if (!seen.insert(address).second)
      file.mistake(entry->value.at, fmt::format("{} is twice in {}", address, type));
  return int(addresses.size());
}

ImportedPool imported_pool(const TaskType& type, int nodes, const AssumedMachines& machines) {
  ImportedPool pool;
  pool.name = type.pool;
  pool.role = type.role;
  pool.machine = computes(type.role) ? machines.workers : machines.servers;
  if (computes(type.role) && !machines.accelerator.empty()) {
    pool.accelerator = machines.accelerator;
    pool.per_node = machines.per_node;
  }
  pool.nodes = {nodes, nodes, nodes};
  pool.note = "assumed";
  return pool;
}

/// The process that reads it: one of the cluster's, except an evaluator, which is in no cluster
/// [TensorFlow, "Distributed training with Keras", TF_CONFIG].
void check_task(ForeignFile& config, const YamlNode* cluster) {
  const YamlNode* task = config.map(config.root(), "task");
  const auto type = config.text(task, "type");
  const auto index = config.whole(task, "index", 0, kMostTasks);
  config.ignore(config.root(), "task");
  if (!type || *type == "evaluator") return;
  std::vector<std::string> types;
  for (const YamlNode::Entry& entry : cluster->entries) types.push_back(entry.key);
  const YamlNode::Entry* own = cluster->find(*type);
  if (own == nullptr)
    config.mistake(config.place(task, "type"),
                   fmt::format("the task is of type '{}', which the cluster has not{}", *type,
                               did_you_mean(*type, types)),
                   fmt::format("the cluster has: {}", fmt::join(types, ", ")));
  else if (own->value.kind == YamlNode::Kind::list && index &&
           *index >= std::int64_t(own->value.entries.size()))
    config.mistake(config.place(task, "index"),
                   fmt::format("the task is {} {}, and the cluster has {} of them, from 0", *type,
                               *index, own->value.entries.size()));
}

}  // namespace

Expected<Imported> import_tf_config(std::string_view json, const std::string& file,
                                    const AssumedMachines& machines) {
  auto root = parse_yaml(json, file);
  if (!root) return tl::unexpected(std::move(root.error()));
  ForeignFile config(std::move(*root));
  Imported out;
  out.kind = "tf-config";
  out.from = file;
  out.name = "tf-config";
  out.provider = machines.provider;
  out.region = machines.region;
  const YamlNode* cluster = config.map(config.root(), "cluster");
  if (cluster == nullptr)
    config.mistake(config.root()->at, "no cluster is in it",
                   R"(example: {"cluster": {"worker": ["host1:port", "host2:port"]}})");
  else
    for (const TaskType& type : kTaskTypes)
      if (const int nodes = count_of(config, cluster, type.name); nodes > 0) {
        if (type.role == Role::evaluator)
          out.assumed.emplace_back(
              "evaluators: their machines are paid for from the start to the end, and delay "
              "nothing");
        out.pools.push_back(imported_pool(type, nodes, machines));
        out.pools.back().at = config.place(cluster, type.name);
      }
  if (cluster != nullptr) check_task(config, cluster);
  if (cluster != nullptr && out.pools.empty() && config.mistakes().empty())
    config.mistake(cluster->at, "the cluster has no chief, master, worker, ps or evaluator");
  if (!config.mistakes().empty()) return tl::unexpected(std::move(config.mistakes()));
  out.left_out = config.left_over();
  out.assumed.push_back(
      fmt::format("all machines: a process on each, workers {}{}; --machine, --accelerator and "
                  "--count say others",
                  machines.workers,
                  machines.accelerator.empty()
                      ? ""
                      : fmt::format(" with {} x {}", machines.per_node, machines.accelerator)));
  return out;
}

}  // namespace reckon
