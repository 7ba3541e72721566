#pragma once
#include <string>

namespace reckon::test {

/// Two epochs of ResNet-50 on one or two machines; what else may vary is for the test to say.
inline std::string small_plan_question(const std::string& accelerators,
                                       const std::string& pricing) {
  return "# Question: how many " + accelerators + " for two epochs?\n" +
         "name: small\n"
         "workload:\n"
         "  model: resnet50\n"
         "  dataset: imagenet\n"
         "  train: {epochs: 2}\n"
         "  batch_per_accelerator: 32\n"
         "  strategy: {kind: single}\n"
         "cluster:\n"
         "  provider: gcp\n"
         "  region: us-central1\n"
         "  pools: [{name: workers, machine: n1-standard-16, accelerator: {type: T4, count: 1}, "
         "nodes: 1}]\n"
         "forecast: {replications: 40, seed: 5}\n"
         "plan:\n"
         "  vary: {machine: n1-standard-16, accelerator: [" +
         accelerators + "], nodes: 1..2, pricing: [" + pricing + "]}\n";
}

}  // namespace reckon::test
