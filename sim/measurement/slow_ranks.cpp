#include "sim/measurement/slow_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr std::size_t kSteps = 20, kWaitsForOthers = 40;  // waits: of its own steps
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
  return step.compute + step.input + step.update + step.other - step.waits.bubble;
}

std::string to_text(const SlowRank& rank) {
  const std::size_t others = rank.others;
  return fmt::format(
      "takes {} for its own part of a step, {:.1f} times what {} take{}", format_duration(rank.own),
      rank.factor(),
      others == 1 ? "the other rank like it" : fmt::format("the other {} ranks like it", others),
      others == 1 ? "s" : "");
}

SlowRanks::SlowRanks(std::vector<int> kinds)
    : kinds_(std::move(kinds)),
      recent_(kinds_.size()),
      done_(kinds_.size()),
      told_(kinds_.size()) {}

void SlowRanks::begin() {
  for (auto& steps : recent_) steps.clear();
  done_.assign(done_.size(), 0);
  told_.assign(told_.size(), false);
}

std::optional<double> SlowRanks::median_of(std::size_t rank) const {
  const auto& steps = recent_[rank];
  if (steps.size() < kSteps) return std::nullopt;
  return middle_of({steps.begin(), steps.end()});
}

std::vector<SlowRank> SlowRanks::add(int number, Seconds own) {
  const auto rank = std::size_t(number);
  std::vector<SlowRank> slow;
  if (rank >= kinds_.size()) return slow;
  auto& steps = recent_[rank];
  const bool was_full = steps.size() == kSteps;
  steps.push_back(own.count());
  ++done_[rank];
  if (was_full) steps.pop_front();
  // The last of its kind to have shown itself tells of all of them, and then each of itself.
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    if (k == rank || (!was_full && steps.size() == kSteps && kinds_[k] == kinds_[rank]))
      if (auto found = judge(k)) slow.push_back(*found);
  return slow;
}

std::vector<double> SlowRanks::medians_of_others(std::size_t rank) const {
  std::vector<double> medians;
  std::size_t others = 0, heard = 0;  // of its kind; of those, with any step
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (k == rank || kinds_[k] != kinds_[rank]) continue;
    ++others;
    heard += done_[k] > 0;
    if (const auto median = median_of(k)) medians.push_back(*median);
  }
  if (medians.size() == others) return medians;
  constexpr std::size_t kFewest = 2;  // of one alone there is no deviation
  const bool enough =
      done_[rank] >= kWaitsForOthers && medians.size() >= kFewest && 2 * medians.size() >= heard;
  return enough ? medians : std::vector<double>{};
}

std::optional<SlowRank> SlowRanks::judge(std::size_t rank) {
  const auto mine = median_of(rank);
  if (!mine || told_[rank]) return std::nullopt;
  const std::vector<double> others = medians_of_others(rank);
  if (others.empty()) return std::nullopt;
  const double usual = middle_of(others);
  std::vector<double> deviations;
  for (const double other : others) deviations.push_back(std::abs(other - usual));
  const double spread = kOfMedianDeviation * middle_of(deviations);
  if (*mine <= kBeyond * usual || *mine <= usual + kDeviations * spread) return std::nullopt;
  told_[rank] = true;
  return SlowRank{int(rank), Seconds{*mine}, Seconds{usual}, others.size()};
}

}  // namespace reckon
