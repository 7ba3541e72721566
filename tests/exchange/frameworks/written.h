#pragma once
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <vector>

#include "exchange/frameworks/frameworks.h"
#include "read_back.h"
#include "support/scenario_text.h"

// What reckon writes for a scenario of 32 accelerators, or why it refuses to.
namespace reckon::test {

/// Steps of 10 s, 20 minutes between two checkpoints of a minute.
inline constexpr LaunchTimes kTimes{Seconds{10}, Seconds{1200}, Seconds{60}};

inline const std::string kLlama = R"(
name: llama
workload:
  model: llama3_8b
  sequence_length: 8192
  dataset: {samples: 122k, bytes_per_sample: 16kB}
  train: {steps: 1000}
  precision: bf16
  fp32_gradients: true
  global_batch: 128
  strategy: {kind: sharded, zero_stage: 3, micro_batch: 1}
  checkpoint: {on_notice: none}
cluster:
  provider: on_premises
  pools:
    - name: h100
      machine: {vcpu: 192, memory: 2TiB, network: 3200Gbps, network_link: infiniband}
      accelerator: {type: H100-SXM5-80, count: 8}
      nodes: 4
)";
inline const std::string kModelParallel = "workload.strategy=";

struct Written {
  std::optional<LauncherFile> file;
  std::string errors;
  std::optional<Plan> plan;
};

inline Written written(Framework framework, const std::vector<std::string>& changes = {},
                       const std::string& text = kLlama) {
  Written w;
  const auto file = parse_scenario(text, "s.yaml", changes);
  if (!file) FAIL(format(file.error()));
  auto plan = make_plan(*file, shipped_catalog());
  if (!plan) FAIL(format(plan.error()));
  w.plan = std::move(*plan);
  const auto layout = launch_layout_of(*w.plan, file->places, kTimes);
  if (!layout) {
    w.errors = format(layout.error());
    return w;
  }
  auto made = launcher_file(framework, *layout, file->places);
  if (made)
    w.file = std::move(*made);
  else
    w.errors = format(made.error());
  return w;
}

inline Values values(Framework framework, const std::vector<std::string>& changes = {}) {
  const Written w = written(framework, changes);
  INFO(w.errors);
  REQUIRE(w.file);
  const Values v = values_of(framework, w.file->text);
  check_arguments(framework, v);
  return v;
}

}  // namespace reckon::test
