#include "sim/queue/gavel/round_shares.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace reckon {
namespace {

const StepsByKind& steps_by_kind(const JobRequest& job) { return std::get<StepsByKind>(job.work); }

}  // namespace

RoundShares::RoundShares(std::span<const JobRequest> jobs, std::span<const GavelKind> kinds,
                         const GavelRules& rules)
    : jobs_(jobs), kinds_(kinds), rules_(rules), had_by_all_(kinds.size()), order_(kinds.size()) {
  if (rules.policy == SchedulingPolicy::fifo_perf) return;  // which has no shares
  entries_.resize(jobs.size() * kinds.size());
  isolated_rate_.resize(jobs.size());
  alone_so_far_.resize(jobs.size());
  for (const JobRequest& job : jobs) counted_.push_back(steps_by_kind(job).steps);
  std::vector<double> speed(kinds.size());  // over the fastest kind of each job
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    double best = 0;
    for (std::size_t k = 0; k < kinds.size(); ++k) best = std::max(best, rate(j, k));
    for (std::size_t k = 0; k < kinds.size(); ++k) speed[k] += best > 0 ? rate(j, k) / best : 0;
  }
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](std::size_t a, std::size_t b) { return speed[a] > speed[b]; });
}

double RoundShares::rate(std::size_t job, std::size_t kind) const {
  const double rate = steps_by_kind(jobs_[job]).rates[kind];
  const bool steps = rate * rules_.round.count() >= 1;
  return steps && kinds_[kind].gpus >= jobs_[job].gpus() ? rate : 0;
}

void RoundShares::arrive(std::size_t job) {
  if (entries_.empty()) return;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    entries_[at(job, k)].had = rules_.round.count() / 2;
    had_by_all_[k] += rules_.round.count() / 2;
  }
}

void RoundShares::ran(std::size_t job, int kind, SimDuration time) {
  if (entries_.empty()) return;
  const auto k = static_cast<std::size_t>(kind);
  entries_[at(job, k)].had += to_seconds(time).count();
  had_by_all_[k] += to_seconds(time).count();
}

void RoundShares::decide(std::span<const std::size_t> active, std::span<const std::int64_t> left,
                         SimTime now) {
  settle(active, now);
  std::vector<GavelClaim> claims;
  add_claims(active, left, now, claims);
  const GavelAllocation x = allocate(rules_.policy, claims, kinds_);
  for (std::size_t m = 0; m < active.size(); ++m)
    for (std::size_t k = 0; k < kinds_.size(); ++k)
      entries_[at(active[m], k)].share = claims[m].rates[k] > 0 ? x.at(m, k) : 0;
  decided_ = now;
}

/// What the last decision promised is owed where it was not had, and all begin anew.
void RoundShares::settle(std::span<const std::size_t> active, SimTime now) {
  const double half = rules_.round.count() / 2, passed = to_seconds(now - decided_).count();
  std::fill(had_by_all_.begin(), had_by_all_.end(), 0.0);
  for (const std::size_t j : active)
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      Entry& entry = entries_[at(j, k)];
      entry.owed += entry.share * passed - (entry.had - half);
      entry.had = half;
      had_by_all_[k] += half;
    }
}

void RoundShares::add_claims(std::span<const std::size_t> active,
                             std::span<const std::int64_t> left, SimTime now,
                             std::vector<GavelClaim>& claims) {
  for (const std::size_t j : active) {
    GavelClaim claim;
    for (std::size_t k = 0; k < kinds_.size(); ++k) claim.rates.push_back(rate(j, k));
    claim.gpus = std::max(1, jobs_[j].gpus());
    claim.steps = double(left[j]);
    claim.since_submit = to_seconds(now - jobs_[j].submit);
    if (isolated_rate_[j] > 0)
      alone_so_far_[j] += Seconds{double(counted_[j] - left[j]) / isolated_rate_[j]};
    counted_[j] = left[j];
    claim.alone_so_far = alone_so_far_[j];
    isolated_rate_[j] = isolated_throughput(claim, kinds_, active.size());
    claims.push_back(std::move(claim));
  }
}

double RoundShares::priority(std::size_t job, std::size_t kind) const {
  const Entry& entry = entries_[at(job, kind)];
  // Of a kind that nobody had yet all are alike but for their shares.
  const double part = had_by_all_[kind] > 0 ? entry.had / had_by_all_[kind] : 1.0;
  return entry.share > 0 && part > 0 ? entry.share / part : 0;
}

void RoundShares::choose(std::span<const std::size_t> active, std::vector<int>& on,
                         QueueRun& run) const {
  struct Candidate {
    double priority, owed, share;
    std::size_t job;
    int kind;
  };
  std::vector<Candidate> candidates;
  for (const std::size_t k : order_)
    for (const std::size_t j : active)
      if (rate(j, k) > 0) {
        const Entry& entry = entries_[at(j, k)];
        candidates.push_back({priority(j, k), entry.owed, entry.share, j, int(k)});
      }
  std::stable_sort(
      candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
        return std::tie(a.priority, a.owed, a.share) > std::tie(b.priority, b.owed, b.share);
      });
  constexpr int kNone = -1;
  std::vector<int> before;
  for (const std::size_t j : active) before.push_back(std::exchange(on[j], kNone));
  std::vector<int> free;
  for (const GavelKind& kind : kinds_) free.push_back(kind.gpus);
  for (const Candidate& c : candidates) {
    int& there = free[static_cast<std::size_t>(c.kind)];
    if (on[c.job] != kNone || jobs_[c.job].gpus() > there) continue;
    on[c.job] = c.kind;
    there -= jobs_[c.job].gpus();
  }
  for (std::size_t m = 0; m < active.size(); ++m)
    if (before[m] != kNone && on[active[m]] == kNone) ++run.jobs[active[m]].preemptions;
}

}  // namespace reckon
