#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "planner/question.h"
#include "sim/scenario/yaml/reader.h"

// Internal to planner/question: how the `plan:` block becomes a question.
namespace reckon::planner {

/// All that the catalog knows.
inline constexpr const char* kAny = "any";
inline bool has_any(const std::vector<std::string>& names) {
  return std::ranges::find(names, kAny) != names.end();
}

/// Reads `plan:` into a question; collects what is wrong, each at its place in the file.
class QuestionReader {
 public:
  QuestionReader(Question& question, const Catalog& catalog) : q_(question), catalog_(catalog) {}
  Diagnostics problems;

  void read_all();

 private:
  void error(const std::string& path, std::string what, std::string hint = "");
  const std::vector<std::string>* varied(const std::string& key) const;

  // read/hardware.cpp
  /// Canonical name of an accelerator; a short one ("h100", "a100-80") is completed where all that
  /// it fits are meant.
  std::vector<std::string> accelerators_named(const std::string& written);
  void add_provider(const std::string& name);
  void read_hardware(const Scenario& s);
  void read_zones();
  /// A jurisdiction that no region is under is a mistake: nothing would ever fit.
  void check_residency();

  // read/pools.cpp
  /// Has no pool a role that is not planned? Says which has.
  bool can_vary_pools(const Scenario& s);
  /// Whether what scales the workers' pool decides on its nodes, and what cannot vary then.
  void read_scaling(const Scenario& s);
  bool autoscales(const ClusterSpec& cluster) const;
  std::string service_name(const ClusterSpec& cluster) const;
  void read_bounds(const Scenario& s);
  bool has_servers(const Scenario& s) const;
  void read_server_machines(const Scenario& s);
  /// A mix is written as pools beside the workers' own, of nodes with a name.
  void read_mixes(const Scenario& s);

  // read/training.cpp
  void read_nodes(const Scenario& s);
  void read_strategies(const Scenario& s);
  void read_batch(const WorkloadSpec& w);
  void read_checkpoints();
  void read_restarts(const WorkloadSpec& workload);

  // read/limits.cpp
  void read_memory(const std::string& text);
  std::optional<double> probability_of(const std::string& text);
  void read_limits(const PlanSpec& spec);

  Question& q_;
  const Catalog& catalog_;
  const std::map<std::string, std::vector<std::string>>* vary_ = nullptr;
};

}  // namespace reckon::planner
