#pragma once
#include <nlohmann/json.hpp>
#include <string>

namespace reckon::test {

/// A worker's pod as `kubectl get` lists it: of a rank each, on a node of its own, running or ended
/// well.
inline nlohmann::json pod_of_job(const std::string& job, int attempt, int rank, bool done) {
  const std::string name =
      job + '-' + std::to_string(attempt) + "-worker-" + std::to_string(rank) + "-a";
  nlohmann::json state = {{"startedAt", "2026-11-22T03:00:00Z"}};
  if (done) state["exitCode"] = 0;
  const nlohmann::json container = {{"name", "main"},
                                    {"state", {{done ? "terminated" : "running", state}}}};
  return {{"metadata",
           {{"name", name},
            {"uid", name},
            {"labels", {{"reckon/attempt", std::to_string(attempt)}}},
            {"annotations", {{"reckon/first-rank", std::to_string(rank)}}}}},
          {"spec", {{"nodeName", "node-" + std::to_string(rank)}}},
          {"status",
           {{"phase", done ? "Succeeded" : "Running"},
            {"containerStatuses", nlohmann::json::array({container})}}}};
}

}  // namespace reckon::test
