#include "planner/search/lazy_lives.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"

namespace reckon::planner {
namespace {

SimDuration first_submit(const Plan& plan) {
  Seconds earliest = plan.jobs.front().submit;
  for (const PlannedWorkload& job : plan.jobs) earliest = std::min(earliest, job.submit);
  return to_clock(earliest);
}

}  // namespace

LazyLives::LazyLives(Plan plan, const NetworkModel& network, std::uint64_t seed, int replications)
    : plan_(std::move(plan)),
      setup_(make_setup(plan_, network)),
      seed_(seed),
      submit_(first_submit(plan_)),
      lives_(std::size_t(replications)) {}

const Lived& LazyLives::operator()(std::size_t k) {
  std::optional<Lived>& known = lives_[k];
  if (known) return *known;
  std::unique_ptr<Replicator> replicator = take_replicator();
  const LifeResult life = replicator->run(seed_, std::uint32_t(k));
  give_back(std::move(replicator));
  known = Lived{to_seconds(life.finish - SimTime{} - submit_).count(), to_usd(life.bill).v,
                life.finished};
  return *known;
}

Forecast LazyLives::forecast(bool price_known) const {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  Forecast f;
  f.seed = seed_;
  f.replications = int(lives_.size());
  std::size_t unfinished = 0;
  for (const std::optional<Lived>& life : lives_) {
    RECKON_CHECK(life.has_value());
    f.times_seconds.push_back(life->finished ? life->seconds : kNever);
    if (price_known) f.costs_usd.push_back(life->usd);
    unfinished += life->finished ? 0 : 1;
  }
  f.time_seconds = quantiles(f.times_seconds);
  if (price_known) f.cost_usd = quantiles(f.costs_usd);
  f.unfinished_share = double(unfinished) / double(lives_.size());
  return f;
}

std::unique_ptr<Replicator> LazyLives::take_replicator() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Replicator> taken = std::move(idle_.back());
      idle_.pop_back();
      return taken;
    }
  }
  return std::make_unique<Replicator>(setup_);
}

void LazyLives::give_back(std::unique_ptr<Replicator> replicator) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(replicator));
}

}  // namespace reckon::planner
