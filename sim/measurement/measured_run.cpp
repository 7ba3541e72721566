#include "sim/measurement/measured_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "sim/forecast/forecast.h"
#include "sim/measurement/live_forecast.h"
#include "sim/measurement/start_times.h"

namespace reckon {
namespace {

constexpr std::size_t kHalf = 10;  // steps, at least, of each half that is looked at by itself
constexpr int kFew = 20;

/// Median and how well it is known: from means of blocks, for neighbouring steps resemble each
/// other. Of few values the error is that of a mean whose spread is known as badly (Student).
MeasuredQuantity median_of(Measured what, std::span<const double> values) {
  MeasuredQuantity q{.what = what, .values = int(values.size())};
  q.value = quantile({values.begin(), values.end()}, 0.5);
  constexpr double kOfOneValue = 0.3;  // of the logarithm, where a single value says nothing of it
  q.log_error = kOfOneValue;
  BlockMeans blocks;
  for (const double v : values)
    if (v > 0) blocks.add(std::log(v));
  const auto& means = blocks.means();
  const double n = double(means.size());
  if (means.size() < 3) return q;
  double mean = 0, squares = 0;
  for (const double m : means) mean += m / n;
  for (const double m : means) squares += (m - mean) * (m - mean);
  // Standard error of the mean; Student's variance is (n-1)/(n-3) times the normal's.
  const double degrees = n - 1;
  const double heavier = degrees > 2 ? degrees / (degrees - 2) : 3;
  q.log_error = std::min(kOfOneValue, std::sqrt(squares / degrees / n * heavier));
  return q;
}

/// A stage cannot tell how long a message that it waits for was on its way: what stages hand on and
/// wait for is one part.
struct PartOfStep {
  Measured what;
  Seconds (*of)(const StepRecord&);
};
constexpr std::array<PartOfStep, 6> kParts{
    {{Measured::step, [](const StepRecord& s) { return s.seconds; }},
     {Measured::compute, [](const StepRecord& s) { return s.compute; }},
     {Measured::update, [](const StepRecord& s) { return s.update; }},
     {Measured::exchange,
      [](const StepRecord& s) { return s.exposed_communication - s.waits.pipeline; }},
     {Measured::stages, [](const StepRecord& s) { return s.waits.pipeline + s.waits.bubble; }},
     {Measured::other, [](const StepRecord& s) { return s.other - s.waits.bubble; }}}};

/// Robust: from the median absolute deviation, which is 0.6745 standard deviations of a normal law.
double spread_of(const std::vector<double>& values) {
  const double middle = quantile(values, 0.5);
  std::vector<double> deviations;
  for (const double v : values) deviations.push_back(std::abs(v - middle));
  return quantile(std::move(deviations), 0.5) / 0.6745 / middle;
}

std::vector<MeasuredQuantity> quantities_of_steps(std::span<const StepRecord> steps) {
  std::vector<MeasuredQuantity> quantities;
  for (const auto& [what, part] : kParts) {
    std::vector<double> values;
    for (const StepRecord& s : steps)
      if (part(s).count() > 0) values.push_back(part(s).count());
    // What most steps have none of is not a part of a step.
    if (values.size() * 2 > steps.size()) quantities.push_back(median_of(what, values));
  }
  std::vector<double> compute;
  for (const StepRecord& s : steps) compute.push_back(s.compute.count());
  if (int(steps.size()) >= kFew && quantile(compute, 0.5) > 0) {
    const double spread = spread_of(compute);
    // A standard deviation from n values has an error of 1 / sqrt(2 n), from their MAD 1.65 times
    // that.
    if (spread > 0)
      quantities.push_back({Measured::jitter, spread, 1.65 / std::sqrt(2.0 * double(steps.size())),
                            int(steps.size())});
  }
  return quantities;
}

void add_saves(const Measurements& m, std::vector<MeasuredQuantity>& quantities) {
  std::vector<double> blocked;
  for (const CheckpointRecord& c : m.checkpoints)
    if (c.action == CheckpointAction::save && !c.emergency && c.blocked.count() > 0)
      blocked.push_back(c.blocked.count());
  if (!blocked.empty()) quantities.push_back(median_of(Measured::save, blocked));
}

void add_starts(const Measurements& m, std::vector<MeasuredQuantity>& quantities) {
  const StartTimes times = start_times(m);
  const auto add = [&](Measured what, const std::vector<double>& seconds) {
    if (!seconds.empty()) quantities.push_back(median_of(what, seconds));
  };
  add(Measured::start, times.process);
  add(Measured::pull, times.pull);
  add(Measured::restore, times.restore);
}

/// How far the cost of input on one machine holds for others of its kind: processors differ, and so
/// do ways to a store. Assumed, not measured.
constexpr double kElsewhere = 0.15;  // one standard deviation of ln

/// What the data loader of rank 0 took for its samples. Files of this machine say nothing of a
/// store: they are read from its memory.
void add_input(const Measurements& m, std::vector<MeasuredQuantity>& quantities) {
  double samples = 0, bytes = 0, reading = 0, requests = 0, decoding = 0;
  int steps = 0;
  for (const StepRecord& s : m.steps) {
    if (s.rank != 0 || !s.read_samples || *s.read_samples == 0) continue;
    samples += double(*s.read_samples);
    bytes += s.read_bytes.value_or(Bytes{}).v;
    reading += s.read.value_or(Seconds{}).count();
    requests += s.requests.value_or(Seconds{}).count();
    decoding += s.decode_cpu.value_or(Seconds{}).count();
    ++steps;
  }
  if (samples <= 0) return;
  const auto add = [&](Measured what, double value, double log_error) {
    if (value > 0)
      quantities.push_back({.what = what, .value = value, .log_error = log_error, .values = steps});
  };
  add(Measured::decode, decoding / samples, kElsewhere);
  add(Measured::sample, bytes / samples, 0);
  if (m.runs.empty() || !is_store_location(m.runs.back().data)) return;
  if (reading > 0) add(Measured::read, bytes / reading, 0);
  add(Measured::request, requests / samples, kElsewhere);
}

/// What the run waited for: nodes, and to be taken away from. An attempt that ended otherwise had
/// not been taken away by then.
void add_waits(const Measurements& m, MeasuredRun& run) {
  for (const ProvisioningRecord& p : m.provisioning)
    run.waits.push_back({WaitRecord::Kind::provisioning, p.pool, {p.seconds, !p.ready}});
  // A machine at hand is waited for until its first processes start.
  if (m.provisioning.empty() && !m.runs.empty() && m.runs.front().at.count() > 0)
    run.waits.push_back({WaitRecord::Kind::provisioning, "", {m.runs.front().at, false}});
  const bool reclaimed =
      std::any_of(m.interruptions.begin(), m.interruptions.end(),
                  [](const InterruptionRecord& i) { return i.cause == Interruption::preemption; });
  if (!reclaimed) return;  // of machines that are never taken away nothing can be learned
  for (const RunRecord& attempt : m.runs) {
    const auto cut =
        std::find_if(m.interruptions.begin(), m.interruptions.end(),
                     [&](const InterruptionRecord& i) { return i.attempt == attempt.attempt; });
    const auto end = std::find_if(m.ends.begin(), m.ends.end(),
                                  [&](const EndRecord& e) { return e.attempt == attempt.attempt; });
    if (cut == m.interruptions.end() && end == m.ends.end()) continue;
    const Seconds at = cut != m.interruptions.end() ? cut->at : end->at;
    const bool taken = cut != m.interruptions.end() && cut->cause == Interruption::preemption;
    run.waits.push_back({WaitRecord::Kind::reclaim, "", {at - attempt.at, !taken}});
  }
}

std::string configuration_of(const Measurements& m, const std::string& name) {
  if (m.runs.empty()) return name;
  const RunRecord& r = m.runs.front();
  return fmt::format("{} {} {} {} {} {} {} {} {}", r.model, r.precision, r.optimizer, r.strategy,
                     r.workers, r.parameter_servers, r.accelerator, r.batch_per_accelerator,
                     r.global_batch);
}

/// Steps that become slower while nothing about them changes.
void warn_of_drift(MeasuredRun& run) {
  constexpr double kDrift = 0.15;  // a share of the first half's median
  const auto find = [](const std::vector<MeasuredQuantity>& all) {
    const auto at = std::find_if(all.begin(), all.end(), [](const MeasuredQuantity& q) {
      return q.what == Measured::compute || q.what == Measured::step;
    });
    return at == all.end() ? nullptr : &*at;
  };
  const MeasuredQuantity *first = find(run.first_half), *second = find(run.second_half);
  if (first == nullptr || second == nullptr) return;
  const double slower = second->value / first->value - 1;
  if (std::abs(slower) < kDrift) return;
  run.warnings.push_back(fmt::format(
      "{}: the second half of the steps took {:.0f} % {} than the first: throttling, or other work "
      "on the machine",
      run.name, 100 * std::abs(slower), slower > 0 ? "longer" : "less"));
}

MeasuredRun run_of_steps(std::string file, ScenarioFile scenario,
                         std::span<const StepRecord> steps) {
  MeasuredRun run{.name = scenario.scenario.name, .file = std::move(file)};
  run.scenario = std::move(scenario);
  if (!steps.empty()) run.quantities = quantities_of_steps(steps);
  if (steps.size() >= 2 * kHalf) {
    run.first_half = quantities_of_steps(steps.first(steps.size() / 2));
    run.second_half = quantities_of_steps(steps.subspan(steps.size() / 2));
  }
  if (int(steps.size()) < kFew)
    run.warnings.push_back(
        fmt::format("{}: {} steps at steady state are few", run.name, steps.size()));
  warn_of_drift(run);
  return run;
}

}  // namespace

std::string_view to_text(Measured q) {
  switch (q) {
    case Measured::step:
      return "step";
    case Measured::compute:
      return "compute";
    case Measured::update:
      return "update";
    case Measured::exchange:
      return "exchange";
    case Measured::stages:
      return "stages";
    case Measured::other:
      return "other";
    case Measured::save:
      return "save";
    case Measured::start:
      return "start";
    case Measured::pull:
      return "image pull";
    case Measured::restore:
      return "restore";
    case Measured::jitter:
      return "jitter";
    case Measured::reduce:
      return "all-reduce";
    case Measured::kernel:
      return "kernel";
    case Measured::decode:
      return "decoding a sample";
    case Measured::sample:
      return "bytes of a sample";
    case Measured::read:
      return "reading samples";
    case Measured::request:
      return "request for a sample";
    case Measured::number:
      return "number";
  }
  return "";
}

std::string_view unit_of(Measured q) {
  switch (q) {
    case Measured::jitter:
      return "fraction";
    case Measured::sample:
      return "B";
    case Measured::read:
      return "B/s";
    default:
      return "s";
  }
}

std::vector<StepRecord> steady_steps(const Measurements& measurements) {
  const std::vector<StepRecord> useful = measurements.useful_steps();
  std::vector<StepRecord> steps;
  for (std::size_t k = 1; k < useful.size(); ++k)
    if (useful[k].attempt == useful[k - 1].attempt) steps.push_back(useful[k]);
  return steps.empty() ? useful : steps;
}

MeasuredRun measured_run(std::string file, ScenarioFile scenario,
                         const Measurements& measurements) {
  const std::vector<StepRecord> steps = steady_steps(measurements);
  MeasuredRun run = run_of_steps(std::move(file), std::move(scenario), steps);
  run.configuration = configuration_of(measurements, run.name);
  if (!measurements.runs.empty()) run.global_batch = measurements.runs.front().global_batch;
  add_saves(measurements, run.quantities);
  add_starts(measurements, run.quantities);
  add_input(measurements, run.quantities);
  if (!measurements.runs.empty()) {
    const std::string& data = measurements.runs.back().data;
    run.reads_files = !data.empty() && !is_store_location(data);
  }
  add_waits(measurements, run);
  // Only a run on a cluster has waits for nodes and pods.
  if (!measurements.runs.empty() && measurements.runs.front().workers > 1 &&
      measurements.provisioning.empty())
    run.warnings.push_back(
        fmt::format("{}: its {} workers ran on one machine: what it says of links is of that "
                    "machine's loopback",
                    run.name, measurements.runs.front().workers));
  return run;
}

MeasuredRun measured_steps(std::string file, ScenarioFile scenario,
                           const std::vector<double>& steps) {
  std::vector<StepRecord> records;
  for (const double seconds : steps) {
    StepRecord record;
    record.seconds = Seconds{seconds};
    records.push_back(record);
  }
  MeasuredRun run = run_of_steps(std::move(file), std::move(scenario), records);
  run.configuration = run.name;
  return run;
}

MeasuredRun measured_collectives(std::string file, ScenarioFile scenario,
                                 const std::vector<CollectiveSample>& samples) {
  MeasuredRun run = run_of_steps(std::move(file), std::move(scenario), {});
  run.warnings.clear();
  run.configuration = run.name + " collectives";
  constexpr double kOfOneTime = 0.05;  // of ln; nccl-tests prints a mean of 20 without its spread
  for (const CollectiveSample& s : samples)
    run.quantities.push_back(
        {Measured::reduce, s.time.count(), std::max(kOfOneTime, s.error), 1, s.size});
  return run;
}

MeasuredRun measured_waits(std::string file, ScenarioFile scenario, std::vector<WaitRecord> waits) {
  MeasuredRun run = run_of_steps(std::move(file), std::move(scenario), {});
  run.warnings.clear();
  run.configuration = run.name + " waits";
  run.waits = std::move(waits);
  return run;
}

}  // namespace reckon
