#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <memory>
#include <thread>

#include "executor/probe/probe.h"
#include "executor/train/data/samples.h"
#include "executor/train/initialise.h"
#include "executor/train/step_runtime.h"

namespace reckon {
namespace {

/// One process of the job, as it trains, without the others.
class Passes {
 public:
  Passes(const PassesWanted& wanted)
      : workers_(wanted.threads),
        runtime_(make_cpu_runtime(
            *wanted.model,
            {.batch = wanted.batch, .recompute = wanted.recompute, .rounding = wanted.rounding},
            workers_)),
        batch_(sample_format(*wanted.model), wanted.batch) {
    initialise(*wanted.model, runtime_->layout(), 1, workers_, runtime_->values());
    const SampleFormat format = sample_format(*wanted.model);
    for (std::int64_t i = 0; i < wanted.batch; ++i) fill_synthetic(format, 1, i, batch_, i);
  }

  void once() {
    runtime_->begin_step();
    runtime_->forward(batch_.view(), {}, true);
    runtime_->backward(1, {});
  }
  Repeated measure(const RepeatRule& rule) {
    return repeat_timed(rule, 1, [&] { once(); });
  }

 private:
  Workers workers_;
  std::unique_ptr<StepRuntime> runtime_;
  SampleBatch batch_;
};

}  // namespace

ProbeRecord probe_passes(const PassesWanted& wanted, const RepeatRule& rule) {
  std::vector<ProbeRecord> of_processes(static_cast<std::size_t>(wanted.processes));
  std::barrier together(wanted.processes);
  const auto measure = [&](std::size_t process) {
    Passes passes(wanted);
    together.arrive_and_wait();
    summarize(passes.measure(rule), of_processes[process]);
  };
  {
    std::vector<std::jthread> running;
    for (int p = 1; p < wanted.processes; ++p) running.emplace_back(measure, std::size_t(p));
    measure(0);
  }
  // Who waits for each other goes with the slowest.
  ProbeRecord r = *std::ranges::max_element(of_processes, {}, &ProbeRecord::median);
  r.kind = "passes";
  r.item = wanted.item();
  r.precision = to_text(held_in(wanted.rounding));
  r.threads = wanted.threads;
  r.processes = wanted.processes;
  r.samples = wanted.batch;
  return r;
}

std::string PassesWanted::item() const {
  return fmt::format(
      "forward and backward of {} with {} parameters{}{}", model->name(), model->parameters(),
      recompute == Recompute::none ? "" : ", recomputed",
      rounding == Rounding::none ? "" : fmt::format(", in {}", to_text(held_in(rounding))));
}

}  // namespace reckon
