#include "sim/queue/snapshot/start_forecast.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "sim/base/check.h"
#include "sim/base/parallel.h"
#include "sim/queue/snapshot/job_lengths.h"
#include "sim/queue/snapshot/snapshot_case.h"

namespace reckon {
namespace {

constexpr Purpose kSnapshotLengths{"snapshot_length"}, kSnapshotUnknown{"snapshot_unknown"},
    kSnapshotArrivals{"snapshot_arrivals"};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kDay = 86400, kHour = 3600, kLongestHorizon = 14 * kDay;  // seconds
constexpr int kPilots = 100;
constexpr std::size_t kMostBlockers = 5;
constexpr Seconds kNoLimitOfSlurm{365 * 86400.0};

struct BlockerOfRun {
  std::size_t job = 0;
  double end = 0;
};
/// Of one replication; seconds after the snapshot.
struct StartOutcome {
  double start = kInfinity, end = kInfinity;
  int nodes = 0;
  std::size_t first = 0;
  std::vector<BlockerOfRun> blockers;
};

/// Of values in any order, which may be infinite: the least with at least p of them at or below.
StartQuantiles start_quantiles_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const auto at = [&](double p) {
    const auto k = static_cast<std::size_t>(std::ceil(p * double(values.size())));
    return values[std::clamp<std::size_t>(k, 1, values.size()) - 1];
  };
  return {at(0.05), at(0.5), at(0.95)};
}

double seconds_of(SimTime t) { return to_seconds(t - SimTime{}).count(); }

class StartSimulation {
 public:
  StartSimulation(const ClusterSnapshot& snapshot, const Submission& mine, std::uint64_t seed)
      : case_(snapshot, mine), mine_(mine), lengths_(snapshot.history), seed_(seed) {
    const JobList& history = snapshot.history;
    if (history.jobs.size() < 2) return;
    SimTime first = SimTime::max(), last = SimTime::min();
    for (const JobRequest& job : history.jobs) {
      first = std::min(first, job.submit);
      last = std::max(last, job.submit);
    }
    const double span = std::max(kHour, to_seconds(last - first).count());
    per_hour_ = double(history.jobs.size()) / span * kHour;
    profile_ = history.epoch ? recorded_profile(history) : week_profile({});
  }

  void set_horizon(double seconds) { horizon_ = seconds; }
  bool has_arrivals() const { return per_hour_ > 0; }

  StartOutcome replication(std::uint32_t replication) const {
    JobList list = case_.jobs();
    draw_lengths(list, replication);
    if (has_arrivals() && horizon_ > 0) draw_arrivals(list, replication);
    std::vector<Holding> holdings;
    const QueueRun run = case_.run(list, holdings);
    const JobTimes& times = run.jobs[case_.mine()];
    StartOutcome out;
    if (!times.start || !times.end) return out;
    out.start = seconds_of(*times.start);
    out.end = seconds_of(*times.end);
    for (std::size_t j = 0; j < run.jobs.size(); ++j)
      if (j != case_.mine() && run.jobs[j].start && *run.jobs[j].start <= *times.start &&
          !(j < case_.mine() && case_.runs(j)))
        ++out.first;
    find_blockers(holdings, *times.start, times.submit, out);
    return out;
  }

  const SnapshotCase& the_case() const { return case_; }

 private:
  Seconds elapsed(std::size_t j) const {
    const SnapshotJob& job = case_.recorded(j);
    const auto seconds = job.start ? case_.snapshot().at - *job.start : 0;
    return Seconds{double(std::max<std::int64_t>(0, seconds))};
  }

  void draw_lengths(JobList& list, std::uint32_t replication) const {
    const Seconds own = mine_.times[replication % mine_.times.size()];
    std::vector<Seconds> of_running;
    const auto set = [&](std::size_t j, Seconds unknown) {
      const SnapshotJob& job = case_.recorded(j);
      RandomStream stream(seed_, replication, kSnapshotLengths, static_cast<std::uint32_t>(j));
      const Seconds passed = elapsed(j);
      const Seconds length = lengths_.draw(job.user, job.limit, passed, unknown, stream);
      std::optional<SimDuration> limit;
      if (job.limit)
        limit = to_clock(std::max(Seconds{0}, *job.limit - passed));
      else if (case_.snapshot().system == SnapshotSystem::slurm)
        limit = to_clock(kNoLimitOfSlurm);
      list.jobs[j].work = FixedTime{to_clock(length - passed), limit};
      return length;
    };
    for (std::size_t j = 0; j < case_.mine(); ++j)
      if (case_.runs(j)) of_running.push_back(set(j, own));
    for (std::size_t j = 0; j < case_.mine(); ++j) {
      if (case_.runs(j)) continue;
      RandomStream which(seed_, replication, kSnapshotUnknown, static_cast<std::uint32_t>(j));
      const auto like = static_cast<std::size_t>(which.uniform() * double(of_running.size()));
      set(j, of_running.empty() ? own : of_running[like]);
    }
    std::optional<SimDuration> limit;
    if (mine_.limit)
      limit = to_clock(*mine_.limit);
    else if (case_.snapshot().system == SnapshotSystem::slurm)
      limit = to_clock(kNoLimitOfSlurm);
    const Seconds time = mine_.limit ? std::min(own, *mine_.limit) : own;
    list.jobs[case_.mine()].work = FixedTime{to_clock(time), limit};
  }

