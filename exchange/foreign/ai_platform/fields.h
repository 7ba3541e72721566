#pragma once
#include <array>
#include <string>
#include <string_view>

#include "sim/scenario/scenario.h"

// What AI Platform calls the members of a cluster. Only the ai_platform sources include this.
namespace reckon::ai_platform {

/// Of TrainingInput: `masterType`, `masterConfig`, `workerCount`.
struct RoleFields {
  Role role;
  std::string_view field;  // "master"
  std::string_view flag;   // of gcloud: "master" in --master-machine-type; "": it has none
  std::string_view pool;   // the pool's name in a scenario
  std::string type() const { return std::string(field) + "Type"; }
  std::string config() const { return std::string(field) + "Config"; }
  std::string count() const { return std::string(field) + "Count"; }
};
inline constexpr std::array kRoles{
    RoleFields{Role::chief, "master", "master", "master"},
    RoleFields{Role::worker, "worker", "worker", "workers"},
    RoleFields{Role::parameter_server, "parameterServer", "parameter-server", "servers"},
    RoleFields{Role::evaluator, "evaluator", "", "evaluators"}};

/// Whose format it is; the catalog's names.
inline Provider provider() { return {"gcp"}; }
inline Service service() { return {"ai_platform"}; }

inline constexpr std::string_view kCustom = "CUSTOM";
/// A worker of this type is a Cloud TPU, with acceleratorConfig: {type: TPU_V2, count: 8} of cores.
inline constexpr std::string_view kTpuType = "cloud_tpu";
/// Where the scenario keeps what it has no words for.
inline constexpr std::string_view kKept = "ai_platform";

}  // namespace reckon::ai_platform
