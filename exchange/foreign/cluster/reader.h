#pragma once
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "exchange/foreign/cluster/nodes.h"
#include "exchange/foreign/cluster/view.h"

// Inside exchange/foreign/cluster: the class behind import_cluster().
namespace reckon {

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

/// How much of a resource "limits", "requests", a quota's "hard" or "used" have; 0: none.
double amount(const nlohmann::json& amounts, const std::string& resource);

class ClusterReader {
 public:
  ClusterReader(const ClusterChoice& choice, const Catalog& catalog)
      : choice_(choice), catalog_(catalog) {}
  Expected<Imported> read(const nlohmann::json& list, const std::string& from);

 private:
  using Json = nlohmann::json;

  void mistake(std::string what, std::string hint = "") {
    problems_.push_back({Severity::error, {out_.from, 0, 0}, std::move(what), std::move(hint)});
  }
  template <class... Parts>
  void assume(fmt::format_string<Parts...> text, Parts&&... parts) {
    out_.assumed.push_back(fmt::format(text, std::forward<Parts>(parts)...));
  }

  // view.cpp: what the cluster has
  void sort(const Json& list);
  void leave_out_tainted();
  std::string hinted() const;
  void count_use();
  static std::string key_of(const SeenNode& node);
  void add(const SeenNode& node);
  std::string name_of(const SeenNode& node) const;
  void read_autoscaler();
  void say_what_waits();

  // job_pools.cpp: those of its pools that the job gets
  SeenPool* pool_named(const std::string& name);
  void choose();
  void place(const SeenPool& workers);
  void take(const SeenPool& seen, Role role);
  void set_machine(const SeenPool& seen, ImportedPool& pool);
  void set_nodes(const SeenPool& seen, ImportedPool& pool);
  void obey_quotas(const SeenPool& seen, ImportedPool& pool);

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

}  // namespace reckon
