#include "executor/comm/optimizer.h"

#include <stdexcept>

#include "kernels/sgd_momentum.h"
#include "sim/base/check.h"

namespace reckon {

namespace {
class SgdMomentumOptimizer final : public ParameterOptimizer {
 public:
  SgdMomentumOptimizer(const OptimizerOptions& options, std::size_t count)
      : options_{.momentum = float(options.momentum), .weight_decay = float(options.weight_decay)},
        velocities_(count) {}

  void apply(std::size_t first, std::span<float> values, std::span<const float> gradients,
             std::int64_t /*step*/, double learning_rate) override {
    RECKON_CHECK(first + values.size() <= velocities_.size());
    SgdMomentum now = options_;
    now.learning_rate = float(learning_rate);
    sgd_momentum_reference(now, values, std::span(velocities_).subspan(first, values.size()),
                           gradients);
  }
  std::vector<State> state() override { return {{"velocity", velocities_}}; }

 private:
  SgdMomentum options_;
  std::vector<float> velocities_;
};
}  // namespace

std::unique_ptr<ParameterOptimizer> make_optimizer(const OptimizerOptions& options,
                                                   std::size_t count) {
  if (options.kind == Optimizer::sgd_momentum)
    return std::make_unique<SgdMomentumOptimizer>(options, count);
  throw std::runtime_error("optimizer: AdamW has no CPU reference yet");
}

}  // namespace reckon
