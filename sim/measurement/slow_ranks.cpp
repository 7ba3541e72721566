#include "sim/measurement/slow_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/unit_text.h"
#include "sim/scenario/rank_places.h"

namespace reckon {
namespace {

constexpr std::size_t kSteps = 20;
// Factors: slow_ranks.h.
constexpr double kBeyond = 1.25, kDeviations = 3, kOfMedianDeviation = 1.4826;

double middle_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

}  // namespace

Seconds own_time(const StepRecord& step) {
  return step.compute + step.input + step.update + step.other;
}

std::vector<int> kinds_of_ranks(const Plan& plan, const PlannedWorkload& job) {
  const int ranks = computing_ranks(job.strategy);
  std::vector<int> kinds(std::size_t(ranks), 0);
  const Layout& layout = job.strategy.layout;
  const bool in_stages = layout.accelerators() == ranks && layout.pipeline > 1;
  // A chief with a pool of its own is the first worker.
  const bool own_chief = computing_pools(plan).size() > 1 && job.stage_pools.empty();
  for (int rank = 0; rank < ranks; ++rank) {
    int& kind = kinds[std::size_t(rank)];
    if (in_stages) kind = place_of_rank(layout, rank).pipeline;
    if (own_chief && rank < ranks_of_worker(job.strategy)) kind = -1;
  }
  return kinds;
}

std::string to_text(const SlowRank& rank, std::size_t others) {
  return fmt::format(
      "takes {} for its own part of a step, {:.1f} times what {} take{}", format_duration(rank.own),
      rank.factor(),
      others == 1 ? "the other rank like it" : fmt::format("the other {} ranks like it", others),
      others == 1 ? "s" : "");
}

SlowRanks::SlowRanks(std::vector<int> kinds)
    : kinds_(std::move(kinds)), recent_(kinds_.size()), told_(kinds_.size()) {}

void SlowRanks::begin() {
  for (auto& steps : recent_) steps.clear();
  std::ranges::fill(told_, false);
}

std::size_t SlowRanks::others_like(int rank) const {
  return std::size_t(std::ranges::count(kinds_, kinds_[std::size_t(rank)])) - 1;
}

std::optional<double> SlowRanks::median_of(std::size_t rank) const {
  const auto& steps = recent_[rank];
  if (steps.size() < kSteps) return std::nullopt;
  return middle_of({steps.begin(), steps.end()});
}

std::optional<SlowRank> SlowRanks::add(int number, Seconds own) {
  const auto rank = std::size_t(number);
  if (rank >= kinds_.size()) return std::nullopt;
  auto& steps = recent_[rank];
  steps.push_back(own.count());
  if (steps.size() > kSteps) steps.pop_front();
  const auto mine = median_of(rank);
  if (!mine || told_[rank]) return std::nullopt;
  std::vector<double> others;
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    if (k != rank && kinds_[k] == kinds_[rank])
      if (const auto median = median_of(k)) others.push_back(*median);
  if (others.empty() || others.size() < others_like(number)) return std::nullopt;
  const double usual = middle_of(others);
  std::vector<double> deviations;
  for (const double other : others) deviations.push_back(std::abs(other - usual));
  const double spread = kOfMedianDeviation * middle_of(deviations);
  if (*mine <= kBeyond * usual || *mine <= usual + kDeviations * spread) return std::nullopt;
  told_[rank] = true;
  return SlowRank{number, Seconds{*mine}, Seconds{usual}};
}

}  // namespace reckon
