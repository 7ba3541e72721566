#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/forecast/forecast.h"
#include "sim/forecast/replicate.h"

// Lives of one plan, each simulated when it is first asked for: a few often settle a question, and
// what they took is not taken again where they do not.
namespace reckon::planner {

struct Lived {
  double seconds = 0;  // from the first submit to the last finish, or to where it was given up
  double usd = 0;
  bool finished = false;
};

class LazyLives {
 public:
  /// The same lives as of make_forecast with that seed.
  LazyLives(Plan plan, const NetworkModel& network, std::uint64_t seed, int replications);

  /// Life k of those there are. Several threads may ask at once, each for another life.
  const Lived& operator()(std::size_t k);
  /// Of all lives, which have been asked for: their times, costs and no more than their quantiles.
  Forecast forecast(bool price_known) const;
  std::size_t size() const { return lives_.size(); }

 private:
  std::unique_ptr<Replicator> take_replicator();
  void give_back(std::unique_ptr<Replicator> replicator);

  const Plan plan_;
  const ForecastSetup setup_;  // refers to plan_
  const std::uint64_t seed_;
  const SimDuration submit_;
  std::vector<std::optional<Lived>> lives_;
  std::mutex mutex_;                               // of what follows
  std::vector<std::unique_ptr<Replicator>> idle_;  // a replicator runs one life at a time
};

}  // namespace reckon::planner
