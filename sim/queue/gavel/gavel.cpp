#include "sim/queue/gavel/gavel.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/queue/gavel/round_shares.h"

namespace reckon {
namespace {

constexpr int kNowhere = -1;

const StepsByKind& steps_of(const JobRequest& job) { return std::get<StepsByKind>(job.work); }

class GavelSimulation {
 public:
  GavelSimulation(const std::vector<JobRequest>& jobs, const std::vector<GavelKind>& kinds,
                  const GavelRules& rules, QueueRun& run, std::vector<GavelStretch>* stretches)
      : jobs_(jobs),
        kinds_(kinds),
        rules_(rules),
        run_(run),
        stretches_(stretches),
        shares_(jobs, kinds, rules),
        left_(jobs.size()) {
    for (std::size_t k = 0; k < jobs.size(); ++k) left_[k] = steps_of(jobs[k]).steps;
    on_.assign(jobs.size(), kNowhere);
  }

  void run() {
    find_impossible();
    open_ = 0;
    for (std::size_t k = 0; k < run_.measured; ++k)
      open_ += impossible(run_.first_measured + k) ? 0 : 1;
    while (open_ > 0) {
      arrivals();
      if (decision_is_due()) {
        decided_ = now_;
        changed_ = false;
        if (first_come())
          decide_first_come();
        else
          shares_.decide(active_, left_, now_);
      }
      if (!first_come()) shares_.choose(active_, on_, run_);
      if (!round()) idle();
    }
  }

 private:
  bool first_come() const { return rules_.policy == SchedulingPolicy::fifo_perf; }
  std::int64_t steps_in_round(std::size_t job, int kind) const {
    const double rate = steps_of(jobs_[job]).rates[static_cast<std::size_t>(kind)];
    return static_cast<std::int64_t>(rate * rules_.round.count());
  }
  bool impossible(std::size_t job) const {
    return std::binary_search(run_.never.begin(), run_.never.end(), job);
  }
  void find_impossible() {
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      bool runs = false;
      for (std::size_t k = 0; k < kinds_.size(); ++k)
        runs = runs || (kinds_[k].gpus >= jobs_[j].gpus() && steps_in_round(j, int(k)) > 0);
      if (!runs) run_.never.push_back(j);
    }
  }

  void arrivals() {
    for (; next_ < jobs_.size() && jobs_[next_].submit <= now_; ++next_) {
      if (impossible(next_)) continue;
      active_.push_back(next_);
      shares_.arrive(next_);
      changed_ = true;
    }
  }

  bool decision_is_due() const {
    const bool first = decided_ == SimTime{};
    return changed_ && (first || now_ - decided_ >= to_clock(rules_.between_decisions));
  }

  void decide_first_come() {
    std::vector<int> free;
    for (const GavelKind& kind : kinds_) free.push_back(kind.gpus);
    for (const std::size_t j : active_) on_[j] = kNowhere;
    for (const std::size_t j : active_) {
      int best = kNowhere;
      for (int k = 0; k < int(kinds_.size()); ++k) {
        if (free[k] < jobs_[j].gpus() || free[k] == 0) continue;
        if (best == kNowhere || steps_of(jobs_[j]).rates[k] > steps_of(jobs_[j]).rates[best])
          best = k;
      }
      if (best == kNowhere) break;
      if (steps_in_round(j, best) == 0) continue;
      on_[j] = best;
      free[best] -= jobs_[j].gpus();
    }
  }

  /// False: no job runs.
  bool round() {
    SimTime over = now_;
    for (const std::size_t j : active_) {
      if (on_[j] == kNowhere) continue;
      const std::int64_t steps = std::min(steps_in_round(j, on_[j]), left_[j]);
      const SimTime done =
          now_ + to_clock(Seconds{double(steps) /
                                  steps_of(jobs_[j]).rates[static_cast<std::size_t>(on_[j])]});
      JobTimes& times = run_.jobs[j];
      if (!times.start) times.start = now_;
      left_[j] -= steps;
      shares_.ran(j, on_[j], done - now_);
      if (stretches_ != nullptr)
        stretches_->push_back({j, static_cast<std::size_t>(on_[j]), now_, done, steps});
      run_.gpu_seconds += to_seconds(done - now_).count() * jobs_[j].gpus();
      if (left_[j] == 0) times.end = done;
      over = std::max(over, done);
    }
    if (over == now_) return false;
    now_ = over;
    const auto ended = [&](std::size_t j) { return left_[j] == 0; };
    for (const std::size_t j : active_)
      if (ended(j)) {
        changed_ = true;
        if (j >= run_.first_measured && j < run_.first_measured + run_.measured) --open_;
      }
    std::erase_if(active_, ended);
    return true;
  }

  void idle() {
    if (next_ < jobs_.size())
      now_ = std::max(now_, jobs_[next_].submit);
    else
      decided_ = {};  // nobody else comes: those that wait are not made to wait longer
  }

  const std::vector<JobRequest>& jobs_;
  const std::vector<GavelKind>& kinds_;
  const GavelRules& rules_;
  QueueRun& run_;
  std::vector<GavelStretch>* stretches_;
  RoundShares shares_;
  std::vector<std::int64_t> left_;   // steps by job
  std::vector<int> on_;              // kind by job
  std::vector<std::size_t> active_;  // in order of the list
  std::size_t next_ = 0, open_ = 0;  // first that has not come; measured jobs that have not ended
  SimTime now_{}, decided_{};
  bool changed_ = false;
};

}  // namespace

QueueRun run_gavel(const std::vector<JobRequest>& jobs, const std::vector<GavelKind>& kinds,
                   const GavelRules& rules, std::size_t first_measured, std::size_t measured,
                   std::vector<GavelStretch>* stretches) {
  RECKON_CHECK(first_measured + measured <= jobs.size());
  QueueRun run = queue_of_jobs(jobs, first_measured, measured);
  GavelSimulation(jobs, kinds, rules, run, stretches).run();
  int gpus = 0;
  for (const GavelKind& kind : kinds) gpus += kind.gpus;
  summarize(run, gpus);
  return run;
}

}  // namespace reckon
