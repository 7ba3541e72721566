#include "sim/measurement/own_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "sim/accuracy/evidence/posterior.h"
#include "sim/measurement/measured_run.h"
#include "sim/measurement/start_times.h"
#include "sim/scenario/resolve/draft.h"
#include "sim/scenario/split_text.h"

namespace reckon {
namespace {

// Standard deviations of ln(measured / modelled) that two runs on one machine have in common, as
// the ten jobs of docs/measurements/2026-11-24-own-runs.md show them.
constexpr double kMachine = 0.2;
constexpr double kAnything = 10;  // the model may be off by any factor: what was measured decides
constexpr double kUnit = 0.1;
constexpr double kNetwork = 0.15;
constexpr double kProcesses = 0.15;
constexpr double kConfiguration = 0.15;  // a network in a strategy, by batch
constexpr double kBatchLength = 2;       // of the logarithm of the batch
constexpr double kNoise = 0.05;          // from run to run
constexpr double kInterval = 1.645;      // nine of ten lie within so many standard deviations

bool same_processes(const OwnRun& a, const OwnRun& b) {
  return a.strategy == b.strategy && a.synchronous == b.synchronous && a.workers == b.workers &&
         a.servers == b.servers;
}

/// `here`: of what all runs on the machine have in common.
double covariance(const OwnRun& a, const OwnRun& b, double here) {
  const auto squared = [](double x) { return x * x; };
  double sum = squared(here);
  if (a.unit == b.unit) sum += squared(kUnit);
  const bool network = a.network == b.network, processes = same_processes(a, b);
  if (network) sum += squared(kNetwork);
  if (processes) sum += squared(kProcesses);
  if (network && processes) {
    const double apart = std::log(double(a.batch) / double(b.batch)) / kBatchLength;
    sum += squared(kConfiguration) * std::exp(-apart * apart / 2);
  }
  return sum;
}

bool tells(const OwnRun& run, const OwnRun& question) {
  return run.machine == question.machine && run.step.count() > 0 && run.modelled.count() > 0 &&
         run.batch > 0;
}

/// The newest of those like the question, else of all, where it is known.
std::optional<Seconds> newest(std::span<const OwnRun> runs, const OwnRun& question,
                              Seconds OwnRun::*what) {
  std::optional<Seconds> any, alike;
  for (const OwnRun& run : runs) {
    if (run.machine != question.machine || !((run.*what).count() > 0)) continue;
    any = run.*what;
    if (run.network == question.network && same_processes(run, question)) alike = run.*what;
  }
  return alike ? alike : any;
}

}  // namespace

OwnRun own_question(const Plan& plan, std::string machine) {
  const PlannedWorkload& job = plan.only_job();
  const PlannedStrategy& s = job.strategy;
  OwnRun q;
  q.machine = std::move(machine);
  q.network = job.model.name();
  q.unit = to_text(job.model.sample_unit());
  q.strategy = split_text(job);
  q.synchronous = s.synchronous();
  q.workers = s.workers;
  q.servers = s.server_count();
  q.batch = job.strategy.layout.micro_batch;
  return q;
}

OwnRun measured_as(OwnRun run, Seconds modelled, const Measurements& measured) {
  const auto mean = [](const std::vector<Seconds>& all) {
    return all.empty() ? Seconds{}
                       : std::accumulate(all.begin(), all.end(), Seconds{}) / double(all.size());
  };
  std::vector<Seconds> steps, saves;
  for (const StepRecord& s : steady_steps(measured)) steps.push_back(s.seconds);
  for (const CheckpointRecord& c : measured.checkpoints)
    if (c.action == CheckpointAction::save && !c.emergency) saves.push_back(c.blocked);
  run.modelled = modelled;
  run.step = mean(steps);
  run.steps = std::int64_t(steps.size());
  run.save = mean(saves);
  for (const StepRecord& s : measured.steps) {
    if (s.attempt != 0 || s.step != 0) continue;
    run.start = std::max(run.start, s.at - s.seconds);
  }
  return run;
}

namespace {

OwnEvidence evidence_of(std::span<const OwnRun> runs, const OwnRun& question, double here) {
  constexpr std::size_t kMost = 200;  // the newest
  std::vector<const OwnRun*> taken;
  for (const OwnRun& run : runs)
    if (tells(run, question)) taken.push_back(&run);
  if (taken.size() > kMost) taken.erase(taken.begin(), taken.end() - std::ptrdiff_t(kMost));
  std::vector<Observation> observations;
  std::vector<double> with;
  for (const OwnRun* run : taken) {
    observations.push_back({.value = std::log(run->step / run->modelled), .noise = kNoise});
    with.push_back(covariance(*run, question, here));
  }
  const Posterior posterior(observations, [&](std::size_t i, std::size_t j) {
    return covariance(*taken[i], *taken[j], here);
  });
  const double variance =
      covariance(question, question, here) - posterior.explained(with, with) + kNoise * kNoise;
  OwnEvidence e;
  e.runs = int(taken.size());
  e.half_width = kInterval * std::sqrt(std::max(variance, kNoise * kNoise));
  e.median = std::exp(posterior.mean(with));
  e.low = e.median * std::exp(-e.half_width);
  e.high = e.median * std::exp(e.half_width);
  e.start = newest(runs, question, &OwnRun::start);
  e.save = newest(runs, question, &OwnRun::save);
  return e;
}

}  // namespace

OwnEvidence own_evidence(std::span<const OwnRun> runs, const OwnRun& question) {
  return evidence_of(runs, question, kMachine);
}

OwnEvidence evidence_of_run(std::span<const OwnRun> seen, const OwnRun& question) {
  return evidence_of(seen, question, kAnything);
}

OwnEvidence set_own_evidence(Plan& plan, std::span<const OwnRun> runs, const OwnRun& question) {
  OwnEvidence e = own_evidence(runs, question);
  const auto source = static_cast<SourceId>(plan.sources.size());
  plan.sources.push_back({.id = "own",
                          .reference = e.runs == 0 ? std::string("a probe of this machine")
                                                   : fmt::format("{} run{} on this machine", e.runs,
                                                                 e.runs == 1 ? "" : "s")});
  for (PlannedPool& pool : plan.pools)
    if (pool.measured_rates)
      pool.efficiency.step_spread = Fact<double>(e.median, e.low, e.high, source);
  if (e.start) plan.job_start.framework_start = measured_once(*e.start, source);
  for (PlannedWorkload& job : plan.jobs) {
    if (!e.save) continue;
    job.checkpoint.save_overhead = measured_once(*e.save, source);
    job.checkpoint.storage.write_per_node = Fact<BytesPerSecond>{};  // all of it was measured
    job.checkpoint.storage.latency = Fact<Seconds>{};
  }
  return e;
}

}  // namespace reckon
