#pragma once
#include <string>

// The job that tests of real processes run: over in a second, too small to learn anything.
namespace reckon::test {

/// A perceptron of 5,121 weights on synthetic data, up to its pools. `strategy`: of the workload;
/// `more`: lines of the workload.
inline std::string small_job(const std::string& name, const std::string& strategy, int steps,
                             const std::string& more = "") {
  return "name: " + name +
         "\nworkload:\n"
         "  model: mlp_boston_housing\n"
         "  dataset: {samples: 4040, bytes_per_sample: 112B}\n"
         "  train: {steps: " +
         std::to_string(steps) +
         "}\n"
         "  precision: fp32\n"
         "  batch_per_accelerator: 8\n"
         "  strategy: " +
         strategy +
         "\n"
         "  checkpoint: {interval: none}\n" +
         more +
         "cluster:\n"
         "  provider: on_premises\n"
         "  pools:\n";
}
/// A pool of `nodes` workers for it.
inline std::string small_pool(int nodes) {
  return "    - {name: here, role: worker, machine: {vcpu: 1, memory: 2GiB, network: 10Gbps}, "
         "nodes: " +
         std::to_string(nodes) + "}\n";
}

}  // namespace reckon::test
