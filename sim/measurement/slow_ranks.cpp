#include "sim/measurement/slow_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/unit_text.h"

namespace reckon {
namespace {

constexpr std::size_t kSteps = 20, kWaitsForOthers = 40;  // waits: of its own steps
constexpr std::size_t kKept = 200;  // by so many steps one rank may be read before another
// Factors: slow_ranks.h.
constexpr double kBeforeAll = -std::numeric_limits<double>::infinity();
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
    : kinds_(std::move(kinds)), recent_(kinds_.size()), told_(kinds_.size()) {}

void SlowRanks::begin() {
  for (auto& steps : recent_) steps.clear();
  told_.assign(told_.size(), false);
}

std::vector<SlowRank> SlowRanks::add(int number, double at, Seconds own) {
  const auto rank = std::size_t(number);
  std::vector<SlowRank> slow;
  if (rank >= kinds_.size()) return slow;
  auto& steps = recent_[rank];
  if (!steps.empty() && at <= steps.back().at) return slow;  // it was read already
  const double told_by_all = last_of_all(kinds_[rank]);
  steps.push_back({at, own.count()});
  if (steps.size() > kKept) steps.pop_front();
  // The last of its kind to tell of a step tells of all of them; else each of itself.
  const bool was_last = last_of_all(kinds_[rank]) > told_by_all;
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    if (k == rank || (was_last && kinds_[k] == kinds_[rank]))
      if (auto found = judge(k)) slow.push_back(*found);
  return slow;
}

double SlowRanks::last_of_all(int kind) const {
  double last = kBeforeAll;
  for (std::size_t k = 0; k < kinds_.size(); ++k)
    if (kinds_[k] == kind && !recent_[k].empty())
      last = last == kBeforeAll ? recent_[k].back().at : std::min(last, recent_[k].back().at);
  return last;
}

std::size_t SlowRanks::steps_behind(std::size_t rank, double at) const {
  const auto& steps = recent_[rank];
  return std::size_t(steps.end() - std::ranges::upper_bound(steps, at, {}, &OwnStep::at));
}

std::optional<double> SlowRanks::median_until(std::size_t rank, double at) const {
  const auto& steps = recent_[rank];
  const auto end = steps.end() - std::ptrdiff_t(steps_behind(rank, at));
  if (std::size_t(end - steps.begin()) < kSteps) return std::nullopt;
  std::vector<double> values;
  for (auto step = end - std::ptrdiff_t(kSteps); step != end; ++step)
    values.push_back(step->seconds);
  return middle_of(std::move(values));
}

double SlowRanks::compared_until(std::size_t rank) const {
  if (recent_[rank].empty()) return kBeforeAll;
  double until = recent_[rank].back().at;
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (k == rank || kinds_[k] != kinds_[rank]) continue;
    const double last = recent_[k].empty() ? kBeforeAll : recent_[k].back().at;
    if (steps_behind(rank, last) < kWaitsForOthers) until = std::min(until, last);
  }
  return until;
}

std::vector<double> SlowRanks::medians_of_others(std::size_t rank, double until) const {
  std::vector<double> medians;
  std::size_t others = 0, heard = 0;  // of its kind; of those, with any step
  for (std::size_t k = 0; k < kinds_.size(); ++k) {
    if (k == rank || kinds_[k] != kinds_[rank]) continue;
    ++others;
    heard += !recent_[k].empty();
    if (recent_[k].empty() || recent_[k].back().at < until) continue;
    if (const auto median = median_until(k, until)) medians.push_back(*median);
  }
  if (medians.size() == others) return medians;
  constexpr std::size_t kFewest = 2;  // of one alone there is no deviation
  const bool enough = recent_[rank].size() >= kWaitsForOthers && medians.size() >= kFewest &&
                      2 * medians.size() >= heard;
  return enough ? medians : std::vector<double>{};
}

std::optional<SlowRank> SlowRanks::judge(std::size_t rank) {
  if (told_[rank]) return std::nullopt;
  const double until = compared_until(rank);
  const auto mine = median_until(rank, until);
  if (!mine) return std::nullopt;
  const std::vector<double> others = medians_of_others(rank, until);
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
