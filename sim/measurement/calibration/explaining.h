#pragma once
#include <optional>
#include <string>
#include <vector>

#include "sim/forecast/forecast.h"

// Which assumption of a forecast would explain a difference from it.
namespace reckon {

/// What the forecast's number is.
enum class Around {
  medians,  // of all assumptions: a step's parts
  mean      // over the replications
};

/// One assumption, and what it would have to be for a forecast to have met the run, all else as it
/// was forecast.
struct Explaining {
  AssumptionEffect assumption;
  std::optional<double> value;  // in the assumption's unit; nullopt: none would, by itself
  double percentile = 0;        // of `value` in the assumption's distribution, 0..1
  /// From its 5th to its 95th percentile: the forecast held it possible.
  bool within_range() const { return value && 0.05 <= percentile && percentile <= 0.95; }
};

/// `effect`: what is compared, at the assumption's high end minus at its low end. `difference`: the
/// run minus the forecast. A time is a sum of amounts times durations and of amounts over rates, so
/// that it is taken to be linear in an assumption with which it grows and in the inverse of one
/// with which it falls; MODELS.md, "Which assumption was off". nullopt: no value greater than 0
/// explains it, or the assumption has no range.
std::optional<Explaining> explaining(const AssumptionEffect& assumption, double effect,
                                     double difference, Around around);

/// An assumption and its effect on what is compared.
struct EffectOn {
  const AssumptionEffect* assumption = nullptr;
  double effect = 0;  // in the unit of the difference: seconds or USD
};
/// Those that explain it by themselves, the most plausible (nearest to its median, in its range's
/// terms) first; where none does, those it rests on all the same, the largest effect first, without
/// a value. At most `most`.
std::vector<Explaining> most_plausible(const std::vector<EffectOn>& effects, double difference,
                                       Around around, std::size_t most = 2);

/// "start of the framework, 20.0 s (5.00 s .. 1 min; job_start.framework_start; general
/// knowledge): 2.10 s would explain it, below that range".
std::string to_text(const Explaining& explaining);

}  // namespace reckon
