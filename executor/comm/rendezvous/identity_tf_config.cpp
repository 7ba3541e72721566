#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/comm/rendezvous/worker_identity.h"

namespace reckon {

namespace {
using Json = nlohmann::json;

constexpr const char* kExample =
    R"({"cluster": {"chief": ["host0:2222"], "worker": ["host1:2222"], "ps": ["host2:2222"]}, )"
    R"("task": {"type": "worker", "index": 0}})";

class TfConfigReader {
 public:
  Expected<WorkerIdentity> read(std::string_view text) {
    const Json config = Json::parse(text.begin(), text.end(), nullptr, false);
    if (!config.is_object()) {
      problem("TF_CONFIG is no JSON object", fmt::format("for example {}", kExample));
      return tl::unexpected(problems_);
    }
    read_cluster(config);
    read_task(config);
    if (problems_.empty()) resolve();
    if (!problems_.empty()) return tl::unexpected(problems_);
    return identity_;
  }

 private:
  struct Group {
    const char* name;
    std::vector<std::string> addresses;
  };

  void problem(std::string what, std::string hint = {}) {
    problems_.push_back(
        {.at = {.file = "TF_CONFIG"}, .what = std::move(what), .hint = std::move(hint)});
  }

  void read_cluster(const Json& config) {
    const auto cluster = config.find("cluster");
    if (cluster == config.end()) return;  // one process on its own
    if (!cluster->is_object()) {
      problem("cluster is no object", fmt::format("for example {}", kExample));
      return;
    }
    for (const auto& [key, list] : cluster->items()) {
      const std::string name = key == "master" ? "chief" : key;  // AI Platform's older word
      Group* group = find(name);
      if (group == nullptr) {
        const std::vector<std::string> names{"chief", "worker", "ps", "evaluator"};
        problem(fmt::format("cluster.{} is no role{}", key, did_you_mean(key, names)),
                "roles: chief, worker, ps, evaluator");
        continue;
      }
      read_addresses(*group, key, list);
    }
    if (find("chief")->addresses.size() > 1)
      problem(fmt::format("cluster.chief has {} addresses; there is one chief",
                          find("chief")->addresses.size()));
  }

  void read_addresses(Group& group, const std::string& key, const Json& list) {
    if (!list.is_array()) {
      problem(fmt::format("cluster.{} is no list of addresses", key),
              fmt::format(R"("{}": ["host:port", ...])", key));
      return;
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_string() || !parse_host_port(list[i].get<std::string>()))
        problem(fmt::format("cluster.{}[{}] is {}, no address", key, i, list[i].dump()),
                "an address is host:port, or [IPv6]:port");
      group.addresses.push_back(list[i].is_string() ? list[i].get<std::string>() : "");
    }
  }

  void read_task(const Json& config) {
    const auto task = config.find("task");
    if (task == config.end()) {
      if (config.contains("cluster"))
        problem("task is missing: which of the cluster's processes is this?",
                R"("task": {"type": "worker", "index": 0})");
      return;
    }
    if (!task->is_object()) {
      problem("task is no object", R"("task": {"type": "worker", "index": 0})");
      return;
    }
    const auto type = task->find("type");
    if (type == task->end() || !type->is_string())
      problem("task.type is missing or no text", "chief, worker, ps or evaluator");
    else
      type_ = *type == "master" ? "chief" : type->get<std::string>();
    const auto index = task->find("index");
    if (index == task->end())
      index_ = 0;
    else if (index->is_number_unsigned() && *index < kMostProcesses)
      index_ = index->get<int>();
    else if (index->is_string() && !read_number(index->get<std::string>()))
      problem(fmt::format("task.index is {}, no whole number", index->dump()));
    else if (!index->is_string())
      problem(fmt::format("task.index is {}, no whole number from 0", index->dump()));
  }

  bool read_number(const std::string& text) {  // some launchers write "0"
    if (text.empty() || text.size() > 6 ||
        text.find_first_not_of("0123456789") != std::string::npos)
      return false;
    index_ = std::stoi(text);
    return true;
  }

  void resolve() {
    const std::size_t chiefs = find("chief")->addresses.size();
    const std::size_t workers = find("worker")->addresses.size();
    const std::size_t servers = find("ps")->addresses.size();
    identity_.source = "TF_CONFIG";
    if (type_.empty()) return;  // no cluster, no task
    Group* group = find(type_);
    if (group == nullptr) {
      const std::vector<std::string> names{"chief", "worker", "ps", "evaluator"};
      problem(fmt::format("task.type is '{}'{}", type_, did_you_mean(type_, names)),
              "chief, worker, ps or evaluator");
      return;
    }
    const bool listed = std::size_t(index_) < group->addresses.size();
    if (!listed && type_ != "evaluator") {  // evaluators need not be listed
      problem(fmt::format("task is {} {}, but cluster.{} has {} addresses", type_, index_, type_,
                          group->addresses.size()),
              "task.index counts from 0");
      return;
    }
    if (chiefs + workers == 0) {
      problem("cluster has neither chief nor worker: nobody would train");
      return;
    }
    identity_.index = index_;
    identity_.workers = int(chiefs + workers);
    identity_.servers = int(servers);
    identity_.master = *parse_host_port(find(chiefs > 0 ? "chief" : "worker")->addresses.front());
    const auto own = listed ? parse_host_port(group->addresses[std::size_t(index_)]) : std::nullopt;
    if (own) identity_.port = own->port;
    set_role(chiefs);
  }

  void set_role(std::size_t chiefs) {
    if (type_ == "evaluator") {
      identity_.role = Role::evaluator;
      identity_.rank = -1;
    } else if (type_ == "ps") {
      identity_.role = Role::parameter_server;
      identity_.rank = identity_.workers + index_;
    } else {
      identity_.rank = type_ == "chief" ? 0 : int(chiefs) + index_;
      identity_.role = identity_.rank == 0 ? Role::chief : Role::worker;
    }
  }

  Group* find(const std::string& name) {
    for (Group& group : groups_)
      if (name == group.name) return &group;
    return nullptr;
  }

  static constexpr int kMostProcesses = 1'000'000;
  std::array<Group, 4> groups_{Group{"chief", {}}, Group{"worker", {}}, Group{"ps", {}},
                               Group{"evaluator", {}}};
  std::string type_;
  int index_ = 0;
  WorkerIdentity identity_;
  Diagnostics problems_;
};
}  // namespace

Expected<WorkerIdentity> identity_from_tf_config(std::string_view json) {
  return TfConfigReader().read(json);
}

}  // namespace reckon
