#include "sim/forecast/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/parallel.h"
#include "sim/cluster/notice.h"
#include "sim/cluster/restart.h"
#include "sim/forecast/effects.h"
#include "sim/forecast/replicate.h"
#include "sim/forecast/warnings.h"
#include "sim/forecast/work.h"

namespace reckon {
namespace {

/// Replications of one chunk run on one thread and one copy of the plan; the chunks' borders change
/// no result.
constexpr std::size_t kReplicationsPerChunk = 64;

class ReportedProgress {
 public:
  ReportedProgress(const std::function<void(double)>& report, double total)
      : report_(report), total_(total) {}
  void add(double work) {
    if (!report_) return;
    const std::lock_guard lock(mutex_);
    done_ += work;
    report_(std::min(1.0, done_ / total_));
  }

 private:
  const std::function<void(double)>& report_;
  const double total_;
  std::mutex mutex_;
  double done_ = 0;
};

std::vector<LifeResult> run_lives(const ForecastSetup& setup, std::uint64_t seed, int replications,
                                  int threads, ReportedProgress& progress) {
  const auto n = std::size_t(replications);
  std::vector<LifeResult> lives(n);
  parallel_for((n + kReplicationsPerChunk - 1) / kReplicationsPerChunk, threads,
               [&](std::size_t chunk) {
                 Replicator replicator(setup);
                 const std::size_t begin = chunk * kReplicationsPerChunk;
                 const std::size_t end = std::min(n, begin + kReplicationsPerChunk);
                 for (std::size_t k = begin; k < end; ++k)
                   lives[k] = replicator.run(seed, std::uint32_t(k));
                 progress.add(double(end - begin));
               });
  return lives;
}

template <class Value>
std::vector<double> values_of(const std::vector<LifeResult>& lives, Value value) {
  std::vector<double> values(lives.size());
  std::transform(lives.begin(), lives.end(), values.begin(), value);
  return values;
}

template <class Value>
Quantiles quantiles_of(const std::vector<LifeResult>& lives, Value value) {
  return quantiles(values_of(lives, value));
}

template <class Value>
double mean_of(const std::vector<LifeResult>& lives, Value value) {
  double sum = 0;
  for (const LifeResult& life : lives) sum += value(life);
  return sum / double(lives.size());
}

/// A run that never finished takes for ever: quantiles that reach into such runs are infinite, not
/// optimistic.
double time_of(const LifeResult& life, SimDuration submit) {
  if (!life.finished) return std::numeric_limits<double>::infinity();
  return to_seconds(life.finish - SimTime{} - submit).count();
}

/// Share of the job's accelerator time. A job that never got an accelerator waited all of its time.
double badput_share(const LifeResult& life, Badput cause) {
  if (life.total.n == 0) return cause == Badput::waiting ? 1.0 : 0.0;
  return ratio(life.badput[std::size_t(cause)], life.total);
}

/// Of the whole gang: accelerator time over its accelerators.
double lost_work_of(const LifeResult& life, std::int64_t accelerators) {
  const AcceleratorTime lost = life.badput[std::size_t(Badput::lost_work)];
  const Int128 each = lost.n / std::max<std::int64_t>(accelerators, 1);  // whole nanoseconds
  return double(each) * 1e-9;
}

/// A job that never ended ends never.
double seconds_since(const JobOutcome& job, SimTime from) {
  if (!job.finished) return std::numeric_limits<double>::infinity();
  return to_seconds(job.finish - from).count();
}

void summarize_jobs(const std::vector<LifeResult>& lives, SimDuration first, Forecast& f) {
  for (std::size_t k = 0; k < f.jobs.size(); ++k) {
    JobForecast& job = f.jobs[k];
    job.queued_seconds = quantiles_of(
        lives, [k](const LifeResult& l) { return to_seconds(l.jobs[k].queued).count(); });
    job.time_seconds = quantiles_of(
        lives, [k](const LifeResult& l) { return seconds_since(l.jobs[k], l.jobs[k].submit); });
    job.finish_seconds = quantiles_of(lives, [k, first](const LifeResult& l) {
      return seconds_since(l.jobs[k], SimTime{} + first);
    });
    job.unfinished_share =
        mean_of(lives, [k](const LifeResult& l) { return l.jobs[k].finished ? 0.0 : 1.0; });
  }
}

/// How each job went on after its losses.
void summarize_losses(const std::vector<LifeResult>& lives, Forecast& f) {
  for (std::size_t k = 0; k < f.jobs.size(); ++k) {
    const auto mean = [&](auto value) {
      return mean_of(lives, [&](const LifeResult& l) { return value(l.jobs[k]); });
    };
    if (auto& restart = f.jobs[k].restart) {
      restart->smaller = mean([](const JobOutcome& j) { return ratio(j.smaller, j.total); });
      restart->growths = mean([](const JobOutcome& j) { return double(j.growths); });
    }
    if (auto& notice = f.jobs[k].on_notice) {
      notice->notices = mean([](const JobOutcome& j) { return double(j.notices); });
      notice->in_time = mean([](const JobOutcome& j) { return double(j.notices_in_time); });
    }
  }
}

/// What one start takes, as mean over all starts of a life: until the gang is placed and ready.
double start_of(const LifeResult& life, double time) {
  double share = 0;
  for (const Badput cause : {Badput::provisioning, Badput::waiting, Badput::initialization})
    share += badput_share(life, cause);
  std::int64_t starts = 1;
  for (const std::int64_t n : life.interruptions) starts += n;
  return std::isfinite(time) ? share * time / double(starts) : 0;
}

void summarize_time(const Plan& plan, const std::vector<LifeResult>& lives, Forecast& f) {
  Seconds earliest = plan.jobs.front().submit;
  for (const PlannedWorkload& job : plan.jobs) earliest = std::min(earliest, job.submit);
  const SimDuration submit = to_clock(earliest);
  summarize_jobs(lives, submit, f);
  f.times_seconds = values_of(lives, [submit](const LifeResult& l) { return time_of(l, submit); });
  f.time_seconds = quantiles(f.times_seconds);
  f.start_seconds =
      values_of(lives, [submit](const LifeResult& l) { return start_of(l, time_of(l, submit)); });
  f.step_factors = values_of(lives, [](const LifeResult& l) { return l.factors.step_time; });
  f.goodput = quantiles_of(lives, [](const LifeResult& l) { return ratio(l.goodput, l.total); });
  std::int64_t accelerators = 0;
  for (const JobForecast& job : f.jobs) accelerators += job.accelerators;
  f.lost_work_seconds = quantiles_of(
      lives, [accelerators](const LifeResult& l) { return lost_work_of(l, accelerators); });
  for (std::size_t c = 0; c < kBadputCauses; ++c)
    f.badput[c] = mean_of(lives, [c](const LifeResult& l) { return badput_share(l, Badput(c)); });
  for (std::size_t c = 0; c < kInterruptionCauses; ++c)
    f.interruptions[c] =
        mean_of(lives, [c](const LifeResult& l) { return double(l.interruptions[c]); });
  f.interruptions_total = quantiles_of(lives, [](const LifeResult& l) {
    return double(std::accumulate(l.interruptions.begin(), l.interruptions.end(), std::int64_t{0}));
  });
  for (const LifeResult& life : lives) {
    if (life.finished) continue;
    f.unfinished_share += 1.0 / double(lives.size());
    if (f.unfinished_reason.empty()) f.unfinished_reason = life.failure;
  }
}

void summarize_money(const Plan& plan, const std::vector<LifeResult>& lives, Forecast& f) {
  for (const PlannedPool& pool : plan.pools) {
    const auto slot = std::size_t(&pool - plan.pools.data());
    f.node_hours.emplace_back(pool.name, mean_of(lives, [slot](const LifeResult& l) {
                                return to_seconds(l.node_time[slot]).count() / 3600;
                              }));
  }
  if (!prices_known(plan)) return;
  f.rates = rates_of(plan);
  f.costs_usd = values_of(lives, [](const LifeResult& l) { return to_usd(l.bill).v; });
  f.cost_usd = quantiles(f.costs_usd);
  for (std::size_t p = 0; p < kCostParts; ++p)
    f.cost_breakdown_usd[p] =
        mean_of(lives, [p](const LifeResult& l) { return to_usd(l.cost[p]).v; });
  summarize_prices(plan, lives, f);
}

double computing_share_of(const std::vector<JobForecast>& jobs) {
  std::vector<JobSteps> steps;
  for (const JobForecast& job : jobs)
    steps.push_back({double(job.accelerators) * double(job.steps), job.step});
  return computing_share(steps);
}

std::optional<NoticeForecast> notice_of(const Plan& plan, const PlannedWorkload& job,
                                        const JobPace& pace) {
  const bool spot = std::ranges::any_of(
      plan.pools, [](const PlannedPool& p) { return p.pricing == CapacityType::spot; });
  if (!spot || std::holds_alternative<NoReclaim>(plan.reclaim.law) ||
      pace.checkpoint_interval.count() <= 0)
    return std::nullopt;
  const PlannedNotice& rules = job.checkpoint.notice;
  NoticeForecast n{.policy = rules.policy,
                   .stated = rules.stated,
                   .own_program = rules.own_program,
                   .notice = plan.reclaim.notice,
                   .save = pace.checkpoint_save + pace.checkpoint_write};
  n.probability =
      probability_of_save({.policy = rules.policy,
                           .reaction = rules.reaction.value,
                           .step = rules.between_steps ? pace.step_by_workers.back() : Seconds{0},
                           .save = n.save,
                           .writers = pace.checkpoint_writers,
                           .writer_spread = rules.writer_spread.value},
                          n.notice);
  return n;
}

std::optional<RestartForecast> restart_of(const Plan& plan, const PlannedWorkload& planned) {
  if (!planned.restart && !planned.checkpoint.local) return std::nullopt;
  RestartForecast r;
  if (planned.restart) {
    r.kind = planned.restart->kind;
    r.spares = planned.restart->spares;
    r.min_workers = planned.restart->min_workers;
    r.keeps_state = r.kind != RestartKind::full && keeps_state(plan, request_of(planned, {}));
  }
  r.local = planned.checkpoint.local;
  return r;
}

/// What the job's step and the plan's rules say of it.
void describe_pace(const Plan& plan, const PlannedWorkload& planned, const PacedJob& paced,
                   JobForecast& job) {
  job.step = paced.step;
  job.steps = paced.pace.steps;
  job.delayed = delayed_length(planned, paced.step);
  job.checkpoint_interval = paced.pace.checkpoint_interval;
  job.restart = restart_of(plan, planned);
  if (!job.restart || !job.restart->keeps_state)
    job.on_notice = notice_of(plan, planned, paced.pace);
}

/// With the job's own residual.
MemoryEstimate memory_of_job(const Plan& plan, std::size_t k) {
  if (plan.jobs.size() == 1) return estimate_memory(plan, plan.only_job());  // without a copy
  const Plan alone = plan_of_job(plan, k);
  return estimate_memory(alone, alone.only_job());
}

/// All that can be said without living a life.
Forecast describe(const Plan& plan, const ForecastOptions& options) {
  const PlannedWorkload& job = plan.jobs.front();
  Forecast f;
  f.scenario = plan.name;
  f.seed = options.seed.value_or(plan.seed);
  f.replications = options.replications.value_or(plan.replications);
  f.steps = job.steps;
  f.accelerators = job.strategy.accelerators();
  for (std::size_t k = 0; k < plan.jobs.size(); ++k) {
    const PlannedWorkload& each = plan.jobs[k];
    JobForecast one;
    one.name = each.name;
    one.submit = each.submit;
    one.memory = each.same_as ? f.jobs[*each.same_as].memory : memory_of_job(plan, k);
    one.steps = each.steps;
    one.accelerators = each.strategy.accelerators();
    f.feasible = f.feasible && one.memory.fits();
    f.jobs.push_back(std::move(one));
  }
  f.memory = f.jobs.front().memory;
  f.tokens_per_sample = tokens_per_sample(job);
  f.prices_as_of = plan.prices_as_of;
  f.catalog_digest = plan.catalog_digest;
  f.calibrations = plan.calibrations;
  f.evidence = plan.evidence;
  f.extrapolated = is_extrapolated(plan);
  return f;
}

}  // namespace

Forecast make_forecast(const Plan& plan, const NetworkModel& network,
                       const ForecastOptions& options) {
  RECKON_CHECK(!plan.jobs.empty());
  Forecast f = describe(plan, options);
  RECKON_CHECK(f.replications > 0);
  if (!f.feasible) {  // refused with the numbers, never simulated
    f.warnings = plan.warnings;
    return f;
  }
  check_setup(plan, options.threads, options.limits);
  const ForecastSetup setup = make_setup(plan, network);
  for (std::size_t k = 0; k < f.jobs.size(); ++k)
    describe_pace(plan, plan.jobs[k], setup.jobs[k].paced, f.jobs[k]);
  f.step = f.jobs.front().step;
  f.steps = f.jobs.front().steps;
  for (const JobForecast& job : f.jobs)
    if (f.engine == kNoEngine) f.engine = job.step.engine;
  f.checkpoint_interval = f.jobs.front().checkpoint_interval;

  const double effect_lives =
      options.assumption_effects ? effect_replications(setup, f.replications) : 0;
  check_work(setup, f.replications + effect_lives, options.threads, options.limits);
  ReportedProgress progress(options.progress, f.replications + effect_lives);
  {
    const std::vector<LifeResult> lives =
        run_lives(setup, f.seed, f.replications, options.threads, progress);
    summarize_time(plan, lives, f);
    summarize_money(plan, lives, f);
    f.purchases = purchases_of(plan, lives);
    f.energy = energy_of(plan, computing_share_of(f.jobs), f.seed, lives);
    summarize_losses(lives, f);
  }
  if (options.assumption_effects)
    f.assumptions =
        assumption_effects(setup, f, options.threads, [&](double lives) { progress.add(lives); });
  f.warnings = warnings_of(plan, f);
  return f;
}

LifeResult record_replication(const Plan& plan, const NetworkModel& network, std::uint64_t seed,
                              std::uint32_t replication) {
  const ForecastSetup setup = make_setup(plan, network);
  check_work(setup, 1, 1, work_limits());
  return Replicator(setup).run(seed, replication, {}, true);
}

}  // namespace reckon
