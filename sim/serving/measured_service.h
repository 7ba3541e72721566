#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/base/quantity.h"

// What a server has measured of itself, for the forecast of the next load.
namespace reckon {

/// Batches of about one size, summed.
struct MeasuredBatches {
  double batches = 0, instances = 0;
  Seconds busy{};

  double size() const { return instances / batches; }
  Seconds time() const { return busy / batches; }
};

/// Whether a text is what a `reckon-worker serve` says at /metrics.
bool is_serving_metrics(std::string_view text);

/// Its batches, by size. The errors name `name`.
Expected<std::vector<MeasuredBatches>> parse_serving_metrics(const std::string& name,
                                                             std::string_view text);

/// Of a batch of b requests: S(b) = batch + b request.
struct MeasuredOverhead {
  Seconds batch{}, request{};
  double error = 0;  // the largest of a size, relative
};

/// Least squares of the relative errors of S, each size weighted by its batches; neither part is
/// below 0. nullopt: all batches had one size, from which the parts cannot be told apart.
std::optional<MeasuredOverhead> fit_serving_overhead(const std::vector<MeasuredBatches>& measured);

/// The layer of a scenario (--layer) that says so.
std::string overhead_layer(const MeasuredOverhead& overhead, const std::string& from);

}  // namespace reckon
