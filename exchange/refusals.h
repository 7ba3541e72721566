#pragma once
#include <string>
#include <string_view>

#include "sim/scenario/scenario.h"

namespace reckon {

/// What of a plan a file format of others has no counterpart for: collected, and reported together.
class Refusals {
 public:
  /// `by`: who has none, as a sentence begins: "torchtitan 0.2.2". `workload`: the path of the job
  /// in the scenario.
  Refusals(std::string by, const Places& places, std::string workload)
      : by_(std::move(by)), places_(places), workload_(std::move(workload)) {}

  /// `path`: of the scenario, "cluster.pools"; or below the job, "strategy.tensor". `what`:
  /// "context parallelism of 2". `hint`: what to do.
  void add(std::string_view path, std::string_view what, std::string hint);
  bool empty() const { return found_.empty(); }
  Diagnostics take() { return std::move(found_); }

 private:
  std::string by_;
  const Places& places_;
  std::string workload_;
  Diagnostics found_;
};

}  // namespace reckon