  void draw_arrivals(JobList& list, std::uint32_t replication) const {
    const auto& recorded = case_.snapshot().history.jobs;
    RandomStream stream(seed_, replication, kSnapshotArrivals, 0);
    RandomStream which(seed_, replication, kSnapshotArrivals, 1);
    for (const double at :
         arrival_times(profile_, per_hour_, case_.snapshot().at, horizon_, stream)) {
      const auto k = static_cast<std::size_t>(which.uniform() * double(recorded.size()));
      case_.add_later(list, SimTime{} + to_clock(Seconds{at}), recorded[k]);
    }
  }

  /// Of each node that it got, who held it last before.
  void find_blockers(const std::vector<Holding>& holdings, SimTime start, SimTime submit,
                     StartOutcome& out) const {
    std::map<int, BlockerOfRun> last;
    std::vector<int> nodes;
    for (const Holding& h : holdings)
      if (h.job == case_.mine() && h.begin == start) nodes.push_back(h.part.node);
    out.nodes = static_cast<int>(nodes.size());
    if (start == submit) return;
    for (const Holding& h : holdings) {  // in order of their ends
      if (h.end > start || h.end <= submit || h.job >= case_.mine()) continue;
      if (std::ranges::find(nodes, h.part.node) != nodes.end())
        last[h.part.node] = {h.job, seconds_of(h.end)};
    }
    for (const auto& [node, blocker] : last)
      if (std::ranges::find(out.blockers, blocker.job, &BlockerOfRun::job) == out.blockers.end())
        out.blockers.push_back(blocker);
  }

  SnapshotCase case_;
  const Submission& mine_;
  JobLengths lengths_;
  std::uint64_t seed_;
  WeekProfile profile_{};
  double per_hour_ = 0, horizon_ = 0;
};

std::vector<Blocker> most_frequent(const std::vector<StartOutcome>& outcomes,
                                   const SnapshotCase& of) {
  std::map<std::size_t, std::vector<double>> ends;
  for (const StartOutcome& o : outcomes)
    for (const BlockerOfRun& b : o.blockers) ends[b.job].push_back(b.end);
  std::vector<Blocker> blockers;
  for (auto& [job, when] : ends) {
    const double share = double(when.size()) / double(outcomes.size());
    blockers.push_back(
        {of.index_of_recorded(job), share, !of.runs(job), start_quantiles_of(std::move(when))});
  }
  std::ranges::stable_sort(blockers, std::greater<>{}, &Blocker::share);
  if (blockers.size() > kMostBlockers) blockers.resize(kMostBlockers);
  return blockers;
}

}  // namespace

StartForecast forecast_start(const ClusterSnapshot& snapshot, const Submission& mine,
                             int replications, std::uint64_t seed, int threads) {
  RECKON_CHECK(replications >= 1 && !mine.times.empty() && mine.gpus > 0);
  StartSimulation simulation(snapshot, mine, seed);
  const auto simulate = [&](int count) {
    std::vector<StartOutcome> outcomes(static_cast<std::size_t>(count));
    parallel_for(outcomes.size(), threads, [&](std::size_t k) {
      outcomes[k] = simulation.replication(static_cast<std::uint32_t>(k));
    });
    return outcomes;
  };
  const auto starts = [](const std::vector<StartOutcome>& outcomes) {
    std::vector<double> values;
    for (const StartOutcome& o : outcomes) values.push_back(o.start);
    return start_quantiles_of(std::move(values));
  };
  StartForecast out;
  out.replications = replications;
  out.seed = seed;
  const SnapshotCase& the_case = simulation.the_case();
  out.ahead = the_case.ahead();
  if (std::string why = the_case.why_never(); !why.empty()) {
    out.never = std::move(why);
    out.start = out.end = {kInfinity, kInfinity, kInfinity};
    return out;
  }
  if (simulation.has_arrivals()) {
    const double alone = starts(simulate(std::min(kPilots, replications))).p95;
    simulation.set_horizon(std::min(kLongestHorizon, 3 * alone + kDay));
  }
  const std::vector<StartOutcome> outcomes = simulate(replications);
  out.start = starts(outcomes);
  std::vector<double> ends, firsts, nodes;
  for (const StartOutcome& o : outcomes) {
    ends.push_back(o.end);
    firsts.push_back(double(o.first));
    nodes.push_back(o.nodes);
    out.at_once += o.start <= mine.after.count() ? 1.0 / replications : 0;
  }
  out.end = start_quantiles_of(std::move(ends));
  out.first = start_quantiles_of(std::move(firsts));
  out.nodes = static_cast<int>(start_quantiles_of(std::move(nodes)).p50);
  out.blockers = most_frequent(outcomes, the_case);
  return out;
}

}  // namespace reckon
