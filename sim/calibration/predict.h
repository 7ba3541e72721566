#pragma once
#include <map>
#include <memory>
#include <string>

#include <tl/expected.hpp>

#include "sim/calibration/run_plan.h"
#include "sim/step/network.h"

namespace reckon {

/// What the step model says of a run, with the range that holds the truth nine times of ten
/// (the fit's residuals, step_spread).
struct Prediction {
  SamplesPerSecond rate{}, low{}, high{};
  bool stack_known = false;  // the catalog has efficiencies of the run's own stack
  bool fits = true;          // in memory, as far as the memory model knows
};
/// The error: why there is none, in words that can be counted.
using Predicted = tl::expected<Prediction, std::string>;

/// Predicts runs, each configuration once.
class Predictor {
 public:
  explicit Predictor(const Catalog& catalog);
  ~Predictor();
  const Predicted& operator()(const RunConfiguration& run);

 private:
  const Catalog& catalog_;
  std::unique_ptr<NetworkModel> network_;
  std::map<RunConfiguration, Predicted> known_;
};

}  // namespace reckon
