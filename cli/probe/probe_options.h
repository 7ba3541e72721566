#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/run/cluster_options.h"
#include "executor/train/device/wish.h"

namespace reckon::cli {

struct ProbeOptions : Files,
                      KubernetesObjects,
                      OutPath,
                      ScenarioChanges,
                      CatalogChoice,
                      Sampling,
                      AnswerFormat {
  std::string model;  // of the zoo, whose layers are measured; "": none
  std::int64_t batch = 1;
  std::optional<std::int64_t> sequence_length;
  int processes = 1;
  std::string checkpoint_dir;  // "": storage is not measured
  DeviceWish device = DeviceWish::automatic;
  std::optional<Seconds> item_time;
  // On Kubernetes.
  std::optional<RunPlace> on;
  std::optional<Seconds> pending;
  std::optional<std::int64_t> steps;

  std::vector<Option> declared();
  /// Throws UsageError for an option of a cluster without --on kubernetes.
  void check() const;
};

}  // namespace reckon::cli
