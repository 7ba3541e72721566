#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exchange/foreign/imported.h"
#include "sim/scenario/yaml/document.h"

// Training jobs of Google's AI Platform: the Job resource that `gcloud ai-platform jobs submit
// training` takes as config.yaml, in and out. Its fields: the service's REST reference, ml v1,
// projects.jobs, TrainingInput and ReplicaConfig.
namespace reckon {

/// The job of a configuration (YAML or JSON; "" for none) and of the words behind `gcloud
/// ai-platform jobs submit training`: its name, flags (which override the file) and, behind `--`,
/// arguments of the user's program. Flags that are of gcloud alone are kept under `gcloud:`.
Expected<YamlNode> ai_platform_job(std::string_view config, const std::string& file,
                                   std::span<const std::string> words);

/// What it says of cluster and job. All else is kept as `cluster.ai_platform`. Mistakes: fields
/// that the service does not have or not in this combination.
Expected<Imported> import_ai_platform(YamlNode job, const std::string& from,
                                      const Catalog& catalog);

/// The Job resource of a scenario with `service: ai_platform`, with what it keeps in
/// cluster.ai_platform (`document` is the scenario as it stands in its file). What was imported
/// comes back whole. Mistakes: pools that the service cannot have.
Expected<std::string> ai_platform_config(const ScenarioFile& file, const YamlNode& document,
                                         const Catalog& catalog);

}  // namespace reckon
