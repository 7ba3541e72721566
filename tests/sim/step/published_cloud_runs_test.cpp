#include <catch2/catch.hpp>

#include "sim/step/step.h"
#include "support/scenario_text.h"

// Published runs on machines of AWS and Azure, predicted from a scenario's words: machine, links
// and rules come from the catalog.
using namespace reckon;
using namespace reckon::test;

namespace {

struct CloudRun {
  const char* provider;
  const char* region;
  const char* machine;
  int nodes;
  const char* stack;
  int batch;        // of one accelerator
  double measured;  // images/s of ResNet-50 v1.5 in fp16
  double within;    // of the measured
};

double predicted(const CloudRun& r) {
  const std::string strategy =
      r.nodes == 1 ? "{kind: mirrored}"
                   : "{kind: multi_worker_mirrored, workers: " + std::to_string(r.nodes) + "}";
  Expected<Plan> plan = plan_of(
      std::string("name: s\nworkload:\n  model: resnet50_v1_5\n  dataset: imagenet\n") +
      "  train: {epochs: 1}\n  precision: fp16\n  stack: " + r.stack +
      "\n  batch_per_accelerator: " + std::to_string(r.batch) + "\n  strategy: " + strategy +
      "\n  checkpoint: {interval: none}\ncluster: {provider: " + r.provider +
      ", region: " + r.region + ", pools: [{name: p, machine: " + r.machine +
      ", nodes: " + std::to_string(r.nodes) + "}]}\n");
  if (!plan) FAIL(format(plan.error()));
  // MLPerf's input pipeline (DALI) decodes on the accelerators, from local disks.
  plan->jobs[0].dataset.decode_cpu_seconds = Fact<double>{0.0};
  plan->jobs[0].checkpoint.storage.read_per_node = Fact<BytesPerSecond>{50.0_GBps};
  return estimate_step(*plan, plan->jobs[0], *make_fluid_network()).samples_per_second.v;
}

}  // namespace

TEST_CASE("MLPerf runs of Azure's own machines are predicted from the machine's name") {
  // mlcommons/training_results_v1.1, v2.1 and v3.0, Azure, resnet. Their single nodes are among the
  // runs that the efficiencies were fitted to; the run of eight nodes tests the network between.
  const CloudRun runs[] = {
      {"azure", "eastus", "Standard_ND96amsr_A100_v4", 1, "dali-mxnet-mlperf", 408, 26204.2, 0.15},
      {"azure", "eastus", "Standard_ND96amsr_A100_v4", 8, "dali-mxnet-mlperf", 51, 165468, 0.20},
      {"azure", "eastus", "Standard_NC96ads_A100_v4", 1, "dali-mxnet-mlperf", 408, 12621.1, 0.20},
      {"azure", "eastus", "Standard_ND96isr_H100_v5", 1, "dali-mxnet-mlperf", 400, 55829.2, 0.20}};
  for (const CloudRun& r : runs) {
    const double images = predicted(r);
    INFO(r.machine << " x " << r.nodes << ": " << images << " for " << r.measured << " measured");
    CHECK(images > (1 - r.within) * r.measured);
    CHECK(images < (1 + r.within) * r.measured);
  }
}
