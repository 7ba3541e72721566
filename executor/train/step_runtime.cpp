#include "executor/train/step_runtime.h"

#include "executor/train/lap.h"

namespace reckon {

PassTimes StepRuntime::run_passes(const StepPasses& passes) {
  PassTimes times;
  const auto exchanging = [&] { return times.add(take_exchanged()); };
  Lap lap;
  begin_step();
  times.backward += lap.next();
  BatchView batch;
  for (std::int64_t k = 0; k < passes.count + passes.idle; ++k) {
    const bool counts = k < passes.count;
    if (counts) batch = passes.load();
    times.data_wait += lap.next();
    const double loss = forward(batch, passes.position(counts ? k : k - 1), true);
    const ExchangeWaits waited_forward = passes.take_waited();
    times.forward += lap.next() - waited_forward.total() - exchanging();
    passes.check(loss);
    if (counts) times.loss += loss / static_cast<double>(passes.count);
    const bool exchanged = passes.exchanged_every_pass || k + 1 == passes.count;
    passes.begin_backward();
    backward(counts ? passes.scale : 0, exchanged ? passes.ready : nullptr);
    const ExchangeWaits waited_backward = passes.take_waited();
    times.backward += lap.next() - waited_backward.total() - exchanging();
    times.waited += waited_forward;
    times.waited += waited_backward;
  }
  return times;
}

double StepRuntime::evaluate(const StepPasses& passes) {
  double loss = 0;
  for (std::int64_t k = 0; k < passes.count; ++k)
    loss += forward(passes.load(), passes.position(k), false) / static_cast<double>(passes.count);
  take_exchanged();  // no step's
  return loss;
}

}  // namespace reckon
