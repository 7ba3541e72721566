#include <fmt/format.h>

#include "sim/scenario/resolve/container_metrics.h"
#include "sim/scenario/resolve/draft.h"

// What the grammar knows and no model of ours covers. A key leaves this file when its model
// arrives.
namespace reckon::planning {
namespace {

void refuse_in_use(Draft& draft, const ModelUse& use) {
  if (use.model && std::holds_alternative<ModelFromHuggingFace>(*use.model))
    draft.error("workload.model", "the Hugging Face config has not been read",
                "give its dimensions: model: {transformer: {layers: 32, hidden: 4096, ...}}");
  if (use.model && std::holds_alternative<ModelFromGraphFile>(*use.model))
    draft.error("workload.model", "the file of the network's graph has not been read",
                "give its layers: model: {layers: [...]}");
  if (use.container) {
    const auto& profile = use.container->profile;
    if (std::holds_alternative<std::monostate>(profile) && !use.model)
      draft.error("workload.container",
                  "a container without a profile can be run but not simulated",
                  "name the model that its program trains, profile: resnet50_v1_5, or describe "
                  "its network beside the container: model: {layers: [...]}");
    // A step that was measured moves the model's (sim/accuracy/profiled_step.h).
    if (std::holds_alternative<Seconds>(profile) && !use.model)
      draft.error("workload.container.profile",
                  "a measured step needs the model that the program trains, which scales it",
                  "write it beside the container: model: llama3_8b");
    std::vector<MetricsMistake> mistakes;
    container_metrics(*use.container, mistakes);
    for (MetricsMistake& m : mistakes)
      draft.error("workload.container.metrics." + m.key, std::move(m.what), std::move(m.hint));
  }
}

}  // namespace

void refuse_what_is_not_simulated(Draft& draft) {
  const Scenario& scenario = draft.scenario();
  if (scenario.trace)
    draft.error("trace", "only 'reckon simulate' and 'reckon check' answer a trace of jobs",
                "give one workload: instead of trace:");
  if (scenario.arrivals)
    draft.error("arrivals", "only 'reckon simulate' and 'reckon check' answer a queue of jobs",
                "give one workload: instead of arrivals:");
  if (!draft.use && scenario.jobs.empty() && !scenario.of_queue())
    draft.error("", "the scenario has no workload", "workload: {model: resnet50, ...}");
  if (draft.use) refuse_in_use(draft, *draft.use);
  for (const PoolSpec& pool : scenario.cluster.pools) {
    const std::string path = "cluster.pools." + pool.name;
    if (pool.role == Role::inference)
      draft.error(
          path + ".role", fmt::format("pool '{}' serves, and nothing is served", pool.name),
          "add the block: serving: {requests_per_second: 200, replicas: {min: 2, max: 10}}");
  }
}

}  // namespace reckon::planning
